"""Budgets: what counts as a fall, and that the page is true."""

from benchmarks import budgets
from benchmarks.cells import read


def curves(better="area", worse="10", by=0.1, error=0.0):
    """Cells in which every budget is equally good, but for one measure at one budget."""
    level = {"accuracy": 0.8, "area": 0.7, "log_loss": 0.5, "brier": 0.2}
    names = dict.fromkeys(level, error)
    cell = {"mean": level, "error": names, "n_train": 1000}
    curve = dict.fromkeys(budgets.EPSILONS, cell)
    changed = level | {better: level[better] - by}
    found = {method: curve | {worse: cell | {"mean": changed}} for method in budgets.CLASSES}
    return {"t": found | {"majority": {"any": cell}, "logistic": {"any": cell}}}


def test_a_fall_is_larger_than_a_hundredth_and_its_errors():
    ((name, method, measure, low, high, fall), _) = budgets.falls(curves())
    assert (name, method, measure, high) == ("t", "table", "area", "10")
    assert float(low) < 10.0
    assert abs(fall - 0.1) < 1e-12
    assert not list(budgets.falls(curves(by=0.009)))
    assert not list(budgets.falls(curves(by=-0.1, worse="10")))
    assert not list(budgets.falls(curves(error=0.03)))
    assert len(list(budgets.falls(curves("log_loss", by=-0.1)))) == 2


def test_probabilities_are_compared_with_the_shares_where_a_table_can_be_learnt():
    assert len(list(budgets.worse_than_shares(curves("brier", by=-0.1)))) == 2
    assert not list(budgets.worse_than_shares(curves("brier", by=-0.001)))
    assert not list(budgets.worse_than_shares(curves("brier", worse="0.2", by=-0.1)))
    hard = curves("brier", by=-0.1)
    hard["t"]["logistic"]["any"] = hard["t"]["logistic"]["any"] | {"mean": {"area": 0.5}}
    assert not list(budgets.worse_than_shares(hard))


def test_the_page_shows_the_stored_results():
    page = budgets.PAGE.read_text()
    for part in budgets.tables(read(budgets.OUT)["cells"]).values():
        assert part in page
