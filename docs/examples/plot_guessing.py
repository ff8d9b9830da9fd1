"""
What epsilon bounds
===================

An adversary knows every other row, and guesses which of two equally likely candidates was in the
table. One curve bounds the probability of a right guess from epsilon alone, the other for the
Gaussian noise that the default classifier uses.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from dp_halfspace.privacy import gdp_mu

epsilons = np.geomspace(0.05, 10, 40)
plt.plot(epsilons, 1 / (1 + np.exp(-epsilons)), label="bound by epsilon, delta = 0")
gaussian = [norm.cdf(gdp_mu(epsilon, 1e-6) / 2) for epsilon in epsilons]
plt.plot(epsilons, gaussian, label="Gaussian noise, delta = 1e-6")
plt.axhline(0.5, color="grey", ls=":", label="random guessing")
plt.xscale("log")
plt.xlabel("epsilon")
plt.ylabel("probability of a right guess, at most")
plt.legend()
plt.show()
