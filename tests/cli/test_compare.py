"""The comparison: which estimators run, what they are given, how they are scored."""

import io
import warnings
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from dp_halfspace._cli.arguments import parse_options
from dp_halfspace._cli.compare import compare, private_estimators
from dp_halfspace._cli.problems import Problem


def problem(n_classes=2, n=90):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X = rng.normal(0, 0.1, (n, 3)) + np.eye(max(n_classes, 3))[y][:, :3]
    return Problem("toy", X, y, list(range(n_classes)), "none", 2.0)


def options(*arguments):
    return parse_options(["--repeats", "2", *arguments])


def run(toy, *arguments):
    return compare(toy, options(*arguments), io.StringIO())


def test_suite_leaves_out_what_is_no_classifier_or_needs_an_argument(suite):
    suite(suite.fake, suite.meta, suite.binary)
    assert list(private_estimators()) == ["BinaryClassifier", "FakeClassifier"]


def test_estimators_get_the_public_facts(suite, monkeypatch):
    seen = []
    original = suite.fake.fit

    def fit(self, X, y):
        seen.append((self.epsilon, self.delta, self.data_norm, self.classes, self.random_state))
        return original(self, X, y)

    monkeypatch.setattr(suite.fake, "fit", fit)
    run(problem(), "--epsilon", "1", "2", "--delta", "1e-4")
    assert seen == [(e, 1e-4, 2.0, [0, 1], None) for _ in range(2) for e in (1.0, 2.0)]
    seen.clear()
    run(problem(), "--epsilon", "1", "2", "--seed", "0")
    assert len({entry[-1] for entry in seen}) == 4  # no two fits share their noise


def test_kinds_of_data_that_an_estimator_does_not_take(suite):
    suite(suite.fake, suite.binary)
    many = run(problem(3), "--epsilon", "1")
    assert many.notes == ("BinaryClassifier was left out, it is for two classes.",)
    toy = problem()
    sparse = run(replace(toy, X=csr_matrix(toy.X)), "--epsilon", "1")
    assert sparse.notes == ("BinaryClassifier was left out, it takes no sparse rows.",)
    assert {s.estimator for s in sparse.scores} >= {"FakeClassifier", "LinearSVC, not private"}


def test_refusals_for_one_reason_become_one_note(suite):
    suite(suite.refusing)
    result = run(problem(), "--epsilon", "0.25", "0.5", "2")
    assert result.notes == (
        "RefusingClassifier at epsilon 0.25, 0.5 refused: epsilon is too small for this sketch.",
    )
    assert {s.epsilon for s in result.scores} == {None, 2.0}


def test_pure_classes_take_part_with_delta_0_and_say_so(suite):
    suite(suite.fake, suite.pure)
    result = run(problem(), "--epsilon", "1", "2")
    spent = {(s.estimator, s.delta_spent) for s in result.scores if s.epsilon}
    assert ("PureClassifier", 0.0) in spent
    assert all(delta > 0 for name, delta in spent if name == "FakeClassifier")
    assert result.notes == (
        "PureClassifier: pure epsilon only, hence fitted with delta 0, a stronger promise than "
        "(epsilon, delta).",
    )
    assert run(problem(), "--epsilon", "1", "--delta", "0").notes == ()


def test_all_of_the_real_suite_takes_part():
    rows = problem(n=300)
    result = run(replace(rows, X=rows.X[:, :2]), "--repeats", "1", "--epsilon", "1")
    assert {s.estimator for s in result.scores if s.epsilon} == set(private_estimators())
    (note,) = result.notes
    assert note.startswith("PureHalfspaceClassifier, PureNetworkClassifier: pure epsilon only")
    adjacency = {s.estimator: s.adjacency for s in result.scores}
    assert {name for name, value in adjacency.items() if value == "replace-one-label"} == {
        "LabelPrivateClassifier"
    }
    assert adjacency["majority class"] is adjacency["LinearSVC, not private"] is None


def test_warnings_become_one_note_each(suite):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(problem(), "--epsilon", "1", "2", "--seed", "1")
    assert result.notes[0].startswith("--seed gives every classifier an int random_state")
    assert result.notes[1:] == ("PrivacyWarning: the noise is seeded",)
