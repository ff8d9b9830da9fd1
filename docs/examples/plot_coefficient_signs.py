"""
The signs of coefficients
=========================

A table with 15 % positives, flags, counts and skewed columns. Bars of two standard errors of the
privacy noise follow from released numbers alone; a bar across zero means that noise may have
decided the sign. Compare signs rather than sizes: slopes are clipped in private fits, so scores are
longer than log odds. scikit-learn's fit and the deviations of the columns, which make both
comparable, are not private; ``natural.widths`` are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.inspection import natural_coefficients

rng, n = np.random.default_rng(0), 12_000
columns = {
    "age": rng.normal(60, 12, n),
    "smoker (30 %)": rng.random(n) < 0.3,
    "on dialysis (4 %)": rng.random(n) < 0.04,
    "earlier visits": rng.poisson(0.7, n),
    "drugs": rng.negative_binomial(2, 0.3, n),
    "creatinine": rng.lognormal(0, 0.6, n),
    "platelets": rng.lognormal(12.4, 0.4, n),
    "day of the week": rng.integers(7, size=n),
}
X = np.column_stack(list(columns.values())).astype(float)
Z = StandardScaler().fit_transform(X)
risk = Z @ [0.6, 0.4, 0.3, 0.5, -0.3, 0.4, -0.5, 0.0] - 2.1
y = (risk + rng.logistic(size=n) > 0).astype(int)

model = AdaptiveMarginClassifier(epsilon=1, classes=[0, 1]).fit(X, y)
natural, width = natural_coefficients(model), X.std(axis=0)
exact = LogisticRegression().fit(Z, y)
place = np.arange(len(columns))
plt.errorbar(
    natural.coefficients[0] * width,
    place,
    xerr=2 * natural.errors[0] * width,
    fmt="o",
    capsize=3,
    label="private, with two standard errors of the noise",
)
plt.plot(exact.coef_[0], place + 0.2, "kx", label="scikit-learn, without privacy")
plt.axvline(0, color="grey", ls=":")
plt.yticks(place, list(columns))
plt.gca().invert_yaxis()
plt.xlabel(f"coefficient of a column divided by its deviation ({y.mean():.0%} positive)")
plt.legend(loc="lower right", fontsize="small")
plt.tight_layout()
plt.show()
