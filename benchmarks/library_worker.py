"""Fit one library of private classifiers; run by the interpreter that has this library.

Usage: library_worker.py LIBRARY IN.npz OUT.npz. Imports nothing of this repository. The request
holds rows of numbers in [-1, 1] and of categories as codes, the same for every library, the
budget and settings, which may name a budget of their own; the answer holds probabilities of rows:
settings x draws x rows x classes. Budgets are those that the library states for its own adjacency.
"""

# ruff: noqa: PLC0415 (each library is imported where it is installed)

import json
import os
import sys
import warnings

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np


def one_hot(X, levels):
    """Write categories as columns of 0 and 1, one for two of them; numbers stay."""
    parts = []
    for column, n in zip(X.T, levels, strict=True):
        codes = range(1, n) if n == 2 else range(n)
        parts += [column == code for code in codes] if n else [column]
    return np.column_stack(parts).astype(float)


def unit_rows(X):
    """Bring rows to norm one."""
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def one_against_rest(fit, y, n_classes, epsilon):
    """Fit by `fit(positive, epsilon)` one model for two classes, else one for each class."""
    if n_classes == 2:
        positive = fit(y == 1, epsilon)
        return np.column_stack([1.0 - positive, positive])
    columns = [fit(y == k, epsilon / n_classes**0.5) for k in range(n_classes)]
    columns = np.maximum(np.column_stack(columns), 1e-9)
    return columns / columns.sum(axis=1, keepdims=True)


def diffprivlib(given, C):
    """Fit the logistic regression of diffprivlib to normalised rows; pure epsilon."""
    from diffprivlib.models import LogisticRegression

    train, test = (unit_rows(one_hot(given[part], given["levels"])) for part in ("X", "Z"))
    model = LogisticRegression(epsilon=given["epsilon"], data_norm=1.0, C=C, max_iter=1000)
    return model.fit(train, given["y"]).predict_proba(test)


def interpret(given, **setting):
    """Fit the private boosted additive model of interpret, given kinds and ranges."""
    import pandas as pd
    from interpret.privacy import DPExplainableBoostingClassifier

    levels = given["levels"]
    names = [f"x{i}" for i in range(len(levels))]
    train, test = (pd.DataFrame(given[part], columns=names) for part in ("X", "Z"))
    for name, n in zip(names, levels, strict=True):
        if n:
            train[name], test[name] = train[name].astype(str), test[name].astype(str)
    options = {
        "delta": given["delta"],
        "feature_names": names,
        "feature_types": ["nominal" if n else "continuous" for n in levels],
        "privacy_bounds": {c: (-1.0, 1.0) for c, n in zip(names, levels, strict=True) if not n},
        "n_jobs": 1,
        **setting,
    }

    def fit(positive, epsilon):
        model = DPExplainableBoostingClassifier(epsilon=epsilon, **options)
        return model.fit(train, positive.astype(int)).predict_proba(test)[:, 1]

    return one_against_rest(fit, given["y"], given["n_classes"], given["epsilon"])


def opacus(given, hidden, rate, clip):
    """Train a linear model, or one with a hidden layer, by the optimiser of Opacus."""
    import torch
    from opacus import PrivacyEngine

    torch.set_num_threads(1)
    epochs, batch = 20, 256
    train, test = (unit_rows(one_hot(given[part], given["levels"])) for part in ("X", "Z"))
    train, test = (torch.tensor(part, dtype=torch.float32) for part in (train, test))
    n, d = train.shape
    n_classes = given["n_classes"]
    layers = [torch.nn.Linear(d, hidden), torch.nn.Tanh()] if hidden else []
    model = torch.nn.Sequential(*layers, torch.nn.Linear(hidden or d, n_classes))
    rows = torch.utils.data.TensorDataset(train, torch.tensor(given["y"], dtype=torch.long))
    loader = torch.utils.data.DataLoader(rows, batch_size=min(batch, n // 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    model, optimizer, loader = PrivacyEngine(accountant="rdp").make_private_with_epsilon(
        module=model, optimizer=optimizer, data_loader=loader, target_epsilon=given["epsilon"],
        target_delta=given["delta"], epochs=epochs, max_grad_norm=clip,
    )  # fmt: skip
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(epochs):
        for X, y in loader:
            optimizer.zero_grad()
            if len(y):
                loss(model(X), y).backward()
                optimizer.step()
    with torch.no_grad():
        return torch.softmax(model(test), dim=1).numpy()


def dp_xgboost(given, trees, depth, rate=0.3):
    """Boost private trees; a tree has the same part of epsilon, all of them add up; pure."""
    import dp_xgboost as xgb

    train, test = (one_hot(given[part], given["levels"]) for part in ("X", "Z"))
    low = [-1.0 if n == 0 else 0.0 for n in given["levels"] for _ in range(n if n > 2 else 1)]
    ends = {"feature_min": low, "feature_max": [1.0] * len(low)}

    def fit(positive, epsilon):
        options = {
            "objective": "binary:logistic", "tree_method": "approxDP", "max_depth": depth,
            "dp_epsilon_per_tree": epsilon / trees, "eta": rate, "lambda": 0.1, "base_score": 0.5,
            "subsample": 1.0, "nthread": 1, "verbosity": 0, "min_child_weight": 500 / trees,
        }  # fmt: skip
        model = xgb.train(options, xgb.DMatrix(train, positive.astype(float), **ends), trees)
        return model.predict(xgb.DMatrix(test, **ends))

    return one_against_rest(fit, given["y"], given["n_classes"], given["epsilon"])


def smartnoise(given, method, bins=8):
    """Fit marginals of binned columns, draw a table, and boost trees on it."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier
    from snsynth import Synthesizer

    def binned(X):
        cells = np.clip(np.floor((X + 1.0) / 2.0 * bins), 0, bins - 1)
        return np.where(np.asarray(given["levels"]) > 0, X, cells).astype(int)

    frame = pd.DataFrame(binned(given["X"])).astype(str).rename(columns="x{}".format)
    frame["y"] = given["y"].astype(str)
    synthesizer = Synthesizer.create(method, epsilon=given["epsilon"], delta=given["delta"])
    synthesizer.fit(frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0)
    drawn = synthesizer.sample(len(frame)).astype(int)
    labels = drawn.pop("y").to_numpy()
    answer = np.zeros((len(given["Z"]), given["n_classes"]))
    if len(set(labels)) == 1:
        answer[:, labels[0]] = 1.0
        return answer
    model = HistGradientBoostingClassifier(max_iter=50).fit(drawn.to_numpy(), labels)
    answer[:, model.classes_] = model.predict_proba(binned(given["Z"]))
    return answer


LIBRARIES = {f.__name__: f for f in (diffprivlib, interpret, opacus, dp_xgboost, smartnoise)}


def main(library, source, target):
    """Read a request, fit each setting as often as it says, write probabilities."""
    warnings.simplefilter("ignore")
    with np.load(source, allow_pickle=False) as archive:
        given = {name: archive[name] for name in archive.files}
    given |= {name: given[name].item() for name in ("n_classes", "epsilon", "delta", "draws")}
    given["levels"] = given["levels"].tolist()
    found = []
    for setting in json.loads(str(given["settings"])):
        at = {**given, "epsilon": setting.pop("epsilon", given["epsilon"])}
        found.append([LIBRARIES[library](at, **setting) for _ in range(given["draws"])])
    np.savez(target, probabilities=np.asarray(found, dtype=np.float64))


if __name__ == "__main__":
    main(*sys.argv[1:])
