"""
What a column does to the score
===============================

An additive table model is a sum of curves, one for each column. Parts within two standard errors
of the privacy noise are grey.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dp_halfspace import PrivateTableClassifier
from dp_halfspace.inspection import EffectsDisplay

rng = np.random.default_rng(0)
table = pd.DataFrame({"age": rng.uniform(18, 95, 8000), "bmi": rng.normal(27, 5, 8000)})
risk = 0.06 * (table["age"] - 55) + 0.004 * (table["bmi"] - 25) ** 2 + rng.logistic(size=8000)
ill = np.where(risk > 0, "yes", "no")
model = PrivateTableClassifier(
    features="additive", schema={"age": [18, 100], "bmi": [10, 60]}, classes=["no", "yes"]
)
EffectsDisplay.from_estimator(model.fit(table, ill)).plot()
plt.show()
