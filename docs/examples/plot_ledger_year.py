"""
A ledger over a year
====================

A model and a score every month are charged to one total budget. The ledger refuses the release that
would exceed it.
"""

import matplotlib.pyplot as plt

from dp_halfspace import AdaptiveMarginClassifier, BudgetError, PrivacyLedger
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.metrics import private_score

X, y = make_halfspace(4000, 4, margin=0.1, random_state=0)
ledger = PrivacyLedger(epsilon=3, delta=1e-6, dataset="registry")
model = AdaptiveMarginClassifier(
    epsilon=0.8, delta=1e-8, data_norm=1, classes=[-1, 1], ledger=ledger
)
spent = []
for month in range(1, 13):
    try:
        model.fit(X[:3000], y[:3000])
        private_score(model, X[3000:], y[3000:], epsilon=0.3, delta=1e-8, ledger=ledger)
    except BudgetError:
        print(f"month {month} is refused")
        break
    spent.append(ledger.spent())
plt.step(range(1, len(spent) + 1), spent, where="post", marker="o", label="spent")
plt.axhline(3, color="black", ls="--", label="total budget")
plt.xlabel("month")
plt.ylabel("epsilon")
plt.legend()
plt.show()
