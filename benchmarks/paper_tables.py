"""Tables 1 to 6 of Lowy and Razaviyayn (2021) as numbers, beside ours and what was measured.

"Output perturbation for differentially private convex optimization" prints orders of magnitude.
Here they are numbers at one problem: `order` is what a line of a table prints, with constants one
and logarithms left out; `published` the number of the theorem or corollary that it names; `ours`
the bound of `dp_halfspace.theory` with the exact noise; `measured` the mean excess of the
mechanism with its standard error over samples. Lines of other papers have an order only. Runtimes
are orders too, in operations.

The problem is that of ``risk_bounds.py``: logistic loss, a distribution of two hundred records in
five columns. Hinge losses stand for losses that are not smooth where a tilt needs one. Losses that
are strongly convex include their regulariser, and so do their constants.

Writes ``results/paper_tables.json`` and ``docs/images/paper_tables.svg``; ``--draw`` only draws.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import RESULTS, merge, provenance, read, versions
from benchmarks.pictures import IMAGES, save
from benchmarks.risk_bounds import COLUMNS, distribution, minimiser, risk
from benchmarks.tables import markdown
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.optim.risks import MarginRisk
from dp_halfspace.privacy import gdp_mu
from dp_halfspace.theory import (
    RiskBound,
    convex_excess_risk,
    optimal_regularization,
    population_risk_bound,
    strongly_convex_excess_risk,
    tilted_risk_bound,
)
from dp_halfspace.theory.bounds import published_rate

FloatArray = NDArray[np.float64]

RECORDS, EPSILON, DELTA, RIDGE, TILT = 10_000, 1.0, 1e-6, 0.05, 0.3
SAMPLES, DRAWS = 100, 100


@dataclass(frozen=True)
class Setting:
    """The symbols of a table: budget, sizes, and constants of the loss of one record.

    `x` is ``d / (epsilon n)``, or with a delta ``sqrt(d) / (epsilon n)``; `rate` has the factor
    beside it that the tables leave out.
    """

    delta: float
    n: int = RECORDS
    d: int = COLUMNS
    eps: float = EPSILON
    R: float = 1.0
    is_strong: bool = True

    @property
    def mu(self) -> float:
        """Strong convexity, of the regulariser alone."""
        return RIDGE

    @property
    def L(self) -> float:
        """Slope at the minimisers, twice that of the data where there is a regulariser."""
        return 2.0 if self.is_strong else 1.0

    @property
    def beta(self) -> float:
        """Smoothness."""
        return LOGISTIC.smoothness + (RIDGE if self.is_strong else 0.0)

    @property
    def kappa(self) -> float:
        """Condition number."""
        return self.beta / self.mu

    @property
    def kappa_tilt(self) -> float:
        """Condition number under the tilt."""
        return (TILT * self.L**2 + self.beta) / self.mu

    @cached_property
    def C(self) -> float:
        """The factor of the tilt, with the exact range of the losses."""
        tilted = MarginRisk(
            LOGISTIC, self.n, self.d, 2, row_norm=1.0, block_rows=self.n, tilt=TILT, min_weight=1.0
        )
        return math.exp(TILT * tilted.spread(RIDGE))

    @property
    def x(self) -> float:
        """What every line is a function of."""
        return (self.d if self.delta == 0 else math.sqrt(self.d)) / (self.eps * self.n)

    @property
    def rate(self) -> float:
        """The same with the factor that is left out."""
        return published_rate(self.n, self.d, self.eps, self.delta)


Number = Callable[[Setting], float]


@dataclass(frozen=True)
class Line:
    """A line of a table: whose, its order, its runtime, and what it is called here.

    `constant` is what the theorem says: None for other papers, and for Theorem 5.2, which is false
    as printed (``docs/papers.md``). `ours` names the bound.
    """

    table: int
    losses: str
    reference: str
    order: Number
    runtime: Number | None
    constant: Number | None = None
    ours: str = ""

    @property
    def is_strong(self) -> bool:
        """Whether its losses are strongly convex."""
        return "convex" not in self.losses

    @property
    def is_pure(self) -> bool:
        """Whether it is for delta = 0."""
        return self.table in {1, 3, 5}


def _log(s: Setting) -> float:
    return math.log(s.n / s.delta) ** 2


def _katyusha(s: Setting) -> float:
    return s.d * (s.n + math.sqrt(s.n * s.kappa))


def _regularised_katyusha(s: Setting) -> float:
    ratio = s.beta * s.R / s.L
    one = s.n ** (5 / 6) * s.d ** (2 / 3) * (s.eps * ratio) ** (1 / 3)
    two = s.n**0.75 * s.d**0.75 * s.eps**0.25 * math.sqrt(ratio)
    return s.d * s.n + max(one, two)


def _cube(s: Setting) -> float:
    return float(np.cbrt(s.beta * s.L**2 * s.R**4))


TERM, SMOOTH_TERM = "tilted", "tilted, smooth"
F, H, G, J = "strong", "strong, smooth", "convex", "convex, smooth"
LINES = (
    Line(1, TERM, "Theorem 5.1", lambda s: s.L**2 * s.C / s.mu * s.x,
         lambda s: s.n**2 * s.d / s.C * max(s.d / s.eps, s.n / s.C),
         lambda s: 9 * s.L**2 * s.C / s.mu * s.rate, "hinge"),
    Line(1, SMOOTH_TERM, "Theorem 5.2",
         lambda s: s.L**2 * s.C / s.mu * s.x * min(1, s.kappa_tilt * s.x),
         lambda s: s.n * s.d * s.kappa_tilt,
         ours="tilted"),
    Line(2, TERM, "Theorem 5.1", lambda s: s.L**2 * s.C / s.mu * s.x,
         lambda s: s.n * s.d / s.C * max(s.n**2 / s.C, 1 / s.rate),
         lambda s: 9 * s.L**2 * s.C / s.mu * s.rate, "hinge"),
    Line(2, SMOOTH_TERM, "Theorem 5.2",
         lambda s: s.L**2 * s.C / s.mu * s.x * min(1, s.kappa_tilt * s.x),
         lambda s: s.n * s.d * s.kappa_tilt,
         ours="tilted"),
    Line(3, F, "BST14", lambda s: s.L**2 / s.mu * (s.x + 1 / s.n),
         lambda s: s.L**2 / s.mu**2 * s.n * s.d**9 / s.eps**2 * max(1, s.L / s.mu)
         + max(s.d * s.n**2, s.eps * s.n)),
    Line(3, F, "Corollary 4.1", lambda s: s.L**2 / s.mu * (s.x + 1 / s.n),
         lambda s: s.n * s.d * max(s.n, s.eps / s.d),
         lambda s: s.L**2 / s.mu * (5 / s.n + 9 * s.rate), "population"),
    Line(3, H, "CMS11",
         lambda s: s.L * s.R * (s.n**-0.5 + s.x) + s.beta * s.R**2 * s.x, None),
    Line(3, H, "ZZMW17", lambda s: s.L**2 / s.mu * (s.kappa * s.x**2 + 1 / s.n),
         lambda s: s.d * s.n * s.kappa),
    Line(3, H, "Corollary 4.2",
         lambda s: s.L**2 / s.mu * (min(s.kappa * s.x**2, s.x) + 1 / s.n), _katyusha,
         lambda s: s.L**2 / s.mu * (5 / s.n + 26 * s.kappa * s.rate**2), "population"),
    Line(3, G, "BST14", lambda s: s.L * s.R * (math.sqrt(s.x) + s.n**-0.5),
         lambda s: s.R**2 * s.d**6 * s.n**3 * max(s.d, s.eps * s.n * s.R)),
    Line(3, G, "Corollary D.1", lambda s: s.L * s.R * (math.sqrt(s.x) + s.n**-0.5),
         lambda s: s.n**2 * s.d * max(1, (s.eps / s.d) ** 2),
         lambda s: 32 * s.L * s.R * (math.sqrt(s.rate) + s.n**-0.5), "population"),
    Line(3, J, "Corollary D.2",
         lambda s: min(_cube(s) * (s.x ** (2 / 3) + s.n**-0.5),
                       s.L * s.R * (math.sqrt(s.x) + s.n**-0.5)), _regularised_katyusha,
         lambda s: 128 * _cube(s) * (s.n**-0.5 + s.rate ** (2 / 3)), "population"),
    Line(4, H, "BST14", lambda s: s.L**2 / s.mu * (1 / s.n + s.x * _log(s)),
         lambda s: s.n**2 * s.d),
    Line(4, H, "ZZMW17", lambda s: s.L**2 / s.mu * (s.kappa * s.x**2 + 1 / s.n),
         lambda s: s.kappa * s.n * s.d),
    Line(4, H, "FKT20", lambda s: s.L**2 / s.mu * (1 / s.n + s.x**2), lambda s: s.n * s.d),
    Line(4, H, "Corollary 4.2",
         lambda s: s.L**2 / s.mu * (min(s.kappa * s.x**2, s.x) + 1 / s.n), _katyusha,
         lambda s: s.L**2 / s.mu * (5 / s.n + 13.5 * s.kappa * s.rate**2), "population"),
    Line(5, F, "BST14", lambda s: s.L**2 / s.mu * s.x**2,
         lambda s: s.L**2 / s.mu**2 * s.d**9 / s.eps**2 * max(1, s.L / s.mu)
         + max(s.d * s.n**2, s.eps * s.n)),
    Line(5, F, "Corollary 3.1", lambda s: s.L**2 / s.mu * s.x,
         lambda s: max(s.d * s.n**2, s.eps * s.n),
         lambda s: 9 * s.L**2 / s.mu * s.rate, "sample"),
    Line(5, H, "CMS11", lambda s: s.L**2 / s.mu * s.x**2, None),
    Line(5, H, "ZZMW17", lambda s: s.L**2 / s.mu * s.kappa * s.x**2,
         lambda s: s.kappa * s.n * s.d),
    Line(5, H, "Corollary 3.2", lambda s: s.L**2 / s.mu * s.x * min(s.kappa * s.x, 1), _katyusha,
         lambda s: 26 * s.L**2 / s.mu * s.kappa * s.rate**2, "sample"),
    Line(5, G, "BST14", lambda s: s.L * s.R * s.x,
         lambda s: s.R**2 * s.d**6 * s.n**3 * max(s.d, s.eps * s.n * s.R)),
    Line(5, G, "Corollary C.1", lambda s: s.L * s.R * math.sqrt(s.x),
         lambda s: s.n**2 * s.d * max(1, (s.eps / s.d) ** 2),
         lambda s: 49 * s.L * s.R * math.sqrt(s.rate), "sample"),
    Line(5, J, "CMS11", lambda s: s.L * s.R * s.x, None),
    Line(5, J, "ZZMW17", lambda s: _cube(s) * s.x ** (2 / 3),
         lambda s: s.n ** (5 / 3) * s.d ** (1 / 3) * (s.eps * s.beta * s.R / s.L) ** (2 / 3)),
    Line(5, J, "Corollary C.2",
         lambda s: min(_cube(s) * s.x ** (2 / 3), s.L * s.R * math.sqrt(s.x)),
         _regularised_katyusha, lambda s: 65 * _cube(s) * s.rate ** (2 / 3), "sample"),
    Line(6, H, "KST12",
         lambda s: s.L**2 / s.mu * s.x**2 + s.beta * s.R**2 / (s.eps * s.n), None),
    Line(6, H, "BST14", lambda s: s.L**2 / s.mu * s.x**2 * _log(s), lambda s: s.d * s.n**2),
    Line(6, H, "WYX17", lambda s: s.L**2 / s.mu * s.x**2 * math.log(s.n),
         lambda s: s.d * (s.n + s.kappa)),
    Line(6, H, "ZZMW17", lambda s: s.L**2 / s.mu * s.kappa * s.x**2,
         lambda s: s.kappa * s.n * s.d),
    Line(6, H, "Corollary 3.2", lambda s: s.L**2 / s.mu * min(s.kappa * s.x**2, s.x), _katyusha,
         lambda s: 13.5 * s.L**2 / s.mu * s.kappa * s.rate**2, "sample"),
)  # fmt: skip


def bound(line: Line, s: Setting) -> RiskBound:
    """Return our bound for the losses of a line."""
    sizes = (s.n, s.d, s.eps, s.delta)
    if line.ours in {"hinge", "tilted"}:
        loss = "hinge" if line.ours == "hinge" else "logistic"
        return tilted_risk_bound(*sizes, tilt=TILT, loss=loss, regularization=RIDGE)
    smoothness = LOGISTIC.smoothness if "smooth" in line.losses else math.inf
    own = {"lipschitz": 1.0, "smoothness": smoothness, "linear_model": True}
    against = {"strong_convexity": RIDGE} if line.is_strong else {"radius": s.R}
    if line.ours == "population":
        return population_risk_bound(*sizes, **own, **against)
    ridge = RIDGE
    if line.is_strong:
        value = strongly_convex_excess_risk(*sizes, **own, **against)
    else:
        ridge = optimal_regularization(*sizes, **own, **against)
        value = convex_excess_risk(*sizes, **own, **against)
    return RiskBound(value, value, 0.0, 0.0, 0.0, ridge, 2.0 / (ridge * s.n), None)


def measured(
    line: Line, s: Setting, found: RiskBound, *, samples: int, draws: int
) -> tuple[float, float]:
    """Mean excess over samples and noise for the sensitivity of our bound, and standard error."""
    rows, weights = distribution()
    rng = np.random.default_rng(line.table)
    tilt = TILT if line.ours == "tilted" else 0.0
    ridge = found.regularization
    counted = {"tilt": tilt, "radius": 0.0, "ridge": ridge if line.is_strong else 0.0}
    best = minimiser(rows, weights, **counted)
    excess = []
    for _ in range(samples):
        seen = rng.multinomial(s.n, weights) / s.n
        model = minimiser(rows, seen, tilt=tilt, radius=0.0, ridge=ridge)
        noise = rng.standard_normal((draws, s.d))
        if s.delta == 0:
            noise /= np.linalg.norm(noise, axis=1, keepdims=True)
            noise *= rng.gamma(s.d, 1.0 / s.eps, size=(draws, 1))
        else:
            noise /= gdp_mu(s.eps, s.delta)
        distribution_of = weights if line.ours == "population" else seen
        # Without strong convexity any model of norm R will do: the minimiser of the distribution.
        against = model if line.is_strong and distribution_of is seen else best
        value = risk(rows, distribution_of, model + found.sensitivity * noise, **counted)
        excess.append(value.mean() - risk(rows, distribution_of, against, **counted)[0])
    return float(np.mean(excess)), float(np.std(excess, ddof=1) / math.sqrt(samples))


def measure(samples: int, draws: int) -> list[dict]:
    """Evaluate all lines."""
    rows, weights = distribution()
    radius = float(np.linalg.norm(minimiser(rows, weights, tilt=0.0, radius=0.0, ridge=0.0)))
    found = []
    for line in LINES:
        # All minimisers of a strongly convex objective are in the ball of the first radius.
        R = 1.0 / RIDGE if line.is_strong else radius
        s = Setting(0.0 if line.is_pure else DELTA, R=R, is_strong=line.is_strong)
        row = {"table": line.table, "losses": line.losses, "reference": line.reference}
        row |= {"order": line.order(s), "runtime": line.runtime and line.runtime(s)}
        if line.ours:
            ours = bound(line, s)
            row |= {"published": line.constant and line.constant(s), "ours": ours.value}
            if line.ours != "hinge":
                mean, error = measured(line, s, ours, samples=samples, draws=draws)
                row |= {"measured": mean, "standard_error": error}
        found.append(row)
    return found


def measured_text(row: dict) -> str:
    """Show a mean with its standard error; a star marks one above the bound."""
    if "measured" not in row:
        return "-"
    star = " *" if row["measured"] > row["ours"] else ""
    return f"{row['measured']:.2g} ± {row['standard_error']:.1g}{star}"


def table(rows: Sequence[dict]) -> str:
    """All lines in Markdown, and what a star means if there is one."""
    names = ("order", "published", "ours", "runtime")
    text = markdown(
        ["table", "losses", "", *names[:-1], "measured", names[-1]],
        (
            [str(row["table"]), row["losses"], row["reference"]]
            + ["-" if row.get(name) is None else f"{row[name]:.2g}" for name in names[:-1]]
            + [measured_text(row), "-" if row["runtime"] is None else f"{row['runtime']:.2g}"]
            for row in rows
        ),
    )
    above = [
        f"{row['reference']}: {(row['measured'] - row['ours']) / row['standard_error']:.1f}"
        for row in rows
        if row.get("measured", 0.0) > row.get("ours", math.inf)
    ]
    if above:
        text += "\n\n* above our bound, which is on a mean; in standard errors: " + ", ".join(above)
    return text


def draw(rows: Sequence[dict], picture: Path) -> None:
    """Plot the lines that are measured: theorem, our bound and the mean with its interval."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    lines = [row for row in rows if "measured" in row]
    places = -np.arange(len(lines))
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axis = figure.subplots()
    for key, mark, label in (("published", "x", "theorem"), ("ours", "|", "ours")):
        shown = [(row[key], at) for row, at in zip(lines, places, strict=True) if row[key]]
        axis.plot(*zip(*shown, strict=True), mark, markersize=8, label=label)
    means, errors = (
        np.array([row[key] for row in lines]) for key in ("measured", "standard_error")
    )
    axis.errorbar(means, places, xerr=1.96 * errors, fmt=".", capsize=3, label="measured")
    names = [f"{row['table']}: {row['losses']}, {row['reference']}" for row in lines]
    axis.set_yticks(places, names)
    axis.set(xscale="log", xlabel="excess risk")
    axis.grid(axis="x", alpha=0.3)
    axis.legend(frameon=False)
    save(figure, picture)


def main(argv: Sequence[str] | None = None) -> None:
    """Evaluate, write and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="few samples, nothing is written")
    options.add_argument("--draw", action="store_true", help="draw what the file holds")
    options.add_argument("--out", type=Path, default=RESULTS / "paper_tables.json")
    options.add_argument("--picture", type=Path, default=IMAGES / "paper_tables.svg")
    given = options.parse_args(argv)
    if given.draw:
        draw(read(given.out)["lines"], given.picture)
        return
    rows = measure(*((5, 20) if given.quick else (SAMPLES, DRAWS)))
    if not given.quick:
        draw(rows, given.picture)
        setting = {"records": RECORDS, "columns": COLUMNS, "epsilon": EPSILON, "delta": DELTA}
        merge(given.out, "setting", value=setting | {"ridge": RIDGE, "tilt": TILT})
        merge(given.out, "lines", value=[{**row, **provenance()} for row in rows])
        merge(given.out, "versions", value=versions())
    print(table(rows))


if __name__ == "__main__":
    main()
