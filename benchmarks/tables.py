"""Turn the results into Markdown, and put them into the pages of benchmarks, between markers."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cells import ANY_BUDGET, RESULTS, read
from benchmarks.methods import METHODS, RANKINGS, Method
from benchmarks.published_auc import PUBLISHED

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (DOCS / "benchmarks.md", *sorted((DOCS / "benchmarks").glob("*.md")))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """One table with its columns padded, so that it reads well as plain text too."""
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    lines = [" | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in table]
    lines.insert(1, " | ".join("-" * w for w in widths))
    return "\n".join(f"| {line} |" for line in lines)


def _number(cell: dict | None) -> str:
    """Mean score, with its standard deviation over the draws where there are draws."""
    if cell is None:
        return "-"
    mean = f"{cell['mean']:.4f}"
    return mean if cell["draws"] == 1 else f"{mean} ± {cell['sd']:.4f}"


def score_table(
    found: dict[str, dict],
    methods: Mapping[str, Method] = METHODS,
    budgets: Sequence[str] | None = None,
) -> str:
    """Lay out one data set: a row per method, a column per budget; the best private one is bold."""
    keys = [key for key in methods if key in found]
    labels = {label for key in keys for label in found[key]} - {ANY_BUDGET}
    budgets = sorted(labels, key=float) if budgets is None else budgets
    best = {}
    for label in budgets:
        means = [found[key][label]["mean"] for key in keys if label in found[key]]
        best[label] = f"{max(means, default=0.0):.4f}"
    rows = []
    for key in keys:
        title = methods[key].title
        if not methods[key].private:
            rows.append([title, *[_number(found[key].get(ANY_BUDGET))] * len(budgets)])
            continue
        texts = {label: _number(found[key].get(label)) for label in budgets}
        bold = {k: f"**{t}**" if t.startswith(best[k]) else t for k, t in texts.items()}
        rows.append([title, *bold.values()])
    return markdown(["", *(f"epsilon {label}" for label in budgets)], rows)


# A difference of means from which one method counts as ahead of another.
AHEAD = 0.01


def short(value: float) -> str:
    """Write three digits, without the zero in front."""
    text = f"{value:.3f}".lstrip("0")
    return "1" if text == "1.000" else text


def compared(
    results: dict,
    methods: Mapping[str, Method],
    ours: str,
    shown: Sequence[str] | None = None,
) -> str:
    """Lay out all data sets: a row per method, a cell per set with the means of budgets.

    These are the budgets that are `shown`, or all. The last column says in how many cells `ours` is
    ahead, and behind, by more than `AHEAD`, and of how many if not of all; the row below `ours` has
    the largest standard deviation of one fit.
    """
    cells = results["cells"]
    budgets = {
        name: shown or sorted({k for one in found.values() for k in one} - {ANY_BUDGET}, key=float)
        for name, found in cells.items()
    }
    n_cells = sum(map(len, budgets.values()))
    rows = []
    for key in (k for k in methods if any(k in found for found in cells.values())):
        row, gaps = [methods[key].title], []
        for name, found in cells.items():
            means = found.get(key, {})
            labels = [ANY_BUDGET] if ANY_BUDGET in means else budgets[name]
            row.append("/".join(short(means[k]["mean"]) if k in means else "-" for k in labels))
            gaps += [
                found[ours][k]["mean"] - means[k]["mean"]
                for k in budgets[name]
                if methods[key].private and k in means and k in found.get(ours, {})
            ]
        row = ["-" if set(cell) <= set("-/") else cell for cell in row]
        ahead, behind = (sum(sign * gap > AHEAD for gap in gaps) for sign in (1, -1))
        of = "" if len(gaps) == n_cells else f" of {len(gaps)}"
        row.append(f"{ahead}/{behind}{of}" if gaps and key != ours else "")
        rows.append(row)
        if key == ours:
            spreads = [
                max(found[ours][k]["sd"] for k in budgets[name] if k in found[ours])
                for name, found in cells.items()
            ]
            rows.append(["largest standard deviation of a fit", *map(short, spreads), ""])
    facts = results["problems"]
    sizes = [f"{name} ({facts[name]['n_train']} x {facts[name]['n_features']})" for name in cells]
    return markdown(["", *sizes, f"ahead/behind of {n_cells}"], rows)


def score_tables(
    results: dict,
    methods: Mapping[str, Method] = METHODS,
    budgets: Sequence[str] | None = None,
) -> str:
    """One table per data set, each under a line that says what the set is."""
    parts = []
    for name, found in results.get("cells", {}).items():
        facts = results["problems"][name]
        parts.append(
            f"**{name}**: {facts['n_train']} training and {facts['n_test']} test rows, "
            f"{facts['n_features']} columns, {facts['n_classes']} classes"
        )
        parts.append(score_table(found, methods, budgets))
    return "\n\n".join([*parts, *filter(None, [missing_list(results, methods)])])


def missing_list(results: dict, methods: Mapping[str, Method] = METHODS) -> str:
    """Say which methods have no number and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, found in results.get("missing", {}).items():
        for key, reason in found.items():
            if reason is not None:
                reasons.setdefault((key, reason), []).append(name)
    lines = [
        f"- No {methods[key].title} on {', '.join(names)}: {reason}"
        for (key, reason), names in reasons.items()
    ]
    return "\n".join(lines)


def speed_table(results: dict) -> str:
    """Show ratios of times to those of scikit-learn and milliseconds: a row per data set.

    The last columns are the extra memory of the linear default, and the share of noise in its time.
    """
    limits, speeds = results.get("limits", {}), results["speed"]
    keys = list(dict.fromkeys(key for found in speeds.values() for key in found["methods"]))
    rows = []
    for name, found in speeds.items():
        row = [f"{name} {found['shape']}"]
        for key in keys:
            timing = found["methods"].get(key)
            row.append(
                f"{timing['ratio_quartiles'][1]:.2f} ({1e3 * timing['seconds']:.0f})"
                if timing
                else "-"
            )
        ours = found["methods"]["adaptive_margin"]
        row += [f"{ours['megabytes']:.1f}", f"{100 * ours['noise_share']:.0f} %"]
        rows.append(row)
    rows.append(["target", *(f"{limits[k]:.1f}" if k in limits else "-" for k in keys), "", "5 %"])
    text = markdown(["data", *keys, "MB", "noise"], rows)
    if "import" in results:
        low, middle, high = results["import"]["quartiles"]
        text += f"\n\nImport: {middle:.0f} [{low:.0f}, {high:.0f}] ms."
    return text


def dimension_table(results: dict) -> str:
    """Accuracy against the number of columns: a row per method, with the largest deviation."""
    cells = results["cells"]
    sizes = sorted({int(d) for found in cells.values() for d in found})
    rows = [
        [
            METHODS[key].title,
            *(short(cells[key][str(d)]["mean"]) if str(d) in cells[key] else "-" for d in sizes),
            short(max(cell["sd"] for cell in cells[key].values())),
        ]
        for key in METHODS
        if key in cells
    ]
    head = ["", *(f"d = {d}" for d in sizes), "largest standard deviation of a fit"]
    return markdown(head, rows)


def removed_table(results: dict) -> str:
    """Points to remove for a margin, and what the private classifier reaches, per features."""
    rows = []
    for name, found in results["cells"].items():
        share = {f"{100 * s:.1f} %": m for s, m in zip(*found["curve"], strict=True)}
        separable = next((text for text, margin in share.items() if margin > 0), "-")
        margin = f"{found['last_margin']:.4f} ± {found['half'][-1]:.4f}"
        rows.append([name, separable, margin, _number(found["private"])])
    header = ["features", "removed until separable", "margin (95 %)", "private accuracy"]
    return markdown(header, rows)


def tilt_table(results: dict) -> str:
    """Test loss of the worst group and accuracy, per data set and budget, by tilt."""
    parts = []
    for name, found in results["cells"].items():
        tilts = sorted(next(iter(found.values())), key=float)
        rows = []
        for epsilon, by_tilt in found.items():
            who = "not private" if epsilon == "inf" else f"epsilon {epsilon}"
            texts = [f"{by_tilt[t]['worst']:.2f}/{short(by_tilt[t]['accuracy'])}" for t in tilts]
            rows.append([f"{name}, {who}", *texts])
        header = ["loss of the worst group / accuracy", *(f"tilt {t}" for t in tilts)]
        parts.append(markdown(header, rows))
    return "\n\n".join(parts)


def robust_table(results: dict) -> str:
    """Test accuracy against an adversary, trained without one and against it, by radius."""
    parts = []
    for name, found in results["cells"].items():
        shares = next(iter(found.values()))["shares"]
        rows = []
        for epsilon, cell in found.items():
            who = "not private" if epsilon == "inf" else f"epsilon {epsilon}"
            for trained in ("without", "against"):
                means = map(short, cell[trained]["mean"])
                rows.append([f"{who}, trained {trained}", *means])
        parts.append(markdown([name, *(f"{share:g}" for share in shares)], rows))
    return "\n\n".join(parts)


def less_noise_table(results: dict) -> str:
    """Area under the ROC curve when the noise is divided by a factor: it is not private then."""
    found = results["less_noise"]
    factors = sorted({f for row in found.values() for f in row}, key=float)
    rows = [[name, *(short(row[f]["mean"]) for f in factors)] for name, row in found.items()]
    return markdown(["", *(f"noise / {f}" for f in factors)], rows)


def of_printed_protocol(results: dict) -> dict:
    """Take the cells of the printed protocol, and those of our classes, which chose nothing.

    Without them the results stay as they are.
    """
    if "printed" not in results:
        return results
    ours = {
        name: {key: cell for key, cell in found.items() if PUBLISHED[key].group == "ours"}
        for name, found in results.get("cells", {}).items()
    }
    printed = results["printed"]
    names = [name for name in ours if name in printed]
    return {**results, "cells": {name: {**printed[name], **ours[name]} for name in names}}


def published_table(results: dict) -> str:
    """Lay out the reproduction of one paper: means at four budgets."""
    printed = of_printed_protocol(results)
    return compared(printed, PUBLISHED, "auc", ("0.05", "0.1", "0.2", "0.5"))


def sections(folder: Path = RESULTS) -> dict[str, str]:
    """Make the generated parts of the pages, by the name of their marker."""
    others = (m for m in METHODS.values() if m.group != "ours")
    parts = {"methods": "\n".join(f"- **{m.title}**: {m.about}" for m in others)}
    printers: dict[str, Callable[[dict], str]] = {
        "linear": partial(compared, methods=METHODS, ours="adaptive_margin"),
        "multiclass": partial(compared, methods=METHODS, ours="adaptive_margin"),
        "auc": partial(compared, methods=RANKINGS, ours="auc"),
        "paper_auc": published_table,
        "speed": speed_table,
    }
    for name, text in printers.items():
        results = read(folder / f"{name}.json")
        if results:
            parts[name] = text(results)
    return parts


def margins_table(results: dict) -> str:
    """Errors and numbers of records at known margins: a table for what they are plotted against."""
    parts = []
    for name, panels in (("error", "errors"), ("records for an error of .1; bound", "samples")):
        for axis, found in results.get(panels, {}).items():
            places = sorted({at for cells in found.values() for at in cells}, key=float)
            rows = [
                [label, *(_margins_text(cells.get(at)) for at in places)]
                for label, cells in found.items()
            ]
            parts.append(markdown([f"{name}, {axis}", *places], rows))
    return "\n\n".join(parts)


def _margins_text(cell: dict | None) -> str:
    """Show a mean with its interval, or a number of records with its interval; the bound."""
    if cell is None:
        return "-"
    if "mean" in cell:
        return f"{cell['mean']:.3f} ± {cell['half']:.3f}"
    low, middle, high = ("more" if cell[k] is None else cell[k] for k in ("low", "middle", "high"))
    return f"{middle} ({low} to {high}); {cell['sufficient']}"


def fill(page: str, parts: dict[str, str]) -> str:
    """Replace what stands between the markers of each part."""
    for name, text in parts.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the page must hold {begin} and {end} once each")
        head, rest = page.split(begin)
        tail = rest.split(end)[1]
        page = f"{head}{begin}\n{text}\n{end}{tail}"
    return page


def parts_of(page: str, parts: dict[str, str]) -> dict[str, str]:
    """Return the parts that the page has a marker for."""
    return {name: text for name, text in parts.items() if f"<!-- {name}: begin -->" in page}


def main(argv: Sequence[str] | None = None) -> None:
    """Rewrite the generated parts of the pages."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--results", type=Path, default=RESULTS)
    given = options.parse_args(argv)
    parts = sections(given.results)
    for path in PAGES:
        page = path.read_text()
        path.write_text(fill(page, parts_of(page, parts)))
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
