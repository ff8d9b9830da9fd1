"""
Planning before anything is spent
=================================

The accuracy to expect, computed from public numbers alone: rows, columns, classes, and an accuracy
without privacy that is known, for example from a publication.
"""

import matplotlib.pyplot as plt

from dp_halfspace.inspection import plan_accuracy

plan = plan_accuracy(6000, 12, 2, [0.1, 0.3, 1, 3], reference=0.85, n_repeats=4)
print(plan)
plt.errorbar(plan.epsilons, plan.accuracy, plan.spread, marker="o")
plt.xscale("log")
plt.xlabel("epsilon")
plt.ylabel("accuracy to expect")
plt.show()
