"""Public sizes that are served or refused in 2 GB of memory; ``tests/test_sizes.py`` runs them.

    python -m tests.sizes NAME ...

Each line that is printed says what became of one size: the sentence of its refusal or nothing, the
number of charges, and the seconds that it took.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

import dp_halfspace as dp
from dp_halfspace.datasets import in_chunks, make_halfspace
from dp_halfspace.inspection import EffectsDisplay, model_card, plan_accuracy
from dp_halfspace.metrics import private_score
from dp_halfspace.preprocessing import PrivateScaler

BYTES = 2**31
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2000, 5))
Y = (X[:, 0] > 0).astype(int)
MANY = 5000
OF_MANY = RNG.integers(MANY, size=len(X))
NAMES = [f"c{k}" for k in range(100_000)]
TWO = {"classes": [0, 1], "data_norm": 1.0}
ALL = {"classes": np.arange(MANY), "data_norm": 5.0}


@dataclass
class Book:
    """A ledger that counts what it is asked to charge."""

    records: list[Any] = field(default_factory=list)

    def charge(self, record: Any) -> None:
        self.records.append(record)

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a Book stays in its process")


@cache
def wide() -> Any:
    """Rows of a million columns."""
    places = np.repeat(np.arange(1000), 10), RNG.integers(10**6, size=10**4)
    return sparse.csr_array((RNG.random(10**4), places), shape=(1000, 10**6))


def listed(n_rows: int, n_columns: int, n_categories: int) -> tuple[Any, dict[str, list[str]]]:
    """Columns of categories, each with a list of them."""
    rows = RNG.choice(NAMES[:n_categories], size=(n_rows, n_columns)).astype(object)
    return rows, {str(j): NAMES[:n_categories] for j in range(n_columns)}


def with_list(book: Book, n_columns: int, n_categories: int) -> Any:
    """Fit a table whose columns have long lists of categories."""
    rows, schema = listed(len(X), n_columns, n_categories)
    model = dp.PrivateTableClassifier(classes=[0, 1], schema=schema, ledger=book)
    return model.fit(rows, Y)


@cache
def few_of_many() -> Any:
    """A model of 5000 classes."""
    return of_many(dp.OutputPerturbationClassifier, Book(), 20, preconditioner=False)


def of_many(kind: Any, book: Book, n_rows: int = 500, **options: Any) -> Any:
    """Fit a model of many classes."""
    return kind(**{**ALL, **options}, ledger=book).fit(X[:n_rows], OF_MANY[:n_rows])


def refused_predictions(book: Book) -> None:
    """Ask for the scores of all classes of more rows than fit; labels alone do fit."""
    few_of_many().decision_function(np.broadcast_to(X[:1], (100_000, 5)))


def searched(book: Book, **search: Any) -> None:
    model = dp.AdaptiveMarginClassifier(**TWO)
    dp.PrivateSearchCV(model, **search, ledger=book).fit(X, Y)


def scored(book: Book, n_classes: int = 2, **score: Any) -> None:
    labels = RNG.integers(n_classes, size=len(X))
    model = few_of_many()
    if n_classes < MANY:
        options = {"preconditioner": False, "data_norm": 5.0, "classes": np.arange(n_classes)}
        model = dp.OutputPerturbationClassifier(**options).fit(X[:20], labels[:20])
    private_score(model, X, labels, ledger=book, **score)


def fitted(kind: Any, book: Book, rows: Any = X, **options: Any) -> Any:
    return kind(**{**TWO, **options}, ledger=book).fit(rows, Y[: rows.shape[0]])


REFUSED: dict[str, Callable[[Book], Any]] = {
    "30 lists of 4000 categories": lambda book: with_list(book, 30, 4000),
    "10^6 features of a polynomial": lambda book: fitted(
        dp.PrivateKernelClassifier, book, kernel="polynomial", n_components=10**6
    ),
    "10^7 random features": lambda book: fitted(
        dp.PrivateKernelClassifier, book, kernel="rbf", n_components=10**7
    ),
    "10^12 random features": lambda book: fitted(
        dp.PrivateKernelClassifier, book, kernel="rbf", n_components=10**12
    ),
    "10^12 cosines": lambda book: fitted(
        dp.PrivateKernelClassifier, book, kernel="additive", n_components=10**12
    ),
    "10^12 features of a polynomial": lambda book: fitted(
        dp.PrivateKernelClassifier, book, kernel="polynomial", n_components=10**12
    ),
    "random features of 10^6 columns": lambda book: fitted(
        dp.PrivateKernelClassifier, book, wide(), kernel="rbf"
    ),
    "scales of 10^5 columns": lambda book: PrivateScaler(ledger=book).fit(np.zeros((20, 10**5))),
    "a projection of 10^6 columns": lambda book: fitted(
        dp.AdaptiveMarginClassifier, book, wide(), margin=0.1, projection="rademacher"
    ),
    "a projection of all rows for steps": lambda book: dp.AdaptiveMarginClassifier(
        **TWO, projection="rademacher", n_components=2000, ledger=book
    ).fit(sparse.csr_array((200_000, 10**5)), np.arange(200_000) % 2),
    "a projection of all rows for a known margin": lambda book: dp.AdaptiveMarginClassifier(
        **TWO, margin=0.1, projection="rademacher", n_components=2000, ledger=book
    ).fit(sparse.csr_array((200_000, 10**5)), np.arange(200_000) % 2),
    "5000 classes of 10^6 columns": lambda book: dp.AdaptiveMarginClassifier(
        **ALL, ledger=book
    ).fit(wide(), OF_MANY[:1000]),
    "a minimiser of 10^5 classes": lambda book: dp.OutputPerturbationClassifier(
        classes=np.arange(10**5), data_norm=1.0, ledger=book
    ).fit(X, OF_MANY),
    "scores of 5000 classes": refused_predictions,
    "a grid of 10^5 candidates": lambda book: searched(
        book, param_grid={"intercept_scaling": np.linspace(0.1, 1.0, 10**5)}
    ),
    "1000 models of 10^6 columns": lambda book: dp.PrivateSearchCV(
        dp.AdaptiveMarginClassifier(**TWO),
        {"intercept_scaling": np.linspace(0.1, 1.0, 1000)},
        selection="exponential",
        ledger=book,
    ).fit(wide(), Y[:1000]),
    "10^9 repeats": lambda book: searched(
        book, param_grid={"intercept_scaling": [1.0, 2.0]}, n_repeats=10**9
    ),
    "10^5 margins": lambda book: fitted(
        dp.AdaptiveMarginClassifier,
        book,
        selection="exponential",
        margin=np.linspace(0.01, 1.0, 10**5),
    ),
    "pairs of 5000 classes": lambda book: scored(book, MANY, metric="confusion_matrix"),
    "pairs of 100 classes in 10,000 groups": lambda book: scored(
        book, 100, by=Y, by_values=range(10_000)
    ),
    "10^5 simulated classes": lambda book: plan_accuracy(6000, 12, 10**5, [1.0], reference=0.5),
    "10^12 numbers": lambda book: make_halfspace(10**10, 100, margin=0.1),
    "curves of 5000 classes": lambda book: EffectsDisplay.from_estimator(few_of_many()),
}


def labels_of_many(book: Book) -> None:
    """Labels of rows whose scores do not fit together."""
    model = of_many(dp.OutputPerturbationClassifier, book, 20, preconditioner=False)
    assert model.predict(np.broadcast_to(X[:1], (20_000, 5))).shape == (20_000,)


def probabilities_of_many(book: Book) -> None:
    """Probabilities that need three quarters of the memory."""
    model = of_many(dp.OutputPerturbationClassifier, book, 200)
    found = model.predict_proba(np.broadcast_to(X[:1], (30_000, 5)))
    assert found.shape == (30_000, MANY)
    assert abs(float(found[-1].sum()) - 1.0) < 1e-9


def table_of_many(book: Book) -> None:
    """A table of many classes, whose scores are calibrated some rows at a time."""
    rows = RNG.standard_normal((10_000, 5))
    labels = RNG.integers(MANY, size=len(rows))
    dp.PrivateTableClassifier(classes=range(MANY), epsilon=9.0, ledger=book).fit(rows, labels)


SERVED: dict[str, Callable[[Book], Any]] = {
    "any number of cosines, of which none help": lambda book: fitted(
        dp.PrivateKernelClassifier, book, n_components=10**12, data_norm=None
    ),
    "labels of 5000 classes": labels_of_many,
}
SLOW: dict[str, Callable[[Book], Any]] = {
    "probabilities of 5000 classes": probabilities_of_many,
    "5000 simulated classes": lambda book: plan_accuracy(
        6000, 12, MANY, [1.0], reference=0.5, n_repeats=2
    ),
    "a linear default of 5000 classes": lambda book: model_card(
        of_many(dp.AdaptiveMarginClassifier, book, data_norm=None)
    ),
    "kernel features of 5000 classes": lambda book: of_many(
        dp.PrivateKernelClassifier, book, kernel="rbf"
    ),
    "a perturbed objective of 5000 classes": lambda book: of_many(
        dp.ObjectivePerturbationClassifier, book
    ),
    "pure DP of 5000 classes": lambda book: of_many(dp.AdaptiveMarginClassifier, book, delta=0.0),
    "a table of 5000 classes": table_of_many,
    "private labels of 5000 classes": lambda book: dp.LabelPrivateClassifier(
        classes=range(MANY), ledger=book
    ).fit(X, OF_MANY),
    "private labels of 10^6 columns": lambda book: dp.LabelPrivateClassifier(
        classes=[0, 1], ledger=book
    ).fit(wide(), Y[:1000]),
    "10^6 columns": lambda book: model_card(fitted(dp.AdaptiveMarginClassifier, book, wide())),
    "chunks of 10 lists of 4000 categories": lambda book: dp.PrivateTableClassifier(
        classes=[0, 1], schema=listed(1, 10, 4000)[1], ledger=book
    ).fit(in_chunks(RNG.integers(4000, size=(1000, 10)), 500), Y[:1000]),
    "accuracy of 5000 classes": lambda book: scored(book, MANY),
}


def main(names: list[str]) -> None:
    """Print what becomes of the sizes of these names."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    for name in names:
        book, start, said = Book(), time.perf_counter(), ""
        try:
            {**REFUSED, **SERVED, **SLOW}[name](book)
        except Exception as error:  # noqa: BLE001 - which one it is, is what the test asks
            said = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - start
        print(json.dumps([name, said, len(book.records), seconds]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
