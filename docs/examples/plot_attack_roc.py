"""
The ROC curve of the best attack
================================

An attacker who sees a fitted model tests which of two tables, differing in one record, it was
fitted to. For each false positive rate, a curve shows the largest true positive rate that any
such test can reach.
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
plt.plot(rates, rates, ":", color="grey", label="random guessing")
plt.xlabel("false positive rate")
plt.ylabel("true positive rate, at most")
plt.legend()
plt.show()
