"""Draw the picture of the README: accuracy against epsilon beside baselines, from linear.json."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cells import ANY_BUDGET, RESULTS, read
from benchmarks.pictures import IMAGES, save

# Every real data set of the file, so that none is chosen for its result.
PANELS = ("adult", "ijcnn1", "satimage", "reuters")
# Key in the file: label, colour, marker; solid lines are of this package.
OURS = {
    "adaptive_margin": ("AdaptiveMarginClassifier (defaults)", "#0072B2", "o"),
    "objective_perturbation": ("ObjectivePerturbationClassifier (defaults)", "#009E73", "^"),
}
OTHERS = {
    "dp_sgd_prepared": ("DP-SGD, prepared rows, best of 12 settings", "#D55E00", "s"),
    "diffprivlib_prepared": ("diffprivlib (pure), prepared rows, best of 7", "#CC79A7", "D"),
    "published_margin": ("Wang et al. 2025", "#8C564B", "v"),
}
LINES = {"linear_svc": ("LinearSVC, not private", "--"), "majority": ("majority class", ":")}


def curve(cells: dict[str, Any], key: str) -> tuple[list[float], list[float]]:
    """Budgets in growing order and mean accuracies."""
    found = sorted((float(label), cell["mean"]) for label, cell in cells[key].items())
    return [epsilon for epsilon, _ in found], [mean for _, mean in found]


def panel(axis: Any, name: str, facts: dict[str, Any], cells: dict[str, Any]) -> None:
    """Draw one data set; the axis shows the majority class and all of our lines."""
    low, high = (cells[key][ANY_BUDGET]["mean"] for key in ("majority", "linear_svc"))
    low = min(low, *(mean for key in OURS for mean in curve(cells, key)[1]))
    for methods, style in ((OTHERS, "--"), (OURS, "-")):
        for key, (label, color, marker) in methods.items():
            if key in cells:
                epsilons, means = curve(cells, key)
                high = max(high, *means)
                wide = 2.4 if methods is OURS else 1.4
                axis.plot(epsilons, means, style, color=color, marker=marker, lw=wide, label=label)
    for key, (label, style) in LINES.items():
        axis.axhline(cells[key][ANY_BUDGET]["mean"], color="0.4", ls=style, lw=1.2, label=label)
    room = high - low
    axis.set_ylim(low - 0.12 * room, high + 0.08 * room)
    axis.set_xscale("log")
    axis.set_xticks([0.1, 0.3, 1, 3], labels=["0.1", "0.3", "1", "3"])
    axis.set_xticks([], minor=True)
    axis.set_xlabel("epsilon")
    axis.set_title(f"{name}\n{facts['n_train']} x {facts['n_features']}", fontsize=11)
    axis.grid(axis="y", color="0.9")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def main(argv: Sequence[str] | None = None) -> None:
    """Draw what is in the JSON file."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--results", type=Path, default=RESULTS / "linear.json")
    options.add_argument("--picture", type=Path, default=IMAGES / "accuracy.svg")
    given = options.parse_args(argv)
    results = read(given.results)
    # Two columns, so that it can be read on a telephone.
    figure = Figure(figsize=(5.2, 6.6), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    for axis, name in zip(axes, PANELS, strict=True):
        panel(axis, name, results["problems"][name], results["cells"][name])
    figure.supylabel("test accuracy", fontsize="medium")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=1, frameon=False)
    save(figure, given.picture)


if __name__ == "__main__":
    main()
