"""The code charges what the machine-checked proofs say, and the proofs are those that are frozen.

Each expression of the map in ``docs/proofs/machine`` is evaluated at random public arguments and
compared with the formula of its statement, as Coq printed it.
"""

import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax

from dp_halfspace import PrivateTableClassifier
from dp_halfspace.data.people import People
from dp_halfspace.engine import counts, linear, moment, scales, steps
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.estimators import table
from dp_halfspace.optim.certificate import EPS, gradient_error
from dp_halfspace.privacy import exponential
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import L2LaplaceNoise
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.rows import float32_rows
from dp_halfspace.rows.blocks import _scales_from_squares
from dp_halfspace.rows.directions import asinh_cells
from dp_halfspace.selection import column_rankings
from dp_halfspace.selection.small_tables import plan_error_count
from tests import proof_map
from tests.proof_map import ROOT, covered, evaluated

# The core of the tests also runs where the documentation is not.
MAP = covered() if proof_map.FOLDER.exists() else []
GAUSSIAN = Budget.gaussian(1.0)
# A charge may exceed what is proved by the factor that rounds it up, and its own roundings.
ABOVE = 2.0**-39
BELOW = 2.0**-50


def charges(found, formula, **known):
    """Compare a number that is charged: not below what is proved, and hardly above."""
    proved = evaluated(formula, **known)
    assert proved * (1.0 - BELOW) <= found <= proved * (1.0 + ABOVE)


def equals(found, formula, **known):
    assert float(found) == pytest.approx(evaluated(formula, **known), rel=BELOW, abs=1e-300)


def of_one_count(rng):
    noise = counts.count_noise(2, GAUSSIAN, has_weights=False)
    charges(noise.sensitivity, "one_count")


def of_counts(rng):
    for n_classes, has_weights in ((2, True), (int(rng.integers(3, 50)), bool(rng.integers(2)))):
        noise = counts.count_noise(n_classes, GAUSSIAN, has_weights=has_weights)
        charges(noise.sensitivity, "counts", columns=1)


def of_columns(rng):
    n = int(rng.integers(1, 10_000))
    charges(scales._noise_of_counts(n, GAUSSIAN).sensitivity, "counts", columns=n)


def of_columns_absolute(rng):
    n = int(rng.integers(1, 10_000))
    noise = scales._noise_of_counts(n, Budget.of(1.0, 0.0))
    charges(noise.sensitivity, "counts_absolute", columns=n)


def of_column_moments(rng):
    n = int(rng.integers(1, 1000))
    for budget in (GAUSSIAN, Budget.of(1.0, 0.0)):
        plan = scales.plan_column_scales(10**4, n, budget)
        charges(plan.moments.sensitivity, "column_moments", columns=n)


def moments_of(rng):
    """Return a number in units of a column's scale, and what it adds to the moments."""
    x, width = rng.normal(scale=10.0 ** rng.integers(-2, 3)), 2.0 ** rng.integers(-9, 9)
    found = scales.clipped_moments(
        np.array([[x * width]]), scales.ColumnScales(np.zeros(1), np.full(1, width))
    )
    return x, found[:, 0]


def of_column_mean(rng):
    x, found = moments_of(rng)
    whole = np.rint(1024.0 * found[0])
    assert abs(whole) <= 1024
    assert abs(whole - np.clip(256.0 * x, -1024.0, 1024.0)) <= 0.5 + 2.0**-30
    equals(found[0], "column_mean", whole=whole)


def of_column_square(rng):
    _, found = moments_of(rng)
    equals(found[1], "column_square", whole=np.rint(1024.0 * found[0]))


def moments_of_person(rng):
    """Return whole numbers of the rows of a person, and the means as computed."""
    k = int(rng.integers(1, 40))
    whole = rng.integers(-1024, 1025, size=(k, 1))
    fine = scales.ColumnScales(np.zeros(1), np.full(1, 2.0**-8))
    found = scales._means_of_people(whole * 2.0**-8, fine, np.array([0, k]))
    return whole[:, 0], [float(each[0, 0]) for each in found]


def of_person_mean(rng):
    whole, (mean, _) = moments_of_person(rng)
    equals(abs(mean) / 1024, "person_mean", total=abs(whole.sum()), rows=len(whole))


def of_person_square(rng):
    whole, (_, square) = moments_of_person(rng)
    equals(square / 1024**2, "person_square", squares=np.square(whole).sum(), rows=len(whole))


def of_squared_lengths(rng):
    charges(linear.length_noise(GAUSSIAN).sensitivity, "squared_lengths")


def of_length_step(rng):
    X, unit = rng.normal(size=(20, 3)), float(rng.uniform(0.2, 4.0))
    for row, found in zip(X, linear._squares(X, unit), strict=True):
        square = sum(Fraction(x) ** 2 for x in row) / Fraction(unit) ** 2
        if abs(square * 2**16 - round(square * 2**16)) > 2**-20:
            equals(found / linear._SQUARE_STEPS, "length_step", square=float(square))


def of_share_of_rows(rng):
    people = People(rng.integers(1, 1000, size=int(rng.integers(1, 300))))
    for largest in (1, 2**16):
        bits = 52 - len(people).bit_length() - (largest - 1).bit_length()
        ends, found = people.starts, people.weights_for(largest)
        for k, share in zip(people.counts.tolist(), found[ends].tolist(), strict=True):
            equals(share, "share_of_rows", grid=2.0 ** min(30, bits), rows=k)


def of_second_moment(rng):
    # So few rows that their rounding errors are below the factor.
    noise = moment.moment_noise(2, 2, GAUSSIAN, is_single=False)
    charges(noise.sensitivity, "second_moment")


def of_off_diagonal(rng):
    size = int(rng.integers(2, 20))
    weights = moment._weights(size)
    for i, j, weight in zip(*np.triu_indices(size), weights, strict=True):
        if i == j:
            assert weight == 1.0
        else:
            equals(weight, "off_diagonal")


def of_row_factor(rng):
    square, longest = rng.lognormal(size=2).tolist()
    found = _scales_from_squares(np.array([square]), longest)[0]
    equals(found, "row_factor", longest=longest, norm=math.sqrt(square))


def of_first_length(rng):
    n_columns = int(rng.choice([2, moment.WIDEST + 1]))
    constant = float(rng.uniform(0.2, 5.0))
    shape = linear.Shape(PublicFacts(3, n_columns, 2, (1.0, 1.0)), constant)
    data = SimpleNamespace(
        X=rng.normal(size=(3, n_columns)), class_indices=np.array([0, 1, 1]), people=None,
        weights=None,
    )  # fmt: skip
    rows = linear.first_rows(shape, linear.Known(), data).X
    last = rows.margins(np.append(np.zeros(n_columns), 1.0))[0]
    equals(shape.first_constant / last, "first_length", constant=shape.first_constant)


def of_final_length(rng):
    radius, constant = rng.uniform(0.0, 5.0), float(rng.choice([0.0, rng.uniform(0.1, 3.0)]))
    nothing = np.zeros(1)
    centring = moment.Centring(
        nothing, 0.0, np.eye(1), nothing, nothing, nothing, np.eye(1), radius, constant
    )
    equals(centring.length, "final_length", radius=radius, constant=constant)


def of_clip_of_two(rng):
    charges(steps.clip_of(2), "clip_of_two")


def of_clip_of_many(rng):
    charges(steps.clip_of(int(rng.integers(3, 100))), "clip_of_many")


def of_clipped_slope(rng):
    classes, scores = rng.integers(0, 2, size=50), rng.normal(scale=20.0, size=50)
    found = steps.clipped_slopes(classes, np.ones(50))(scores.copy(), 0, 50)
    for y, score, slope in zip(classes, scores, found, strict=True):
        proved = evaluated("clipped_slope", sign=2.0 * y - 1.0, score=score)
        assert slope == pytest.approx(proved, rel=2.0**-48)


def of_slopes_factor(rng):
    n, n_classes = 50, int(rng.integers(2, 9))
    classes, scores = rng.integers(0, n_classes, size=n), rng.normal(scale=3.0, size=(n, n_classes))
    weights = rng.uniform(size=n)
    found = steps.clipped_slopes_of_many(classes, weights)(scores, 0, n)
    raw = np.eye(n_classes)[classes] - softmax(scores, axis=1)
    for i in range(n):
        factor = evaluated("slopes_factor", norm=float(np.linalg.norm(raw[i])))
        assert found[i] == pytest.approx(weights[i] * factor * raw[i], rel=2.0**-40, abs=2.0**-50)


def of_step(formula, n_classes):
    def check(rng):
        k = n_classes or int(rng.integers(3, 20))
        # So few rows that their rounding errors are below the factor.
        found = steps.step_sensitivity(1, int(rng.integers(1, 20)), k, 1, 1.0, is_single=False)
        charges(found, formula)

    return check


def of_choice_rate(rng):
    epsilon = float(rng.lognormal())
    _, rate = exponential._check_candidates([0.0, 1.0], epsilon, 1.0)
    equals(rate, "choice_rate", epsilon=epsilon)


def of_tallied_choice(rng):
    epsilon, asked = float(rng.lognormal()), []
    values = rng.integers(0, 30, size=200)

    def record(utilities, epsilon, *, sensitivity=1.0, multiplicities, source):
        _, rate = exponential._check_candidates(utilities, epsilon, sensitivity)
        asked.append((utilities, rate, multiplicities))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exponential, "exponential_mechanism", record)
        exponential.TalliedChoice(epsilon).perturb(values, exponential.OS_RANDOMNESS)
    ((utilities, rate, members),) = asked
    equals(rate, "choice_rate", epsilon=epsilon)
    assert [-cost for cost in utilities] == sorted(set(values.tolist()))
    assert members.tolist() == [(values == -cost).sum() for cost in utilities]


def of_tallied_choices(rng):
    epsilon, asked = float(rng.lognormal()), []

    def record(utilities, epsilon, *, sensitivity=1.0, multiplicities, source):
        asked.append(exponential._check_candidates(utilities, epsilon, sensitivity)[1])
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exponential, "exponential_mechanism", record)
        both = exponential.TalliedChoices((3, 2), epsilon)
        both.perturb(rng.integers(0, 30, size=5), exponential.OS_RANDOMNESS)
    assert len(asked) == 2
    for rate in asked:
        equals(rate, "choice_rate", epsilon=epsilon)


def of_counted_choice(rng):
    whole = float(rng.lognormal())
    choice, asked = exponential.CountedChoice(whole, whole * rng.uniform(0.1, 0.9)), []

    def record(epsilon):
        asked.append(epsilon)
        return SimpleNamespace(perturb=lambda value, source: np.zeros(1))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exponential, "TalliedChoice", record)
        choice.perturb(np.array([3, 4]), exponential.OS_RANDOMNESS)
    down, up = choice.rates
    assert up == Fraction(whole)
    equals(asked[0] / 2.0, "counted_choice_rate", epsilon=float(up), down=float(down))


def of_laplace_rate(rng):
    sensitivity, epsilon = int(rng.integers(1, 1000)), float(rng.lognormal())
    rate = DiscreteLaplaceNoise(sensitivity, epsilon)._rate
    equals(rate, "laplace_rate", sensitivity=sensitivity, epsilon=epsilon)


def of_laplace_scale(rng):
    sensitivity, epsilon = rng.lognormal(size=2).tolist()
    found, proved = L2LaplaceNoise(sensitivity, epsilon).scale, sensitivity / epsilon
    assert evaluated("laplace_scale", sensitivity=sensitivity, epsilon=epsilon) == proved
    assert proved <= found <= proved * (1.0 + 2.0**-29)


def of_error_count(rng):
    noise, _ = plan_error_count(int(rng.integers(20, 10**5)), float(rng.lognormal()), 2)
    charges(noise.sensitivity, "one_count")


def of_rare_count(rng):
    asked, n = [], 600
    X, y = rng.normal(size=(n, 2)), np.arange(n) % 2

    def record(sensitivity, epsilon):
        asked.append(sensitivity)
        return DiscreteLaplaceNoise(sensitivity, epsilon)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "DiscreteLaplaceNoise", record)
        PrivateTableClassifier(epsilon=1.0, delta=1e-6, classes=[0, 1]).plan(X, y)
    for sensitivity in asked:
        charges(sensitivity, "one_count")
    assert asked


def of_missed_records(rng):
    n = int(rng.integers(4, 60))
    column, is_rare = rng.integers(-3, 4, size=n).astype(float), rng.random(n) < 0.3
    cells, size = asinh_cells(column, column_rankings._EXPONENT), max(1, 3 * n // 10)
    for found, score in zip(
        column_rankings.missed_records(column, is_rare), (cells, -cells), strict=True
    ):
        end = np.sort(score)[-size]
        equals(
            found, "missed_records", below=(is_rare & (score <= end)).sum(),
            rare_at_end=(is_rare & (score == end)).sum(), left=size - (score > end).sum(),
            at_end=(score == end).sum(),
        )  # fmt: skip


def sizes_of(rng):
    """Return public sizes: so many rows that their rounding errors can be seen."""
    n, block = int(10 ** rng.uniform(5, 9)), int(rng.integers(48, 8193))
    return {"records": n, "block": block, "blocks": min(-(-n // block), 256)}


def of_moment_rounding(rng):
    sizes = sizes_of(rng)
    noise = moment.moment_noise(sizes["records"], sizes["block"], GAUSSIAN, is_single=False)
    proved = evaluated("second_moment") + evaluated("moment_rounding", **sizes)
    assert proved <= noise.sensitivity <= proved + 2.0**-39


def of_moment_rounding_float32(rng):
    sizes = sizes_of(rng)
    noises = [
        moment.moment_noise(sizes["records"], sizes["block"], GAUSSIAN, is_single=is_single)
        for is_single in (True, False)
    ]
    added = noises[0].sensitivity - noises[1].sensitivity
    proved = evaluated("moment_rounding_float32", group=float32_rows.GRAM_GROUP)
    assert added == pytest.approx(proved, rel=2.0**-30)


def sums_error(sizes, clip, evaluation):
    return gradient_error(
        n_samples=sizes["records"], n_columns=5, block_rows=sizes["block"], row_norm=1.0,
        ridge=0.0, radius=1.0, slope=clip, smoothness=0.0, evaluation=evaluation, compensated=True,
    )  # fmt: skip


def of_gradient_rounding(rng):
    sizes, clip, evaluation = sizes_of(rng), rng.uniform(0.1, 2.0), rng.uniform(8.0, 200.0)
    found = sums_error(sizes, clip, evaluation)
    proved = evaluated("gradient_rounding", clip=clip, evaluation=evaluation, **sizes)
    assert found == pytest.approx(proved, rel=2.0**-45)


def of_group_rounding(rng):
    stretch = float(rng.uniform(1.0, 1.01 * moment.LARGEST_STRETCH))
    group = float32_rows.group_size(stretch)
    share = evaluated("single_share")
    assert evaluated("group_rounding", group=group, stretch=stretch) <= share
    longer = evaluated("group_rounding", group=2 * group, stretch=stretch)
    assert group == float32_rows.GRAM_GROUP or longer > share


def of_single_share(rng):
    n_classes = int(rng.choice([2, rng.integers(3, 20)]))
    single, double = (
        steps.step_sensitivity(1, 5, n_classes, 1, 1.0, is_single=is_single)
        for is_single in (True, False)
    )
    share = (single - double) / (2.0 * steps.clip_of(n_classes)) - 2.0**-23 * (n_classes + 16)
    assert share == pytest.approx(evaluated("single_share"), rel=2.0**-30)


def of_product_rounding(rng):
    sizes, columns = sizes_of(rng), int(rng.integers(2, 500))
    how = sizes["records"], columns, 2, sizes["block"]
    near, far = (steps.step_sensitivity(*how, 1e6 * k, is_single=False) for k in (1.0, 2.0))
    clip = steps.clip_of(2)
    product = (far - near) / 2e6 - sums_error(sizes, clip, 36.0)
    proved = evaluated("product_rounding", columns=columns) * sizes["records"] * clip
    assert product == pytest.approx(proved, rel=2.0**-20)


def of_whole_step(formula, *, is_single):
    def check(rng):
        sizes, columns = sizes_of(rng), int(rng.integers(2, 513))
        n_classes, stretch = int(rng.choice([2, rng.integers(3, 20)])), moment.LARGEST_STRETCH
        found = steps.step_sensitivity(
            sizes["records"], columns, n_classes, sizes["block"], stretch, is_single=is_single
        )
        mapped = steps._LARGEST_MAPPED * steps.ball(steps.shape_of(columns, n_classes))
        clip = evaluated("clip_of_two" if n_classes == 2 else "clip_of_many")
        evaluation = 2.0 * n_classes + 32.0
        proved = evaluated(
            formula, clip=clip, evaluation=evaluation, mapped=mapped, stretch=stretch,
            columns=columns, classes=n_classes, **sizes,
        )  # fmt: skip
        # Underflow adds a number that cannot be seen.
        assert found == pytest.approx(proved, rel=2.0**-45)
        # What the statements assume of these numbers.
        assert (0.5 * (columns + 5) * mapped + evaluation) * EPS <= clip / 1000
        assert stretch >= 256
        assert 2.0**-23 * (n_classes + 16) <= 1 / 5000
        assert (float32_rows.GRAM_GROUP + 6) * float32_rows.SINGLE_EPS <= 1 / 1000

    return check


CHECKS = {
    ("count_noise", "one_count"): of_one_count,
    ("count_noise", "counts"): of_counts,
    ("_noise_of_counts", "counts"): of_columns,
    ("_noise_of_counts", "counts_absolute"): of_columns_absolute,
    ("plan_column_scales", "column_moments"): of_column_moments,
    ("clipped_moments", "column_mean"): of_column_mean,
    ("clipped_moments", "column_square"): of_column_square,
    ("_means_of_people", "person_mean"): of_person_mean,
    ("_means_of_people", "person_square"): of_person_square,
    ("length_noise", "squared_lengths"): of_squared_lengths,
    ("_squares", "length_step"): of_length_step,
    ("People.weights_for", "share_of_rows"): of_share_of_rows,
    ("moment_noise", "second_moment"): of_second_moment,
    ("_weights", "off_diagonal"): of_off_diagonal,
    ("_scales_from_squares", "row_factor"): of_row_factor,
    ("first_rows_of", "first_length"): of_first_length,
    ("Centring.length", "final_length"): of_final_length,
    ("clip_of", "clip_of_two"): of_clip_of_two,
    ("clip_of", "clip_of_many"): of_clip_of_many,
    ("clipped_slopes", "clipped_slope"): of_clipped_slope,
    ("clipped_slopes_of_many", "slopes_factor"): of_slopes_factor,
    ("step_sensitivity", "step_of_two"): of_step("step_of_two", 2),
    ("step_sensitivity", "step_of_many"): of_step("step_of_many", None),
    ("_check_candidates", "choice_rate"): of_choice_rate,
    ("TalliedChoice.perturb", "choice_rate"): of_tallied_choice,
    ("TalliedChoices.perturb", "choice_rate"): of_tallied_choices,
    ("CountedChoice.perturb", "counted_choice_rate"): of_counted_choice,
    ("CountedChoice.rates", "counted_choice_rate"): of_counted_choice,
    ("DiscreteLaplaceNoise._rate", "laplace_rate"): of_laplace_rate,
    ("L2LaplaceNoise.scale", "laplace_scale"): of_laplace_scale,
    ("plan_error_count", "one_count"): of_error_count,
    ("PrivateTableClassifier._rare_fit", "one_count"): of_rare_count,
    ("missed_records", "missed_records"): of_missed_records,
    ("moment_noise", "moment_rounding"): of_moment_rounding,
    ("moment_noise", "moment_rounding_float32"): of_moment_rounding_float32,
    ("gradient_error", "gradient_rounding"): of_gradient_rounding,
    ("group_size", "group_rounding"): of_group_rounding,
    ("step_sensitivity", "single_share"): of_single_share,
    ("step_sensitivity", "product_rounding"): of_product_rounding,
    ("step_sensitivity", "step_float64"): of_whole_step("step_float64", is_single=False),
    ("step_sensitivity", "step_float32"): of_whole_step("step_float32", is_single=True),
}  # fmt: skip


# Formulas that are constants of the code.
CONSTANTS = {
    "unit_float64": EPS,
    "unit_float32": float32_rows.SINGLE_EPS,
    "largest_stretch": moment.LARGEST_STRETCH,
}


def named(each):
    return f"{each.function}-{each.formula}"


@pytest.mark.parametrize("each", MAP, ids=named)
def test_the_code_computes_the_formula_of_its_statement(each):
    rng = np.random.default_rng(0)
    repeats = 1 if each.function.startswith("PrivateTable") else 20
    for _ in range(repeats):
        CHECKS[each.function, each.formula](rng)


@pytest.mark.parametrize("each", MAP, ids=named)
def test_a_statement_covers_an_expression_that_is_there(each):
    assert each.occurrences == 1
    assert each.statement in proof_map.statements()
    text = proof_map.definitions("Statements")[each.statement]
    assert re.search(rf"\bvalue {each.formula}\b", text)


def test_every_formula_of_a_statement_is_in_the_map():
    assert {(each.function, each.formula) for each in MAP} == set(CHECKS)
    parts = {"margins_rounding"}  # of `step_float64`
    assert {each.formula for each in MAP} | set(CONSTANTS) | parts == set(
        proof_map.kept("formulas")
    )
    assert set(proof_map.formulas()) == set(proof_map.kept("formulas"))


@pytest.mark.parametrize("formula", CONSTANTS)
def test_a_constant_is_that_of_the_statements(formula):
    equals(CONSTANTS[formula], formula)


def test_definitions_and_statements_are_frozen():
    """Who changes a claim on purpose writes its new digest by ``.ci/proofs --write``."""
    assert proof_map.frozen() == proof_map.kept("frozen")


def test_everything_that_is_claimed_is_a_definition():
    """Whatever else stands in these files would be outside the digests."""
    for name in proof_map.CLAIMS:
        text = proof_map._COMMENT.sub("", proof_map.source_of(name))
        for definition in proof_map._SENTENCE.finditer(text):
            text = text.replace(definition[0], "", 1)
        left = {line.split()[0] for line in text.splitlines() if line.strip()}
        assert left <= {"From", "Import", "Open"}


def test_a_weaker_statement_is_noticed(monkeypatch):
    text, before = proof_map.source_of, proof_map.frozen()
    weaker = "norm places (change n f S S') <= 3 * c"
    monkeypatch.setattr(
        proof_map,
        "source_of",
        lambda name: text(name).replace("norm places (change n f S S') <= 2 * c", weaker),
    )
    after = proof_map.frozen()
    assert [name for name in before if before[name] != after[name]] == [
        "Statements.replace_one_sum"
    ]


def test_proofs_map_and_functions_are_those_that_were_compiled_last():
    """A changed function may have left its proof behind: read both, then ``.ci/proofs --write``."""
    assert proof_map.current() == proof_map.kept("compiled")


def test_a_changed_or_renamed_function_is_noticed(monkeypatch):
    first = MAP[0]
    with pytest.raises(ValueError, match="has 0 functions"):
        _ = replace(first, function="renamed").tokens
    before = proof_map.current()["functions"]
    tokens = proof_map.Covered.tokens

    def changed(each):
        found = tokens.fget(each)
        return [*found, "half"] if each.function == first.function else found

    monkeypatch.setattr(proof_map.Covered, "tokens", property(changed))
    assert proof_map.current()["functions"] != before


def test_a_proof_may_not_be_assumed():
    for name in proof_map.SOURCES:
        words = set(proof_map._COMMENT.sub("", proof_map.source_of(name)).replace(".", " ").split())
        assert not words & {"Axiom", "Parameter", "Admitted", "admit", "Conjecture", "Hypothesis"}


needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None,
    reason="coqc is not installed: the proofs in docs/proofs/machine were not compiled here",
)


def compiled(*options):
    command = [sys.executable, ROOT / ".ci" / "proofs", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_coq
def test_the_proofs_compile_if_they_changed():
    done = compiled("--if-changed")
    assert done.returncode == 0, done.stderr


@needs_coq
@pytest.mark.slow
def test_the_proofs_compile():
    done = compiled()
    assert done.returncode == 0, done.stderr
    assert f"{len(proof_map.statements())} statements are proved" in done.stdout
