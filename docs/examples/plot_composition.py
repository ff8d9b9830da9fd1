"""
Ten fits cost less than ten times one
=====================================

A ledger composes releases with Gaussian noise exactly. The sum of their epsilons is a valid
bound, too, but a larger one.
"""

import matplotlib.pyplot as plt

from dp_halfspace.privacy import Gaussian, epsilon, gdp_mu

mu = gdp_mu(1.0, 1e-6)
counts = range(1, 21)
plt.plot(counts, [epsilon([Gaussian(mu)] * n, 1e-6) for n in counts], label="exact composition")
plt.plot(counts, list(counts), "--", label="sum of the epsilons")
plt.xlabel("fits at epsilon 1")
plt.ylabel("epsilon of all, delta = 1e-6")
plt.legend()
plt.show()
