"""
The ROC curve of the best attack
================================

No test that distinguishes two tables differing in one record can exceed the curve of a fit.
"""

import matplotlib.pyplot as plt
import numpy as np

from dp_halfspace.privacy import Gaussian, PrivacyRecord, gdp_mu

rates = np.linspace(0, 1, 41)
for epsilon in (0.3, 1, 3, 10):
    record = PrivacyRecord(
        epsilon=epsilon, delta=1e-6, events=[Gaussian(gdp_mu(epsilon, 1e-6))], noise="os"
    )
    plt.plot(rates, [record.attack_tpr(rate) for rate in rates], label=f"epsilon {epsilon}")
plt.plot(rates, rates, ":", color="grey", label="a coin")
plt.xlabel("false positive rate")
plt.ylabel("true positive rate, at most")
plt.legend()
plt.show()
