"""Axes, colours and curves of all pictures; matplotlib is imported only to draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._html import plain_label
from dp_halfspace.exceptions import install_hint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours: readers with any colour vision can distinguish them.
COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4FA3", "#8C564B"),
    *("#7F7F00", "#B2182B"),
)
# Number of panels in one row.
PANELS_IN_A_ROW = 3


def panel_axes(
    count: int, what: str, ax: Axes | Sequence[Axes] | None, figure: Figure | None
) -> list[Axes]:
    """Return the given axes, if their number is right, or new ones in rows of at most three."""
    if ax is not None:
        axes = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(axes) != count:
            raise ValueError(f"{count} {what} need as many axes, got {len(axes)}.")
        return axes
    rows, columns = math.ceil(count / PANELS_IN_A_ROW), min(count, PANELS_IN_A_ROW)
    if figure is None:
        try:
            from matplotlib import pyplot  # noqa: PLC0415 (optional dependency)
        except ImportError as error:
            raise ImportError(
                "Drawing needs matplotlib, which is an optional dependency: "
                f"{install_hint('plot')}."
            ) from error
        inches = max(6.0, 4.0 * columns), 3.4 * rows + 0.8
        figure = pyplot.figure(figsize=inches, layout="constrained")
    return [figure.add_subplot(rows, columns, i + 1) for i in range(count)]


def draw_accuracies(
    axis: Axes,
    title: str,
    curves: Mapping[str, NDArray[np.float64]],
    references: Mapping[str, float],
) -> None:
    """Draw accuracy against epsilon.

    A curve has rows of epsilon, mean and spread; references do not depend on epsilon.
    """
    for name, value in references.items():
        axis.axhline(value, color="0.35", linewidth=1.3, dashes=(6, 2), label=name, zorder=1)
    for (name, curve), color in zip(curves.items(), COLORS, strict=False):
        epsilon, mean, spread = curve.T
        axis.plot(epsilon, mean, label=name, color=color, marker="o", markersize=5, zorder=3)
        shade: dict[str, Any] = {"color": color, "alpha": 0.12, "linewidth": 0, "zorder": 2}
        axis.fill_between(epsilon, mean - spread, mean + spread, **shade)
    axis.set_title(plain_label(title))
    axis.set_xlabel("epsilon (privacy budget of one fit)")
    axis.set_ylabel("test accuracy")
    axis.set_xscale("log")
    ticks = np.unique(np.concatenate([curve[:, 0] for curve in curves.values()]))
    axis.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.grid(axis="y", color="0.9", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize="small")
