"""Lines on which privacy rests, each with a wrong one in its place and the test that notices.

``python -m tests.mutations`` runs them. An entry names a file, a function in it, and a fragment of
whole tokens that occurs once in that function, whatever spaces, line ends and comments stand
between them. ``tests/test_mutations.py`` checks that every fragment is there; whoever rewords one
rewords its entry.
"""
# ruff: noqa: E501

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

# Strings, numbers, names and operators; a comment is a token that is dropped.
_TOKEN = re.compile(
    r"""[A-Za-z]{0,2}(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|\#[^\n]*|(?:\d|\.\d)(?:[\w.]*[eE][+-]\d+|[\w.]*)|\w+"""
    r"""|\*\*=?|//=?|>>=?|<<=?|[<>=!]=|->|:=|[-+*/%&|^@]=|\.\.\.|\S""",
    re.DOTALL,
)


@lru_cache(maxsize=256)
def _tokens(text: str) -> list[tuple[str, int, int]]:
    """Return tokens with their places."""
    found = _TOKEN.finditer(text)
    return [(token[0], token.start(), token.end()) for token in found if token[0][0] != "#"]


@lru_cache(maxsize=128)
def _spans(source: str) -> list[tuple[str, int, int]]:
    """Return classes, functions and methods by name, decorators included, with their places.

    Overloads are left out: they are types only.
    """
    ends = [0]
    for line in source.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))

    def within(nodes: list[ast.stmt], owner: str) -> Iterator[tuple[str, int, int]]:
        for node in nodes:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                if any(ast.unparse(each) == "overload" for each in node.decorator_list):
                    continue
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                yield owner + node.name, ends[first - 1], ends[node.end_lineno or first]
            if isinstance(node, ast.ClassDef):
                yield from within(node.body, f"{owner}{node.name}.")

    return list(within(ast.parse(source).body, ""))


@dataclass(frozen=True)
class Mutant:
    """A change of one place in a file of the package, and tests of which one has to fail.

    `function` is a function, ``Class.method``, a class, or empty for a whole file.
    """

    file: str
    function: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, source: str) -> str:
        """Change the source of the file."""
        place = f"{self.function or 'the code'} of {self.file}"
        spans = [(start, end) for name, start, end in _spans(source) if name == self.function]
        if not self.function:
            spans = [(0, len(source))]
        if len(spans) != 1:
            raise ValueError(f"there are {len(spans)} places by the name of {place}")
        start, end = spans[0]
        tokens, wanted = _tokens(source[start:end]), [text for text, _, _ in _tokens(self.old)]
        texts, size = [text for text, _, _ in tokens], len(wanted)
        found = [i for i in range(len(texts) - size + 1) if texts[i : i + size] == wanted]
        if len(found) != 1 or not wanted:
            raise ValueError(
                f"{self.old!r} is {len(found)} times in {place}: it must be there once"
            )
        first, last = tokens[found[0]], tokens[found[0] + size - 1]
        return source[: start + first[1]] + self.new + source[start + last[2] :]

    def __str__(self) -> str:
        place = f"{self.file} {self.function}".strip()
        return f"{place}: {self.old!r} -> {self.new!r} ({self.tests[0]})"


def of(file: str, home: str, *changes: tuple[str, str, str, str]) -> list[Mutant]:
    """List changes of a file; their tests are in `home`, or elsewhere by their whole name."""
    return [
        Mutant(file, function, old, new, (test if "::" in test else f"{home}::{test}",))
        for function, old, new, test in changes
    ]


MUTANTS = [
    *of(
        "data/record_weights.py",
        "tests/data/test_odd_cells.py",
        (
            "_numbers",
            "np.nan if is_missing(value) else value",
            "value",
            "test_weights_among_objects_are_read_one_by_one",
        ),
        (
            "_numbers",
            "isinstance(v, str | bytes) or",
            "",
            "test_weights_among_objects_are_read_one_by_one",
        ),
    ),
    *of(
        "data/cells.py",
        "tests/data/test_cells.py",
        ("_read_cell", "bytes | bytearray):", "bytes):", "test_ends_of_what_is_read"),
        (
            "_read_decimal",
            "return math.inf if number > 0 else -math.inf",
            "return math.inf",
            "test_ends_of_what_is_read",
        ),
        ("_parse_moment", "time(clock[0], clock[1], clock[2])", "", "test_ends_of_what_is_read"),
        ("_in_digits", "if sign or part", "if sign and part", "test_ends_of_what_is_read"),
        ("_text_of_moment", "if moment.nanoseconds:", "if False:", "test_ends_of_what_is_read"),
        ("days_of_array", "count * _AVERAGE", "_AVERAGE", "test_ends_of_what_is_read"),
        ("_split_days", "limit // count) * count", "limit // count)", "test_ends_of_what_is_read"),
    ),
    *of(
        "data/validation.py",
        "tests/data/test_odd_cells.py",
        (
            "class_indices",
            "(label_set[codes] != labels).any()",
            "(label_set[codes] != labels).all()",
            "test_one_foreign_whole_number_among_labels_is_refused",
        ),
        (
            "is_missing",
            "isinstance(value, float) and not math.isfinite(value)",
            "False",
            "test_infinity_is_missing_among_labels_and_ids",
        ),
        (
            "_names_of",
            "X.column_names if is_arrow_table(X) else",
            "",
            "test_a_column_of_any_name_is_named_and_its_texts_are_not",
        ),
        (
            "_kind_of",
            'None if hasattr(X, "iloc") else getattr(X, "dtype", None)',
            'getattr(X, "dtype", None)',
            "test_nor_is_a_cell_taken_for_the_kind_of_an_array",
        ),
        (
            "is_arrow_table",
            'and not hasattr(X, "iloc")',
            "",
            "test_a_column_of_any_name_is_named_and_its_texts_are_not",
        ),
        (
            "with_readable_texts",
            "column.validate(full=True)",
            "None",
            "test_a_text_that_is_no_utf_8_is_read_by_itself",
        ),
        (
            "with_readable_texts",
            '"backslashreplace"',
            '"ignore"',
            "test_a_text_that_is_no_utf_8_is_read_by_itself",
        ),
        (
            "check_features",
            "texts = list(map(with_readable_texts, X.columns))",
            "texts = list(X.columns)",
            "test_a_refusal_does_not_tell_whether_texts_are_utf_8",
        ),
        (
            "_columns_of",
            "[array_or_none(X.iloc[:, j]) for j in range(X.shape[1])]",
            "[np.asarray(X.iloc[:, j]) for j in range(X.shape[1])]",
            "test_a_refusal_does_not_tell_whether_texts_are_utf_8",
        ),
    ),
    *of(
        "data/frame.py",
        "tests/data/test_odd_cells.py",
        (
            "_read_arrow",
            "column = with_readable_texts(column)",
            "",
            "test_a_text_that_is_no_utf_8_is_read_by_itself",
        ),
        (
            "_read_arrow",
            "cells = list(column)",
            "raise",
            "test_a_text_that_is_no_utf_8_is_read_by_itself",
        ),
        (
            "_read_series",
            'getattr(dtype, "storage", None) == "pyarrow"',
            "False",
            "test_a_text_that_is_no_utf_8_is_read_by_itself",
        ),
    ),
    *of(
        "_cli/tables.py",
        "tests/data/test_odd_cells.py",
        (
            "_frame_of_arrow",
            "map(with_readable_texts, read.columns)",
            "read.columns",
            "test_so_it_is_in_files",
        ),
    ),
    *of(
        "datasets.py",
        "tests/data/test_odd_cells.py",
        ("_frame", "with_readable_texts(column)", "column", "test_so_it_is_in_files"),
    ),
    *of(
        "algorithms/label_training.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "plan_labels",
            "budget.noise(bound)",
            "budget.noise(0.5 * bound)",
            "test_labels_move_a_statistic_by_one_or_the_root_of_two",
        ),
        (
            "statistic_sensitivity",
            "+ 2.02 * terms * 2.0**-53 * n_samples",
            "",
            "test_labels_move_a_statistic_by_one_or_the_root_of_two",
        ),
    ),
    *of(
        "algorithms/ranking/auc_training.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "plan_count",
            "part.noise(1.0)",
            "part.noise(0.5)",
            "test_a_record_moves_the_count_of_the_positive_ones_by_one",
        ),
        (
            "_pairs",
            "problem.n_features, UP,",
            "problem.n_features, 1.0,",
            "test_pairs_are_of_rows_of_norm_one",
        ),
    ),
    *of(
        "algorithms/ranking/auc_training.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "_sensitivity",
            "1.0 if scale is None",
            "0.5 if scale is None",
            "test_a_mean_difference_and_a_threshold_pay_for_their_roundings",
        ),
    ),
    *of(
        "algorithms/ranking/auc_training.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "plan_threshold",
            "FAR_UP + rounding",
            "1.0 + rounding",
            "test_a_mean_difference_and_a_threshold_pay_for_their_roundings",
        ),
    ),
    *of(
        "algorithms/published/margin_selection.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "plan_selection",
            "ExponentialChoice(score_bound,",
            "ExponentialChoice(0.5 * score_bound,",
            "test_a_record_moves_the_error_of_every_margin_by_one",
        ),
        (
            "plan_selection",
            "GaussianNoise(score_bound * math.sqrt(runs),",
            "GaussianNoise(score_bound,",
            "test_a_record_moves_the_error_of_every_margin_by_one",
        ),
    ),
    *of(
        "algorithms/engine/preconditioner.py",
        "tests/rows/test_single_features.py",
        (
            "Preconditioner.single_squares",
            "common * (1.0 + SINGLE_EPS * roundings)",
            "common",
            "test_lengths_of_images_have_the_allowance_of_the_lemma",
        ),
    ),
    *of(
        "rows/single_rows.py",
        "tests/rows/test_single_features.py",
        (
            "SingleFeatureRows._squares",
            "(1.0 + (self.shape[1] + 12) * SINGLE_EPS) ** 2",
            "1.0",
            "test_lengths_of_features_have_an_allowance_for_their_sums",
        ),
    ),
    *of(
        "privacy/pld.py",
        "tests/privacy/test_pld.py",
        (
            "sampled_gaussian_pld",
            "cut = (1.0 - rate) * float(ndtr(-last)) + rate * float(ndtr(mu - last))",
            "cut = 0.0",
            "test_what_is_left_out_of_a_step_is_counted_as_lost",
        ),
    ),
    *of(
        "algorithms/published/known_margin.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "plan_single_records",
            "2.0 * _LENGTH",
            "2.0",
            "test_two_records_pull_by_rows_that_are_two_apart_and_their_roundings",
        ),
    ),
    *of(
        "algorithms/engine/preconditioner.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "plan_preconditioner",
            "rounding += 2.04 * SINGLE_EPS * (GRAM_GROUP + 8) * GRAM_GROUP",
            "pass",
            "test_a_second_moment_pays_for_the_rounding_of_a_group_of_float32",
        ),
    ),
    *of(
        "algorithms/engine/noisy_gd.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "plan_descent",
            "step_mu = mu / math.sqrt(steps.n_steps) * DOWN",
            "step_mu = mu / math.sqrt(steps.n_steps)",
            "test_the_steps_cost_no_more_than_the_run_as_real_numbers",
        ),
    ),
    *of(
        "algorithms/perturbation/objective.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "GaussianLinearTerm.norm_bound",
            "+ self.rounding(n_blocks, n_columns)",
            "",
            "test_the_bound_on_a_linear_term_holds_half_a_cell_of_its_grid",
        ),
        (
            "LaplaceLinearTerm.norm_bound",
            "+ self.rounding(n_blocks, n_columns)",
            "",
            "test_the_bound_on_a_linear_term_holds_half_a_cell_of_its_grid",
        ),
    ),
    *of(
        "optim/risks.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "MarginRisk.sensitivity",
            "largest_margin *= FAR_UP",
            "largest_margin *= 0.5",
            "test_a_record_under_attack_moves_a_minimiser_as_far_as_the_theorem_says",
        ),
    ),
    *of(
        "data/people.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "People.weights_for",
            "_EXACT_BITS - len(self).bit_length()",
            "_EXACT_BITS",
            "test_weights_of_many_people_keep_their_sums_exact",
        ),
        (
            "People.weights_for",
            "- (largest - 1).bit_length()",
            "",
            "test_weights_of_many_people_keep_their_sums_exact",
        ),
    ),
    *of(
        "rows/blocks.py",
        "tests/rows/test_clipping.py",
        (
            "_scales_from_ratios",
            "np.maximum(factor - 2.0 * math.ulp(0.0), 0.0)",
            "factor",
            "test_a_factor_of_few_bits_is_rounded_down",
        ),
    ),
    *of(
        "model_selection/_prefit.py",
        "tests/model_selection/test_threshold.py",
        (
            "MeanSlack.step",
            "rounded_up(_STEP / self.rate)",
            "_STEP / self.rate",
            "test_shares_and_slacks_are_exact_multiples",
        ),
        (
            "Slack.for_failure",
            "rounded_up(math.log(max(self.n_candidates - 1, 1) / beta) / self.rate)",
            "math.log(max(self.n_candidates - 1, 1) / beta) / self.rate",
            "test_shares_and_slacks_are_exact_multiples",
        ),
    ),
    *of(
        "model_selection/threshold.py",
        "tests/model_selection/test_threshold.py",
        (
            "_Plan.slack_for",
            "(count or 0.0) + noise",
            "(count or 0.0)",
            "test_a_target_is_raised_by_the_deviations_of_the_proof",
        ),
    ),
    *of(
        "model_selection/conformal.py",
        "tests/model_selection/test_conformal.py",
        (
            "PrivateConformalClassifier._plan_release",
            "share * rule.least_missed / (1.0 - share)",
            "rule.least_missed",
            "test_the_fewest_records_are_those_of_the_proof",
        ),
    ),
    *of(
        "optim/certificate.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "gradient_error",
            "min(n_blocks, PLAIN_BLOCKS)",
            "1",
            "test_compensated_sums_count_no_more_than_the_blocks_that_are_added_plainly",
        ),
    ),
    *of(
        "ledger/store.py",
        "tests/ledger/test_ledger.py",
        (
            "MemoryStore.transaction",
            "self._rows is not begun",
            "False",
            "test_a_charge_in_the_middle_of_a_charge_is_not_lost",
        ),
        (
            "_connect",
            '"PRAGMA synchronous = EXTRA"',
            '"PRAGMA synchronous = OFF"',
            "test_a_charge_is_on_the_disk_when_it_ends",
        ),
    ),
    *of(
        "ledger/cap.py",
        "tests/ledger/test_cap.py",
        (
            "_as_gaussian",
            "math.sqrt(total) * UP",
            "math.sqrt(total)",
            "test_one_gaussian_release_is_no_better_than_all_as_real_numbers",
        ),
    ),
    *of(
        "model_selection/_search_plan.py",
        "tests/model_selection/test_search.py",
        (
            "_Search.mixed",
            "len({record.events for record in records}) > 1",
            "False",
            "test_runs_that_differ_with_the_budget_of_a_run_only_are_refused",
        ),
    ),
    *of(
        "algorithms/fit_plan.py",
        "tests/estimators/test_prior.py",
        (
            "linear_classes",
            "np.tile(intercepts, (X.shape[0], 1))",
            "np.tile(intercepts, (X.shape[0], 1)) - np.nan_to_num(X).mean() * coefficients.sum(axis=1)",
            "test_a_record_or_a_person_changes_the_errors_of_a_model_by_one_at_most",
        ),
    ),
    *of(
        "algorithms/search/small_tables.py",
        "tests/estimators/test_prior.py",
        (
            "SmallTablePlan._costs",
            "np.count_nonzero(said[index] != c)",
            "2 * np.count_nonzero(said[index] != c)",
            "test_a_record_or_a_person_changes_the_errors_of_a_model_by_one_at_most",
        ),
    ),
    *of(
        "algorithms/search/small_trees.py",
        "tests/estimators/test_prior.py",
        (
            "SmallTreePlan.costs",
            "factors[codes[said != codes]].sum()",
            "2 * factors[codes[said != codes]].sum()",
            "test_a_tree_list_counts_the_errors_of_the_prior",
        ),
    ),
    *of(
        "estimators/_small_tables.py",
        "tests/estimators/test_prior.py",
        (
            "PriorPlan._errors",
            "weights_for(2**WEIGHT_BITS)",
            "weights_for(1)",
            "test_errors_of_many_people_add_up_exactly",
        ),
        (
            "PriorPlan._errors",
            "None if data.people is None else data.people.weights_for(2**WEIGHT_BITS)",
            "None",
            "test_a_record_or_a_person_changes_the_errors_of_a_model_by_one_at_most",
        ),
        (
            "PriorPlan.events",
            "(*self.inner.events, self.choice.event)",
            "self.inner.events",
            "test_what_is_charged_is_what_is_released",
        ),
        (
            "PriorPlan.takes",
            '{"chunks", "groups"}',
            '{"chunks", "groups", "sample_weight"}',
            "test_weights_of_records_are_refused_beside_a_prior",
        ),
        (
            "plan_with_prior",
            "accounting.delta(found.events, epsilon) <= delta",
            "True",
            "test_what_is_charged_is_what_is_released",
        ),
    ),
    *of(
        "estimators/base.py",
        "tests/estimators/test_private_column_scales.py",
        (
            "PrivateLinearClassifier._fit_plan",
            "warn_of_sparse_columns()",
            "pass",
            "test_sparse_columns_keep_their_scales_and_a_warning_says_so",
        ),
        (
            "PrivateLinearClassifier._facts",
            "sparse.issparse(X)",
            "sparse.issparse(X) and X.nnz < math.prod(X.shape)",
            "test_sparse_columns_keep_their_scales_and_a_warning_says_so",
        ),
    ),
    *of(
        "_pipelines.py",
        "tests/inspection/test_pipeline.py",
        (
            "findings_in_front",
            "() if is_step else steps[:-1]",
            "steps[:-1]",
            "test_a_model_inside_a_step_has_nothing_in_front",
        ),
        (
            "",
            'step.handle_unknown in ("error", "warn") or step.drop is not None',
            "False",
            "test_what_tells_of_records_is_found",
        ),
        (
            "",
            'step.handle_unknown == "error"',
            "False",
            "test_what_tells_of_records_is_found",
        ),
        (
            "",
            'step.extrapolation == "error"',
            "False",
            "test_what_tells_of_records_is_found",
        ),
        (
            "",
            "step.memory is not None",
            "False",
            "test_what_tells_of_records_is_found",
        ),
        (
            "",
            "step.sparse_threshold != 0 and not _is_dense(step)",
            "False",
            "test_what_tells_of_records_is_found",
        ),
        (
            "",
            "sparse_threshold != 0",
            "sparse_threshold not in (0, 0.3)",
            "test_the_format_of_the_default_follows_the_records",
        ),
        (
            "_is_dense",
            'step == "drop" or is_of_frame',
            "True",
            "test_what_tells_of_records_is_found",
        ),
        (
            "_check_columns",
            "callable(columns)",
            "False",
            "test_columns_that_a_function_chooses_are_found",
        ),
        (
            "_check_columns",
            "is not None or columns.dtype_exclude",
            "",
            "test_columns_that_a_function_chooses_are_found",
        ),
        (
            "library_of",
            'if held is kind else ""',
            "",
            "test_subclasses_are_not_what_they_are_made_of",
        ),
        (
            "_check_splits",
            'name not in _SPLITTERS or library_of(type(cv)) != "sklearn"',
            'hasattr(cv, "split") and name not in _SPLITTERS',
            "test_folds_that_nobody_knows_of_are_found",
        ),
        (
            "_check_splits",
            'name == "GroupKFold" and not cv.shuffle',
            "False",
            "test_folds_that_nobody_knows_of_are_found",
        ),
    ),
    *of(
        "ledger/ledger.py",
        "tests/privacy/test_balance.py",
        (
            "PrivacyLedger._catch_up",
            "self._balance = balance = balance.after(rows[bool(balance.last) :], self.handle)",
            "whole = balance.after(rows[bool(balance.last) :], self.handle)\n        self._balance = Balance(whole.digest, whole.last, balance.spent)\n        self._balance = balance = whole",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            "PrivacyLedger.charge",
            "balance.after([row], self.handle)",
            "balance",
            "test_an_entry_that_cannot_be_read_stops_every_charge",
        ),
        (
            "PrivacyLedger.charge",
            "transaction.insert(row)",
            "del transaction",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            "PrivacyLedger.charge",
            "self._account(balance)",
            "self._account(Balance(balance.digest))",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            "PrivacyLedger.charge",
            "account.holds(record.events)",
            "account.holds()",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            "PrivacyLedger.charge",
            "account.holds(record.events)",
            "True",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            "PrivacyLedger.charge",
            "self._check_kind(record)",
            "",
            "tests/ledger/test_ledger.py::test_labels_only_is_less_than_a_whole_record",
        ),
        (
            "PrivacyLedger.charge",
            "True",
            "False",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            "Balance.after",
            '(Pure(math.inf),) if record.noise == "seeded" else',
            "",
            "test_an_entry_of_seeded_noise_has_no_guarantee",
        ),
        (
            "Balance.after",
            '(Pure(math.inf),) if record.noise == "seeded" else record.events',
            "set(record.events)",
            "test_an_entry_of_seeded_noise_has_no_guarantee",
        ),
        (
            "Balance.after",
            "self.spent.after(releases)",
            "Spending().after(releases)",
            "test_a_balance_is_made_whole_or_not_at_all",
        ),
        (
            "Balance.after",
            "(row.number, row.digest) != (last, digest)",
            "row.number != last",
            "test_a_balance_is_made_whole_or_not_at_all",
        ),
    ),
    *of(
        "ledger/ledger.py",
        "tests/ledger/test_entries.py",
        (
            "PrivacyLedger.charge",
            "text_of(record, self._about)",
            "record.to_json()",
            "test_a_handle_states_purpose_person_and_part",
        ),
        (
            "PrivacyLedger.__getstate__",
            "{**state, **stated}",
            "state",
            "test_a_handle_states_purpose_person_and_part",
        ),
    ),
    *of(
        "ledger/ledger.py",
        "tests/ledger/test_parts.py",
        (
            "PrivacyLedger._account",
            "self._about.part",
            "",
            "test_parts_by_a_public_fact_cost_the_maximum",
        ),
        (
            "PrivacyLedger._check_kind",
            "not record.events",
            "False",
            "tests/ledger/test_ledger.py::test_a_claim_without_a_release_is_refused",
        ),
        (
            "PrivacyLedger._check_kind",
            "n_read != part.n_records",
            "False",
            "test_a_part_by_cells_is_read_with_all_records",
        ),
    ),
    *of(
        "ledger/entries.py",
        "tests/ledger/test_parts.py",
        (
            "Part.n_touched",
            "2 if self.fixed_by is None else 1",
            "1",
            "test_the_cost_of_parts_is_what_one_record_can_change",
        ),
        (
            "Part.n_touched",
            "2 if self.fixed_by is None else 1",
            "2 if self.fixed_by is not None else 1",
            "test_the_cost_of_parts_is_what_one_record_can_change",
        ),
        (
            "Part.__post_init__",
            "(self.fixed_by is None) == (self.n_records is None)",
            "False",
            "test_how_records_come_to_parts_must_be_stated",
        ),
        (
            "Annotation.from_dict",
            "set(data) - set(cls.__slots__)",
            "set()",
            "tests/ledger/test_entries.py::test_what_a_newer_version_states_stops_every_charge",
        ),
    ),
    *of(
        "ledger/cap.py",
        "tests/ledger/test_parts.py",
        (
            "Spending.cases",
            "self.whole.copy()",
            "Counter()",
            "test_the_cost_of_parts_is_what_one_record_can_change",
        ),
        (
            "Spending.cases",
            "example.n_touched - len(fixed)",
            "1 - len(fixed)",
            "test_the_cost_of_parts_is_what_one_record_can_change",
        ),
        (
            "Spending.cases",
            "sorted((*fixed, *chosen))",
            "fixed",
            "test_the_cost_of_parts_is_what_one_record_can_change",
        ),
        (
            "Spending.cases",
            "total.update(self.parts.get(name, {}))",
            "total |= self.parts.get(name, Counter())",
            "test_a_part_and_the_whole_add_up",
        ),
        (
            "_costliest",
            "< count",
            "< 1",
            "test_parts_that_are_left_out_cost_no_more",
        ),
        (
            "_list_events",
            "Repeated(event, n) if n > 1 else",
            "",
            "tests/privacy/test_balance.py::test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            "_check_rule",
            "example.rule != part.rule",
            "False",
            "test_parts_that_may_share_records_are_refused",
        ),
    ),
    *of(
        "ledger/statement.py",
        "tests/ledger/test_entries.py",
        (
            "Statement._spent_after",
            "max(most,",
            "max(0.0,",
            "test_what_is_spent_after_each_entry_is_what_the_ledger_said_then",
        ),
    ),
    *of(
        "ledger/cap.py",
        "tests/ledger/test_parts.py",
        (
            "Account.holds",
            "all(",
            "any(",
            "test_every_case_decides",
        ),
        (
            "Account.spent",
            "max(most, self.cap.spent(total, delta))",
            "self.cap.spent(self.cases[0], delta)",
            "test_the_cost_of_parts_is_what_one_record_can_change",
        ),
        (
            "Account.spent",
            "> delta",
            "> 1.0",
            "test_parts_by_a_public_fact_cost_the_maximum",
        ),
        (
            "Account.remaining",
            "left == math.inf or not self._accepts(case, left, delta)",
            "left < math.inf",
            "test_parts_by_a_public_fact_cost_the_maximum",
        ),
        (
            "Account.count",
            "min(",
            "max(",
            "test_every_case_decides",
        ),
    ),
    *of(
        "ledger/store.py",
        "tests/ledger/test_ledger.py",
        (
            "MemoryStore.transaction",
            "os.getpid() != self._process",
            "False",
            "test_a_ledger_in_memory_refuses_other_processes",
        ),
        (
            "MemoryStore.transaction",
            "begun + transaction.added",
            "self._rows",
            "test_entries_are_composed_by_their_profiles",
        ),
        (
            "_before_fork",
            "_connected.acquire()",
            "pass",
            "test_a_ledger_in_memory_refuses_other_processes",
        ),
        (
            "_account_in",
            '"".join(f"\\n{sql};" for (sql,) in tables) + "\\n" == _SCHEMA',
            "True",
            "tests/privacy/test_faults.py::test_a_table_that_hides_its_entries_is_damaged",
        ),
    ),
    *of(
        "ledger/store.py",
        "tests/ledger/test_ledger_file.py",
        (
            "_account_in",
            "and hashlib.sha256(account.terms.encode()).hexdigest() == account.digest",
            "",
            "test_the_account_is_as_it_was_made",
        ),
        (
            "_account_in",
            "and (account.last or account.head == account.digest)",
            "",
            "test_the_account_is_as_it_was_made",
        ),
        (
            "FileStore.transaction",
            "account.digest != self.first_digest",
            "False",
            "test_a_handle_does_not_charge_a_ledger_that_took_the_name_of_its_own",
        ),
        (
            "FileStore.transaction",
            "_identity(self.path) != before",
            "False",
            "test_a_file_that_is_replaced_during_a_charge_releases_nothing",
        ),
        (
            "_SqlTransaction.rows",
            "after >= known[0]",
            "True",
            "test_entries_lost_at_the_end_are_missed_by_who_has_never_read_them",
        ),
        (
            "_SqlTransaction.rows",
            "(rows[-1].number, rows[-1].digest) == known if rows else",
            "bool(rows) or",
            "test_entries_lost_at_the_end_are_missed_by_who_has_never_read_them",
        ),
        (
            "_SqlTransaction.rows",
            "not all(isinstance(text, str) for row in rows for text in row[1:])",
            "False",
            "test_a_text_that_became_a_blob_is_damage",
        ),
        (
            "belongs_to_ledger",
            "Path(os.path.realpath(path))",
            "path",
            "test_exports_are_never_written_over_a_ledger",
        ),
        (
            "belongs_to_ledger",
            'place.with_name(place.name.removesuffix(end)) for end in ("", *COMPANIONS)',
            "place",
            "test_exports_are_never_written_over_a_ledger",
        ),
    ),
    *of(
        "ledger/ledger.py",
        "tests/ledger/test_ledger_file.py",
        (
            "write_text",
            "belongs_to_ledger(Path(path))",
            "False",
            "test_exports_are_never_written_over_a_ledger",
        ),
        (
            "PrivacyLedger.__setstate__",
            "not isinstance(store, LostStore) and store.first_digest != account",
            "False",
            "test_a_handle_does_not_charge_a_ledger_that_took_the_name_of_its_own",
        ),
    ),
    *of(
        "_html.py",
        "tests/test_html.py",
        (
            "csv_cell",
            "printable(value)",
            "value",
            "test_what_does_not_print_is_shown_as_an_escape",
        ),
        (
            "csv_cell",
            'f"\'{text}" if is_formula else',
            "",
            "test_a_formula_begins_with_an_apostrophe",
        ),
        (
            "align_columns",
            "rows = [[printable(cell) for cell in row] for row in rows]",
            "",
            "test_what_does_not_print_is_shown_as_an_escape",
        ),
        (
            "plain_label",
            'value).replace("$", "\\\\$"',
            "value",
            "test_dollar_signs_are_drawn_as_they_are",
        ),
        (
            "page",
            "printable(title)",
            "title",
            "test_pages_show_what_does_not_print_as_an_escape",
        ),
    ),
    *of(
        "_cli/files.py",
        "tests/cli/test_places.py",
        (
            "_is_same",
            "if os.path.samefile(one, other):\n            return True",
            "pass",
            "test_predictions_are_never_written_over_what_they_are_made_from",
        ),
        (
            "_is_same",
            "os.path.realpath(one).casefold() == os.path.realpath(other).casefold()",
            "one == other",
            "test_a_ledger_that_is_not_there_yet_is_compared_by_its_path",
        ),
        (
            "check_files",
            "[*combinations(written, 2), *((one, other) for one in written for other in read)]",
            "[(one, other) for one in written for other in read]",
            "test_two_outputs_are_two_files",
        ),
        (
            "check_files",
            "2), *((one, other) for one in written for other in read",
            "2",
            "test_a_model_or_card_is_never_written_over_what_a_fit_uses",
        ),
        (
            "check_files",
            'other == "--ledger" and any(_is_same(path, beside) for beside in _companions(place))',
            "False",
            "test_a_ledger_that_is_not_there_yet_is_compared_by_its_path",
        ),
        (
            "check_files",
            "belongs_to_ledger(path)",
            "False",
            "test_no_command_overwrites_a_ledger_that_it_was_not_told_of",
        ),
        (
            "_check_target",
            "exists() and not path.is_file",
            "is_dir",
            "test_a_device_is_not_replaced_by_a_file",
        ),
    ),
    *of(
        "_cli/__init__.py",
        "tests/cli/test_places.py",
        (
            "_run",
            "check_files(options)",
            "",
            "test_a_report_is_never_written_over_a_ledger",
        ),
        (
            "_check_streams",
            'raise UserError("standard output is closed: there is nowhere to write to")',
            "sys.stdout = io.StringIO()",
            "tests/cli/test_booking.py::test_a_closed_standard_output_is_refused_first",
        ),
        (
            "main",
            'f"dp_halfspace: error: {printable(error)}\\n", _WRONG_USE',
            'f"dp_halfspace: error: {error}\\n", _WRONG_USE',
            "tests/cli/test_streams.py::test_errors_are_one_line_that_prints",
        ),
    ),
    *of(
        "_cli/commands.py",
        "tests/cli/test_booking.py",
        (
            "_Booking.state_on_failure",
            'type(error)(f"{error}{self._describe_charged(lost)}") from error',
            "",
            "test_a_full_disk_after_the_charge",
        ),
        (
            "_Booking.state_on_failure",
            'self._describe_charged(lost) or f": {lost}"',
            'f": {lost}"',
            "test_an_interrupt_after_the_charge",
        ),
        (
            "_Booking.charge",
            "_asked.append(record)\n            self._ledger.charge",
            "_ledger.charge(record)\n            self._asked.append",
            "test_an_interrupt_after_the_charge",
        ),
        (
            "_Booking._charged_records",
            "[record for record in self._asked if record in entries]",
            "self._asked",
            "test_a_refused_charge_is_not_called_charged",
        ),
    ),
    *of(
        "_cli/files.py",
        "tests/cli/test_streams.py",
        (
            "write_out",
            '"\\n".join(map(printable, text.split("\\n")))',
            "text",
            "test_what_is_said_prints_line_by_line",
        ),
        (
            "write_out",
            "stream.flush()",
            "pass",
            "tests/cli/test_booking.py::test_a_full_standard_output",
        ),
    ),
    *of(
        "_cli/commands.py",
        "tests/cli/test_streams.py",
        (
            "predict",
            "csv_cell(str(label))",
            "str(label)",
            "test_nothing_in_a_table_reaches_the_terminal_a_cell_or_a_page_as_it_is",
        ),
        (
            "predict",
            'csv_cell(f"probability_{label}")',
            'f"probability_{label}"',
            "test_nothing_in_a_table_reaches_the_terminal_a_cell_or_a_page_as_it_is",
        ),
        (
            "fit",
            "import_skops(options.save)",
            "",
            "tests/cli/test_stored.py::test_without_skops_nothing_is_charged",
        ),
    ),
    *of(
        "_cli/files.py",
        "tests/cli/test_stored.py",
        (
            "load_model",
            "sorted(set(skops.get_untrusted_types(file=path)) - set(TRUSTED))",
            "[]",
            "test_other_types_are_refused_by_name_and_never_built",
        ),
        (
            "",
            '"algorithms.engine.column_scales.ColumnScales",',
            "",
            "test_a_model_goes_through_skops",
        ),
    ),
    *of(
        "ledger/cap.py",
        "tests/ledger/test_cap.py",
        (
            "Cap.holds",
            "cost <=",
            "cost <",
            "test_a_cap_of_no_delta_is_a_sum",
        ),
        (
            "Cap.holds",
            "self.delta * (1.0 + _DELTA_SLACK)",
            "2.0 * self.delta",
            "test_an_adaptive_cap_refuses_that_choice",
        ),
        (
            "",
            "_EPSILON_SLACK = 2.0**-40",
            "_EPSILON_SLACK = 2.0**-10",
            "test_what_remains_is_what_is_accepted",
        ),
        (
            "",
            "_DELTA_SLACK = 2.0**-37",
            "_DELTA_SLACK = 2.0**-7",
            "test_what_remains_is_what_is_accepted",
        ),
        (
            "",
            "math.sqrt(0.5 * math.pi)",
            "1.0",
            "test_adaptive_trees_never_pass_an_adaptive_cap",
        ),
    ),
    *of(
        "privacy/mechanisms.py",
        "tests/privacy/test_mechanisms.py",
        (
            "GaussianNoise.__post_init__",
            "mu * FAR_UP",
            "mu / 2.0",
            "test_gaussian_scale_is_on_the_safe_side",
        ),
        (
            "GaussianNoise.__post_init__",
            "mu *",
            "mu /",
            "test_gaussian_scale_is_on_the_safe_side",
        ),
        (
            "L2LaplaceNoise.scale",
            "epsilon * FAR_UP",
            "epsilon / 2.0",
            "test_laplace_scale_is_on_the_safe_side",
        ),
        (
            "L2LaplaceNoise.scale",
            "epsilon *",
            "epsilon /",
            "test_laplace_scale_is_on_the_safe_side",
        ),
        (
            "GaussianNoise.__post_init__",
            "(self.mu)",
            "(0.5 *self.mu)",
            "test_each_charged_release_happens_once",
        ),
        (
            "ParallelReleases.release",
            "_next = block.stop",
            "_next = block.start",
            "test_blocks_that_are_not_disjoint_are_refused",
        ),
        (
            "authorise",
            "ledger.charge(record)",
            "pass",
            "test_ledger_that_refuses_gets_no_permit",
        ),
        (
            "Permit.release",
            "consume(mechanism.event)",
            "_source",
            "test_each_charged_release_happens_once",
        ),
    ),
    *of(
        "privacy/noise.py",
        "tests/privacy/test_gaussian.py",
        (
            "add_noise",
            "block[np.isnan(block)] = 0.0",
            "",
            "test_nan_counts_as_zero_and_infinity_as_the_bound",
        ),
        (
            "add_noise",
            "np.minimum(np.maximum(block, -_CLIP, out=block), _CLIP, out=block)",
            "",
            "tests/privacy/test_noise.py::test_no_value_raises_or_warns",
        ),
        (
            "add_noise",
            "source)\n    if is_far:\n        np.minimum(np.maximum(whole, -_CLIP, out=whole), _CLIP, out=whole",
            "source",
            "tests/privacy/test_noise.py::test_no_value_raises_or_warns",
        ),
        (
            "add_noise",
            "not block.dot(block) <",
            "block.dot(block) >=",
            "test_nan_counts_as_zero_and_infinity_as_the_bound",
        ),
        (
            "_nearest_steps",
            "(is_common and cells[cells.argmin()] >= _COMMON_CELLS)",
            "is_common",
            "test_planted_bound_without_the_extreme_cells_is_caught",
        ),
    ),
    *of(
        "privacy/noise.py",
        "tests/privacy/test_laplace.py",
        (
            "l2_laplace",
            "dimension + 1, source",
            "dimension , source) if dimension > 1 else Fraction(scale",
            "test_norm_is_gamma",
        ),
        (
            "l2_laplace",
            "(dimension + 1, source)",
            "(dimension + 1, source) / 2",
            "test_norm_is_gamma",
        ),
        (
            "_draw_chi",
            "2 * _draw_log_product",
            " _draw_log_product",
            "test_norm_is_gamma",
        ),
        (
            "_draw_chi",
            "square +=",
            "",
            "test_norm_is_gamma",
        ),
    ),
    *of(
        "privacy/noise.py",
        "tests/privacy/test_exact.py",
        (
            "LazyUniform.below",
            "(self.cell + 1)",
            "self.cell",
            "test_decision_agrees_with_the_refined_cell",
        ),
        (
            "LazyUniform.below",
            "_EXACT_GUARD_BITS >=",
            "_EXACT_GUARD_BITS <=",
            "test_decision_agrees_with_the_refined_cell",
        ),
        (
            "LazyUniform.refine",
            "(self.cell << _WORD_BITS) | word",
            "self.cell << _WORD_BITS",
            "test_a_broken_source_ends",
        ),
    ),
    *of(
        "privacy/noise.py",
        "tests/privacy/test_randomized_response.py",
        (
            "uniform_below",
            "if draw < n:\n            return draw",
            "return draw % n",
            "tests/privacy/test_discrete.py::test_every_outcome_has_the_same_number_of_bytes",
        ),
        (
            "RandomizedResponse.keep_probability",
            "(self.n_classes - 1) *",
            "",
            "test_responses_follow_the_definition",
        ),
        (
            "RandomizedResponse.perturb",
            "other + (other >= responses[i])",
            "other ",
            "test_responses_follow_the_definition",
        ),
        (
            "RandomizedResponse.perturb",
            "1.0 - self",
            "0.5 - 0.5 * self",
            "test_responses_follow_the_definition",
        ),
    ),
    *of(
        "privacy/exponential.py",
        "tests/privacy/test_generalized_selection.py",
        (
            "_check_candidates",
            "2 * positive_rational",
            "1 * positive_rational",
            "tests/privacy/test_selection.py::test_frequencies_match_enumeration",
        ),
        (
            "GeneralizedChoice.sensitivity",
            "1.0 + 2.0**-20 + self._shift * 2.0**-49",
            "0.5",
            "test_rounded_scores_change_by_the_sensitivity_at_most",
        ),
        (
            "GeneralizedChoice.sensitivity",
            "1.0 + 2.0**-20 + self._shift * 2.0**-49",
            "1.0 ",
            "test_rounded_scores_change_by_the_sensitivity_at_most",
        ),
        (
            "GeneralizedChoice.normalise_costs",
            "None] + change[None, :",
            "None",
            "test_normalised_scores_change_by_one_at_most",
        ),
    ),
    *of(
        "privacy/randomness.py",
        "tests/privacy/test_randomness.py",
        (
            "OperatingSystemBytes.read",
            "os.urandom",
            "bytes",
            "test_bytes_of_the_operating_system_are_its_own",
        ),
        (
            "SeededBytes.read",
            "self._counter += 1",
            "",
            "test_seeded_bytes_are_uniform",
        ),
        (
            "SeededBytes.read",
            "stream[n:]",
            "stream",
            "test_seeded_stream_does_not_depend_on_how_it_is_cut",
        ),
        (
            "SeededBytes.read",
            "os.getpid() != self._process",
            "False",
            "test_a_seeded_stream_refuses_to_be_read_in_a_fork",
        ),
    ),
    *of(
        "privacy/record.py",
        "tests/privacy/test_record.py",
        (
            "PrivacyRecord.__post_init__",
            "self.delta * (1.0 + _CLAIM_SLACK)",
            "2.0 * self.delta",
            "test_a_record_cannot_claim_more_than_its_events",
        ),
        (
            "PrivacyRecord.__post_init__",
            "proved > self.delta * (1.0 + _CLAIM_SLACK)",
            "False",
            "test_a_record_cannot_claim_more_than_its_events",
        ),
        (
            "PrivacyRecord.__post_init__",
            '"none"',
            '"nothing"',
            "test_invalid_fields_are_named",
        ),
    ),
    *of(
        "privacy/events.py",
        "tests/privacy/test_accounting.py",
        (
            "single_runs",
            "count *",
            "",
            "test_nothing_and_no_guarantee",
        ),
        (
            "single_runs",
            "[single] +=",
            "[single] =",
            "test_agrees_with_dp_accounting",
        ),
        (
            "RandomStopping.__post_init__",
            "(shares) >= 1.0",
            "(shares) >= 0.5",
            "tests/privacy/test_events.py::test_invalid_values_are_named",
        ),
        (
            "ObjectivePerturbation.__post_init__",
            "any(mu == 0.0 for _, mu in vertices)",
            "vertices",
            "tests/privacy/test_events.py::test_invalid_values_are_named",
        ),
    ),
    *of(
        "privacy/profiles.py",
        "tests/privacy/test_profiles.py",
        (
            "_mills_slope",
            "if not far.any():",
            "if True:",
            "test_the_slope_of_the_mills_ratio_keeps_its_digits_far_out",
        ),
        (
            "_largest_mu",
            "(1.0 - LOG_SLACK)",
            "(1.0 + LOG_SLACK)",
            "test_gdp_epsilon_is_safe_and_tight",
        ),
    ),
    *of(
        "privacy/accounting.py",
        "tests/privacy/test_accounting.py",
        (
            "round_up",
            "if nearest >= value else math.nextafter(nearest, math.inf)",
            "",
            "test_pure_sums_are_exact_rationals",
        ),
        (
            "_compose",
            "(loss) * n",
            "(loss) ",
            "test_pure_sums_are_exact_rationals",
        ),
    ),
    *of(
        "privacy/events.py",
        "tests/privacy/test_accounting.py",
        (
            "total_mu",
            "mu) * math.sqrt(count",
            "mu",
            "test_repetition_equals_nearly_equal_events",
        ),
        (
            "contract",
            "event.mean_runs *",
            "",
            "test_selection_is_its_contract_alone_and_beside_others",
        ),
    ),
    *of(
        "privacy/pld.py",
        "tests/privacy/test_pld.py",
        (
            "randomised_response_pld",
            "1.0 + math.exp(-epsilon)",
            "1.0 + math.exp(-0.5 *epsilon)",
            "test_losses_are_distributions_under_both_data_sets",
        ),
        (
            "sampled_gaussian_pld",
            "rate = 1.0 / n_records",
            "rate = 0.9 / n_records",
            "test_steps_on_sampled_records_dominate_and_touch_their_profile",
        ),
    ),
    *of(
        "privacy/mechanisms.py",
        "tests/algorithms/published/test_single_records.py",
        (
            "SampledGaussianNoise.__post_init__",
            "mu * FAR_UP",
            "mu / 2.0",
            "test_all_steps_spend_the_budget_and_no_more",
        ),
        (
            "SampledGaussianNoise.perturb",
            "uniform_below(self.n_records, source)",
            "0",
            "test_drawn_rows_are_equally_likely_and_have_the_noise",
        ),
    ),
    *of(
        "privacy/random_stopping.py",
        "tests/privacy/test_tune.py",
        (
            "RunCountDistribution.draw",
            "bisect_left(range(self.k_max), True, lo=1, key=is_reached)",
            "max(1, round(self.mean))",
            "test_selected_distribution_is_that_of_the_proof",
        ),
    ),
    *of(
        "privacy/random_stopping.py",
        "tests/privacy/test_random_stopping.py",
        (
            "Shifted.enclose",
            "low - self.mu, high -",
            "low + self.mu, high +",
            "test_log_ratio_is_just_above_the_supremum",
        ),
    ),
    *of(
        "model_selection/search.py",
        "tests/model_selection/test_search_distributions.py",
        (
            "PrivateSearchCV._run_search",
            "plan.distribution.draw(source)",
            "round(plan.distribution.mean)",
            "test_random_stopping_has_the_distribution_of_the_proof",
        ),
        (
            "PrivateSearchCV._run_search",
            "chosen, noise=plan.choice",
            "chosen",
            "test_random_stopping_has_the_distribution_of_the_proof",
        ),
        (
            "PrivateSearchCV._run_search",
            "permit.choose(scores, plan.choice)",
            "int(scores.argmax()) + 0 * permit.choose(scores, plan.choice)",
            "test_the_choice_has_the_distribution_of_the_exponential_mechanism",
        ),
        (
            "PrivateSearchCV.fit",
            "opened_ledger(ledger, type(self).__name__)",
            "None",
            "tests/model_selection/test_search.py::test_a_full_ledger_stops_the_search_before_any_noise",
        ),
        (
            "PrivateSearchCV._run_search",
            "consume(plan.events[0])",
            "_source",
            "test_a_search_uses_up_what_it_was_permitted",
        ),
        (
            "PrivateSearchCV.fit",
            'f"{prefix}ledger": ledger, f"{prefix}random_state"',
            ' f"{prefix}random_state"',
            "tests/model_selection/test_scores.py::test_a_threshold_is_searched_and_a_refit_is_charged",
        ),
        (
            "PrivateSearchCV._grid",
            "check_around(self._with_params(params))",
            "pass",
            "tests/model_selection/test_scores.py::test_what_voids_the_guarantee_is_refused_before_anything_is_paid",
        ),
    ),
    *of(
        "_silence.py",
        "tests/data/test_odd_cells.py",
        (
            "may_speak",
            "np.ma.MaskedArray | complex | np.complexfloating",
            "complex",
            "test_an_odd_cell_changes_nothing_of_other_cells_and_warns_of_nothing",
        ),
        (
            "may_speak",
            "not in _SILENT",
            '== ""',
            "test_a_refused_cell_shows_nothing_but_its_column",
        ),
    ),
    *of(
        "_silence.py",
        "tests/model_selection/test_silent_runs.py",
        (
            "drop_output",
            'warnings.simplefilter("ignore")',
            "pass",
            "tests/model_selection/test_search.py::test_every_run_is_silent_by_itself",
        ),
        (
            "_DroppedOutput.__enter__",
            "self._restored.enter_context(redirect_stdout(nowhere))",
            "pass",
            "test_what_functions_say_in_runs_is_dropped",
        ),
        (
            "_DroppedOutput.__enter__",
            "self._restored.enter_context(redirect_stderr(nowhere))",
            "pass",
            "test_a_run_drops_what_is_said_by_itself",
        ),
        (
            "_DroppedOutput.__enter__",
            "logging.disable(sys.maxsize)",
            "pass",
            "test_what_functions_say_in_runs_is_dropped",
        ),
        (
            "_DroppedOutput.__exit__",
            "self._inside == 0",
            "True",
            "test_threads_that_overlap_restore_what_they_found",
        ),
    ),
    *of(
        "model_selection/_search_plan.py",
        "tests/model_selection/test_silent_runs.py",
        (
            "_is_private",
            "is_classifier and",
            'hasattr(kind, "epsilon") or',
            "test_only_classifiers_of_the_package_are_searched",
        ),
        (
            "",
            '"verbose": False, "n_jobs"',
            ' "n_jobs"',
            "test_candidates_are_told_to_say_nothing",
        ),
        (
            "silence",
            "without_callbacks(candidate)",
            "pass",
            "test_callbacks_do_not_count_runs",
        ),
        (
            "call_silently",
            "isinstance(error, MemoryError) or is_own(error)",
            "True",
            "test_errors_of_steps_do_not_quote_records",
        ),
        (
            "seed_steps",
            'candidate.set_params(**{name: int.from_bytes(source.read(4), "little")})',
            "pass",
            "test_shared_generators_do_not_count_runs",
        ),
    ),
    *of(
        "model_selection/_search_plan.py",
        "tests/model_selection/test_silent_runs.py",
        (
            "_train_and_score",
            "call_silently(lambda: score_of(scoring, model.fit(X, y), X, y))",
            "score_of(scoring, model.fit(X, y), X, y)",
            "test_a_run_drops_what_is_said_by_itself",
        ),
        (
            "_train_and_score",
            "seed_steps(model, prefix, own)",
            "pass",
            "test_shared_generators_do_not_count_runs",
        ),
    ),
    *of(
        "model_selection/_search_plan.py",
        "tests/model_selection/test_silent_runs.py",
        (
            "_before_model",
            "call_silently(lambda: steps.fit(X, y))",
            "steps.fit(X, y)",
            "test_plans_do_not_say_what_steps_say_of_records",
        ),
    ),
    *of(
        "model_selection/_search_plan.py",
        "tests/model_selection/test_search_distributions.py",
        (
            "_train_and_score",
            "score = float(draw_release(np.array([score]), noise, source)[0])",
            "draw_release(np.array([score]), noise, source)",
            "test_random_stopping_has_the_distribution_of_the_proof",
        ),
        (
            "_train_and_score",
            'seed[0], f"score {seed[1]}"',
            'seed[0], "score"',
            "test_every_run_draws_randomness_of_its_own",
        ),
    ),
    *of(
        "model_selection/_search_plan.py",
        "tests/model_selection/test_search.py",
        (
            "score_of",
            "np.clip(each, 0.0, 1.0)",
            "each",
            "test_scores_are_cut_to_one_number_in_the_unit_interval_for_each_record",
        ),
        (
            "score_of",
            "nan_to_num(np.asarray(scoring(model, X, y), dtype=np.float64))",
            "asarray(scoring(model, X, y), dtype=np.float64)",
            "test_scores_are_cut_to_one_number_in_the_unit_interval_for_each_record",
        ),
        (
            "score_of",
            "each.shape != np.asarray(y).ravel().shape",
            "False",
            "test_scores_are_cut_to_one_number_in_the_unit_interval_for_each_record",
        ),
    ),
    *of(
        "model_selection/_search_plan.py",
        "tests/model_selection/test_search_distributions.py",
        (
            "score_sensitivity",
            "UP + n_samples * 2.0**-51",
            "0.5",
            "test_sums_of_scores_change_by_no_more_than_their_sensitivity",
        ),
        (
            "score_sensitivity",
            "UP + n_samples * 2.0**-51",
            "1.0 ",
            "test_sums_of_scores_change_by_no_more_than_their_sensitivity",
        ),
        (
            "scores_sensitivity",
            "math.sqrt(n_candidates) * ",
            "",
            "test_scores_of_all_candidates_move_together",
        ),
        (
            "_Search._run_mu",
            "math.sqrt(mu * mu - mu_score * mu_score) * WIDE_DOWN",
            "mu",
            "test_the_charge_covers_the_dearest_run",
        ),
    ),
    *of(
        "algorithms/engine/noisy_gd.py",
        "tests/algorithms/engine/test_noisy_gd.py",
        (
            "plan_descent",
            "2.0 * (longest + rounding)",
            "longest + rounding",
            "test_run_costs_exactly_what_it_says",
        ),
        (
            "plan_descent",
            "(longest + rounding)",
            "longest",
            "test_sensitivity_is_that_of_the_proof",
        ),
        (
            "plan_descent",
            "max(2.0, further) * longest + 4.0 * further**2 * rounding",
            "2.0 * longest",
            "test_sensitivity_is_that_of_the_proof",
        ),
        (
            "plan_descent",
            "mu / math.sqrt(steps.n_steps)",
            "mu ",
            "test_run_costs_exactly_what_it_says",
        ),
        (
            "clipped_slopes",
            "np.maximum(margins, 1.0 / clip, out=margins)",
            "",
            "test_sensitivity_against_brute_force",
        ),
        (
            "plan_descent",
            "1.01 * 2.0**-53 * steps.smoothness * margins",
            "0.0",
            "test_sensitivity_is_that_of_the_proof",
        ),
        (
            "plan_descent",
            "if is_single:\n        longest",
            "longest",
            "tests/rows/test_single_rows.py::test_a_step_moves_by_more_than_float64_would_allow_and_by_less_than_is_paid",
        ),
    ),
    *of(
        "algorithms/engine/noisy_gd.py",
        "tests/algorithms/engine/test_descent.py",
        (
            "plan_gradient",
            "preconditioner.mechanism.event, descent.event",
            "(descent.event,)",
            "test_whole_budget_and_no_more",
        ),
        (
            "plan_gradient",
            "mu=part.mu",
            "mu=2.0 * part.mu",
            "test_whole_budget_and_no_more",
        ),
        (
            "plan_gradient",
            "mu * DOWN if preconditioner is None else rest.mu",
            "mu * DOWN",
            "test_whole_budget_and_no_more",
        ),
    ),
    *of(
        "algorithms/engine/noisy_gd.py",
        "tests/algorithms/engine/test_adversarial_rows.py",
        (
            "scaled_rows",
            "np.hypot(1.0, constant_column or 0.0)",
            "1.0",
            "test_rows_have_one_factor",
        ),
        (
            "scaled_rows",
            "clip_scales(X, data_norm) / (data_norm * length)",
            "1.0 / (data_norm * length) + 0.0 * clip_scales(X, data_norm)",
            "test_rows_have_one_factor",
        ),
        (
            "AdversarialRows.fused_adjoint",
            "ascent -",
            "ascent - 2.0 *",
            "test_sensitivity_against_brute_force",
        ),
    ),
    *of(
        "algorithms/published/known_margin.py",
        "tests/algorithms/published/test_margin_gd.py",
        (
            "margin_slopes",
            "clip(missing, 0.0, 1.0)",
            "maximum(missing, 0.0)",
            "test_sum_of_gradients_moves_by_two_at_most_and_does",
        ),
        (
            "margin_slopes",
            "[lo:hi] * weights",
            "",
            "test_sensitivity_test_sees_an_undeclared_weight",
        ),
        (
            "plan_margin_descent",
            "clip=1.0",
            "clip=0.5",
            "test_sum_of_gradients_moves_by_two_at_most_and_does",
        ),
    ),
    *of(
        "algorithms/published/known_margin.py",
        "tests/algorithms/published/test_single_records.py",
        (
            "plan_single_records",
            "2.0 * _LENGTH",
            "_LENGTH",
            "test_values_of_neighbours_differ_in_one_row_by_the_sensitivity_at_most",
        ),
        (
            "SingleRecordPlan.events",
            "self.n_steps",
            "1",
            "test_all_steps_spend_the_budget_and_no_more",
        ),
        (
            "_step_mu",
            "SampledGaussian(n_records, mu)",
            "SampledGaussian(2 * n_records, mu)",
            "test_all_steps_spend_the_budget_and_no_more",
        ),
    ),
    *of(
        "algorithms/published/known_margin.py",
        "tests/algorithms/published/test_phased_gd.py",
        (
            "_noise",
            "2.0 * (pull * FAR_UP + rounding)",
            "pull * FAR_UP + rounding",
            "test_phases_are_a_partition_into_halves",
        ),
        (
            "_noise",
            "(pull * FAR_UP + rounding)",
            "pull",
            "test_mean_of_a_phase_moves_by_two_steps_at_most_and_does",
        ),
        (
            "PhasedPlan.run",
            "mean, phase",
            "mean, self.phases[0]",
            "test_one_event_pays_for_all_phases_once",
        ),
    ),
    *of(
        "algorithms/ranking/auc_training.py",
        "tests/algorithms/ranking/test_mean_difference.py",
        (
            "",
            "math.sqrt(4.5)",
            "2.0",
            "test_squares_and_rows_together_change_by_the_root_of_four_and_a_half",
        ),
        (
            "",
            "(4.5) * UP",
            "(4.5/ 4.0)",
            "test_squares_and_rows_together_change_by_the_root_of_four_and_a_half",
        ),
        (
            "_sensitivity",
            "2.0 * (FAR_UP + row + n_samples * (row + sums))",
            "FAR_UP + row + n_samples * (row + sums)",
            "test_sensitivity_against_brute_force",
        ),
        (
            "MeanDifferencePlan.run",
            "rows.apply_to_classes(_signed_weights, classes, weights)",
            "_signed_weights(classes, weights[classes])",
            "tests/test_persons.py::test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
        (
            "release_standardisation",
            "rows.gram()",
            "rows.gram(np.ones(rows.shape[0]))",
            "tests/test_persons.py::test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
    ),
    *of(
        "algorithms/engine/preconditioner.py",
        "tests/algorithms/engine/test_preconditioner.py",
        (
            "released_moment",
            "math.sqrt(2.0)",
            "2.0",
            "test_sensitivity_against_brute_force",
        ),
        (
            "released_moment",
            "noisy.flat[upper] = permit.release(moment.flat[upper] * weight, mechanism) / weight",
            "permit.release(moment.flat[upper] * weight, mechanism)\n    noisy.flat[upper] = moment.flat[upper]",
            "test_few_directions_are_the_whole_map",
        ),
        (
            "released_moment",
            "rows.gram()",
            "rows.gram(np.ones(rows.shape[0]))",
            "tests/test_persons.py::test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
    ),
    *of(
        "algorithms/engine/kernel_features.py",
        "tests/algorithms/engine/test_whitening.py",
        (
            "WhiteningPlan.run",
            "rows = rows.first_columns(self.n_curved)",
            "pass",
            "test_sensitivity_against_brute_force",
        ),
        (
            "plan_whitening",
            "mu=mu, lead=lead",
            "mu=2.0 * mu, lead=lead",
            "test_budget_and_record",
        ),
    ),
    *of(
        "algorithms/kernel_training.py",
        "tests/algorithms/engine/test_whitening.py",
        (
            "KernelPlan.events",
            "(*first, *self.training.events)",
            "self.training.events",
            "test_budget_and_record",
        ),
    ),
    *of(
        "algorithms/perturbation/output.py",
        "tests/optim/risks/test_risk.py",
        (
            "plan_output",
            "(exact + 2.0 * (goal.certified / total))",
            "exact",
            "test_planned_sensitivity_covers_the_tolerance",
        ),
        (
            "plan_output",
            "2.0 * (goal.certified / total)",
            "goal.certified / total",
            "test_planned_sensitivity_covers_the_tolerance",
        ),
        (
            "plan_output",
            "math.sqrt(risk.n_stacked) *",
            "",
            "test_planned_sensitivity_covers_the_tolerance",
        ),
    ),
    *of(
        "algorithms/perturbation/objective.py",
        "tests/algorithms/perturbation/test_objective.py",
        (
            "plan_objective",
            "risk)\n    ridge = max(ridge, risk.ridge_floor(epsilon)",
            "risk",
            "test_exact_delta_in_one_dimension",
        ),
    ),
    *of(
        "algorithms/perturbation/objective.py",
        "tests/algorithms/perturbation/test_linear_term.py",
        (
            "GaussianLinearTerm.sigma",
            "mu * FAR_UP",
            "mu / 2.0",
            "test_draws_have_the_claimed_distribution",
        ),
        (
            "LaplaceLinearTerm.scale",
            "(self.epsilon - self.log_ratio)",
            "self.epsilon",
            "test_draws_have_the_claimed_distribution",
        ),
    ),
    *of(
        "algorithms/perturbation/preconditioned.py",
        "tests/algorithms/perturbation/test_preconditioned_objective.py",
        (
            "PreconditionedObjectivePlan.events",
            "(self.preconditioner.mechanism.event, *self.objective.events)",
            "self.objective.events",
            "test_whole_budget_and_no_more",
        ),
        (
            "plan_preconditioned_objective",
            "rest.epsilon",
            "epsilon",
            "test_whole_budget_and_no_more",
        ),
    ),
    *of(
        "algorithms/label_training.py",
        "tests/algorithms/labels/test_label_statistic.py",
        (
            "statistic_sensitivity",
            "1.0 if",
            "0.5 if",
            "test_sensitivity_is_attained_and_never_exceeded",
        ),
        (
            "statistic_sensitivity",
            "if n_classes == 2 else math.sqrt(2.0)",
            "",
            "test_sensitivity_is_attained_and_never_exceeded",
        ),
    ),
    *of(
        "algorithms/ranking/auc_training.py",
        "tests/test_persons.py",
        (
            "weight_of",
            "(chosen) if people is None else people.weights[chosen].sum()",
            "(chosen)",
            "test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
        (
            "release_count",
            "return float(permit.release(count, noise)[0])",
            "permit.release(count, noise)\n    return float(count[0])",
            "tests/algorithms/ranking/test_class_counts.py::test_noise_has_the_stated_deviation",
        ),
    ),
    *of(
        "algorithms/search/directions.py",
        "tests/algorithms/search/test_direction_counts.py",
        (
            "_integers",
            "values[~(squares <= ROW_NORM**2)] = 0.0",
            "pass",
            "test_rows_that_are_too_long_are_zero",
        ),
        (
            "class_factors",
            "np.clip(weights, 0.0, 1.0)",
            "weights",
            "test_no_weight_counts_for_more_than_one_record",
        ),
    ),
    *of(
        "algorithms/search/halfspace_search.py",
        "tests/algorithms/search/test_halfspace_search.py",
        (
            "DirectionPlan.events",
            "event,) * (1 + len(self.radii)",
            "event,",
            "test_stages_look_round_the_winner_and_share_the_budget",
        ),
        (
            "_choose_direction",
            "permit.choose(np.concatenate(costs), choice, is_cost=True)",
            "int(np.concatenate(costs).argmin())",
            "test_distribution_is_the_definition",
        ),
    ),
    *of(
        "algorithms/search/directions.py",
        "tests/algorithms/search/test_margin_counts.py",
        (
            "margin_costs",
            "sizes[0] -",
            "sizes[0] +",
            "test_costs_are_the_definition",
        ),
    ),
    *of(
        "algorithms/search/directions.py",
        "tests/algorithms/search/test_directions.py",
        (
            "",
            "_DIRECTION_NORM = 2047",
            "_DIRECTION_NORM = 65535",
            "test_directions_are_small_integers_and_repeat",
        ),
        (
            "integer_norm",
            "max(largest - 1.0 - math.sqrt(n_columns) / 2.0, 0.0)",
            "float(largest)",
            "test_directions_are_small_integers_and_repeat",
        ),
    ),
    *of(
        "algorithms/ranking/auc_training.py",
        "tests/algorithms/ranking/test_threshold.py",
        (
            "plan_threshold",
            "FAR_UP + rounding",
            "0.5",
            "test_sensitivity_against_brute_force",
        ),
        (
            "plan_threshold",
            "FAR_UP + rounding",
            "1.0",
            "test_sensitivity_against_brute_force",
        ),
        (
            "_add_losses",
            "[mixed] = 0.0",
            "[mixed] *= 1.0",
            "test_sensitivity_against_brute_force",
        ),
        (
            "threshold_losses",
            "each[part]",
            "1.0",
            "tests/test_persons.py::test_errors_of_a_threshold_move_by_one_at_most_and_do_not_grow_with_rows",
        ),
    ),
    *of(
        "algorithms/search/halfspace_search.py",
        "tests/algorithms/search/test_staged_search.py",
        (
            "SearchPlan.events",
            "event,) * len(self.radii",
            "event,",
            "test_two_stages_by_enumeration",
        ),
        (
            "plan_search",
            "equal_parts(n_stages)",
            "equal_parts(1)",
            "test_two_stages_by_enumeration",
        ),
    ),
    *of(
        "algorithms/published/network.py",
        "tests/algorithms/published/test_network.py",
        (
            "network_losses",
            "np.clip(scores + 0.5, 0.0, 1.0)",
            "(scores + 0.5)",
            "test_losses_are_weighted_errors",
        ),
        (
            "network_sensitivity",
            "FAR_UP + rounding + 2.0**-50 * n_samples * n_samples",
            "0.5",
            "test_a_record_changes_a_loss_by_one_at_most",
        ),
    ),
    *of(
        "algorithms/perturbation/output.py",
        "tests/algorithms/perturbation/test_output.py",
        (
            "OutputPlan.run",
            "released * (largest / norm) if self.projects and norm > largest else released",
            "released",
            "test_a_release_is_brought_to_the_ball_of_the_minimisers",
        ),
    ),
    *of(
        "algorithms/label_training.py",
        "tests/algorithms/labels/test_hypothesis_cover.py",
        (
            "linear_losses",
            "record_weights[lo : lo + step] @ (predicted != labels[:, None])",
            "2.0 * (record_weights[lo : lo + step] @ (predicted != labels[:, None]))",
            "test_losses_are_weighted_errors",
        ),
        (
            "linear_losses",
            "record_weights[lo : lo + step] @ below",
            "2.0 * (record_weights[lo : lo + step] @ below)",
            "test_a_label_changes_a_loss_with_a_margin_by_one_and_attains_it",
        ),
        (
            "linear_losses",
            "margin / 2.0",
            "margin",
            "test_losses_with_a_margin_count_unit_scores_below_half_of_it",
        ),
    ),
    *of(
        "privacy/mechanisms.py",
        "tests/algorithms/search/test_staged_search.py",
        (
            "Permit.choose",
            "int(released[0])",
            "int(values.argmax())",
            "test_two_stages_by_enumeration",
        ),
    ),
    *of(
        "privacy/budget.py",
        "tests/privacy/test_budget.py",
        (
            "Budget.split",
            "self.epsilon * (1.0 - share)",
            "self.epsilon",
            "test_a_share_and_the_rest_make_the_whole",
        ),
        (
            "Budget.split",
            "math.sqrt(1.0 - share) *",
            "",
            "test_a_share_and_the_rest_make_the_whole",
        ),
        (
            "Budget.equal_parts",
            "math.sqrt(count)",
            "1.0",
            "test_equal_parts_make_the_whole",
        ),
        (
            "Budget.epsilon",
            "* FAR_DOWN",
            "* 1.01",
            "test_a_share_and_the_rest_make_the_whole",
        ),
    ),
    *of(
        "algorithms/ranking/auc_training.py",
        "tests/estimators/test_auc.py",
        (
            "RankingPlan.events",
            "*count,",
            "",
            "test_every_mechanism_ranks",
        ),
        (
            "RankingPlan.events",
            "events, *last",
            "events",
            "test_every_mechanism_ranks",
        ),
    ),
    *of(
        "algorithms/engine/calibration.py",
        "tests/algorithms/engine/test_calibration.py",
        (
            "",
            "math.sqrt(2.0) * UP",
            "1.0",
            "test_a_record_moves_the_counts_by_the_root_of_two",
        ),
        (
            "",
            "_PURE_SENSITIVITY = 2",
            "_PURE_SENSITIVITY = 1",
            "test_a_record_moves_the_counts_by_the_root_of_two",
        ),
        (
            "score_counts",
            "if people is None else people.weights",
            "",
            "tests/test_persons.py::test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
    ),
    *of(
        "algorithms/published/margin_selection.py",
        "tests/algorithms/test_margin_training.py",
        (
            "plan_margin_choice",
            "(1.0 + 1.0 / margin + gap) * FAR_UP",
            "1.0",
            "tests/algorithms/published/test_kernel_margin.py::test_a_choice_covers_every_loss_and_the_error_of_its_minimum",
        ),
        (
            "plan_margin_choice",
            "(1.0 + 1.0 / margin + gap) * FAR_UP",
            "1.0 + 1.0 / margin",
            "tests/algorithms/published/test_kernel_margin.py::test_a_choice_covers_every_loss_and_the_error_of_its_minimum",
        ),
        (
            "_plan_phased_prox",
            "margin, mu)",
            "margin, mu / margin)",
            "tests/algorithms/published/test_kernel_margin.py::test_every_candidate_costs_what_is_charged",
        ),
    ),
    *of(
        "algorithms/label_training.py",
        "tests/estimators/test_label_private.py",
        (
            "plan_labels",
            "FAR_UP + 2.0**-50 * n_samples**2",
            "0.5",
            "test_losses_of_a_search_are_within_the_sensitivity_and_attain_it",
        ),
        (
            "CoverPlan.run",
            "weights / weights.max()",
            "weights ",
            "test_losses_of_a_search_are_within_the_sensitivity_and_attain_it",
        ),
    ),
    *of(
        "algorithms/published/margin_selection.py",
        "tests/algorithms/published/test_margin_selection.py",
        (
            "plan_selection",
            "equal_parts(count)",
            "equal_parts(1)",
            "test_events_use_the_whole_budget",
        ),
        (
            "plan_selection",
            "budget.mu, count",
            "budget.mu, 1",
            "test_scores_have_their_noise",
        ),
    ),
    *of(
        "algorithms/margin_training.py",
        "tests/algorithms/test_margin_training.py",
        (
            "_plan_against_adversary",
            "DOWN,\n        attack=scaled",
            "DOWN",
            "test_the_noise_against_an_attack_is_that_of_moved_rows",
        ),
        (
            "_plan_against_adversary",
            "attack.radius / math.hypot(1.0, constant_column or 0.0)",
            "2.0 * attack.radius",
            "test_the_noise_against_an_attack_is_that_of_moved_rows",
        ),
    ),
    *of(
        "algorithms/engine/column_scales.py",
        "tests/algorithms/engine/test_column_scales.py",
        (
            "plan_column_scales",
            "2.0 * math",
            " math",
            "test_pure_noise_is_what_the_sensitivities_ask_for",
        ),
        (
            "_noise_of_counts",
            "2 * n_columns",
            " n_columns",
            "test_pure_noise_is_what_the_sensitivities_ask_for",
        ),
        (
            "plan_column_scales",
            "first.event, narrow",
            "first",
            "test_events_compose_to_no_more_than_was_asked",
        ),
        (
            "ColumnScalesPlan.run",
            "if people is None else people.weights",
            "",
            "tests/test_persons.py::test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
    ),
    *of(
        "algorithms/engine/column_scales.py",
        "tests/algorithms/engine/test_column_scales.py",
        (
            "_raw_cells",
            "_MISSING",
            "0",
            "test_octaves_are_counted_exactly_in_every_type",
        ),
        (
            "_raw_cells",
            "int64) & -(2**29",
            "int64",
            "test_octaves_are_counted_exactly_in_every_type",
        ),
        (
            "linear_counts",
            "np.clip(column[known], start, end)",
            "column[known]",
            "test_no_record_moves_a_statistic_further_than_the_bound_and_one_attains_it",
        ),
    ),
    *of(
        "algorithms/engine/noisy_gd.py",
        "tests/rows/test_single_rows.py",
        (
            "plan_descent",
            "longest += SINGLE_SHARE + 2.0**-23 * (n_outputs + 16.0)",
            "longest += 0.0",
            "test_noise_pays_for_the_roundings_of_float32",
        ),
    ),
    *of(
        "preprocessing/scalers.py",
        "tests/preprocessing/test_scalers.py",
        (
            "PrivateScaler.fit",
            "opened_ledger(self.ledger, type(self).__name__)",
            "None",
            "test_units_are_released_and_booked",
        ),
        (
            "PrivateScaler.fit",
            "permit, people",
            "permit, None",
            "tests/test_persons.py::test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
    ),
    *of(
        "audit/black_box.py",
        "tests/audit/test_black_box.py",
        (
            "_fit_and_read",
            "Exception",
            "ZeroDivisionError",
            "test_what_is_no_finite_number_is_an_outcome",
        ),
        (
            "_split_outcomes",
            "np.flatnonzero(is_special(values).any(axis=0))",
            "()",
            "test_what_is_no_finite_number_is_an_outcome",
        ),
        (
            "_is_negative_zero",
            "(values == 0.0) & np.signbit(values)",
            "values < -np.inf",
            "test_what_is_no_finite_number_is_an_outcome",
        ),
        (
            "_lower_bounds",
            "_rescale(first, of), _rescale(second, of)",
            "np.nan_to_num(first), np.nan_to_num(second)",
            "test_what_is_no_finite_number_is_an_outcome",
        ),
    ),
    *of(
        "audit/white_box.py",
        "tests/audit/test_replay.py",
        (
            "_Outcome.differences",
            "name for name, first, second in texts if first != second",
            "",
            "test_what_is_hidden_from_a_pickle_or_stands_elsewhere_is_seen",
        ),
        (
            "_Outcome.differences",
            "fingerprint(self.error) == fingerprint",
            "repr(self.error) == repr",
            "test_what_is_hidden_from_a_pickle_or_stands_elsewhere_is_seen",
        ),
        (
            "_differing_keys",
            "first.get(key) != second.get(key)",
            "False",
            "test_what_is_hidden_from_a_pickle_or_stands_elsewhere_is_seen",
        ),
    ),
    *of(
        "audit/_visible.py",
        "tests/audit/test_replay.py",
        (
            "fingerprint",
            "_Digests().of(value)",
            "pickled(value).encode()",
            "test_what_is_hidden_in_a_result_of_a_function_is_seen",
        ),
        (
            "attributes",
            "found[name] = slot",
            " slot",
            "test_what_is_hidden_from_a_pickle_or_stands_elsewhere_is_seen",
        ),
    ),
    *of(
        "estimators/table.py",
        "tests/test_chunks.py",
        (
            "_scores_of_all",
            "without_ledger_and_seed(model)",
            "model",
            "test_no_seed_and_no_account_travels_with_a_model",
        ),
    ),
    *of(
        "algorithms/engine/column_scales.py",
        "tests/test_floating_point_flags.py",
        (
            "in_column_scales",
            'under="ignore",',
            "",
            "test_rows_in_learnt_units_are_rounded_silently",
        ),
    ),
    *of(
        "data/chunked_data.py",
        "tests/test_floating_point_flags.py",
        (
            "by_chunks",
            'all="ignore"',
            "",
            "test_predictions_raise_no_flag",
        ),
    ),
    *of(
        "_params.py",
        "tests/test_floating_point_flags.py",
        (
            "fit_context",
            'nested, np.errstate(all="ignore")',
            "nested",
            "tests/test_common.py::test_floating_point_flags_stay_inside",
        ),
    ),
    *of(
        "data/chunks.py",
        "tests/test_chunks.py",
        (
            "_call_guarded",
            'all="ignore"',
            "",
            "tests/test_floating_point_flags.py::test_what_is_computed_of_chunks_raises_no_flag",
        ),
        (
            "DaskChunks._call",
            "_call_guarded, pure=False, traverse=False)(function, *",
            "function, pure=False, traverse=False)( *",
            "test_no_row_is_in_what_a_worker_would_log",
        ),
        (
            "LocalChunks.values",
            "unwrap_result(_call_guarded(part), i) for i, part in enumerate(self.parts)",
            "part() for part in self.parts",
            "test_of_foreign_errors_only_the_type_is_said",
        ),
        (
            "DaskChunks.values",
            "_compute_parts(dask.compute, self.parts)",
            "dask.compute(* self.parts)",
            "test_of_foreign_errors_only_the_type_is_said",
        ),
        (
            "DaskChunks.kept",
            "_compute_parts(dask.persist, self.parts)",
            "dask.persist(* self.parts)",
            "test_of_foreign_errors_only_the_type_is_said",
        ),
        (
            "is_own",
            'and opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"',
            "",
            "test_what_this_library_raises_of_a_chunk_is_said",
        ),
    ),
    *of(
        "data/chunked_data.py",
        "tests/test_chunks.py",
        (
            "_check_unchanged",
            "_checksum(chunk) != mark",
            "False",
            "test_rows_in_another_order_are_noticed",
        ),
        (
            "_checksum",
            "(column)",
            "(column[:: max(1, len(column) // 64)])",
            "test_one_row_that_changes_between_passes_is_noticed",
        ),
        (
            "_shorten_column",
            "in (0, 4)",
            "in (0, 0)",
            "test_signs_and_halves_of_words_are_in_the_checksum",
        ),
        (
            "_shorten_column",
            "[*sums, data[end:].tobytes()]",
            "sums",
            "test_every_row_is_in_the_checksum",
        ),
        (
            "_label_indices",
            "not is_own(error)",
            "False",
            "test_a_foreign_error_of_labels_is_no_message",
        ),
    ),
    *of(
        "data/chunked_data.py",
        "tests/test_chunks.py",
        (
            "without_ledger_and_seed",
            "type(model)(map(without_ledger_and_seed, model))",
            "model",
            "test_nothing_that_could_release_travels",
        ),
        (
            "without_ledger_and_seed",
            'in {"ledger", "random_state"}',
            '== "ledger"',
            "test_no_seed_and_no_account_travels_with_a_model",
        ),
        (
            "without_ledger_and_seed",
            'in {"ledger", "random_state"}',
            '== "random_state"',
            "test_no_seed_and_no_account_travels_with_a_model",
        ),
        (
            "without_ledger_and_seed",
            "without_ledger_and_seed(value)",
            "value",
            "test_no_seed_and_no_account_travels_with_a_model",
        ),
        (
            "mapped_by_chunks",
            "without_ledger_and_seed(estimator)",
            "estimator",
            "test_no_seed_and_no_account_travels_with_a_model",
        ),
    ),
    *of(
        "optim/objectives.py",
        "tests/test_chunks.py",
        (
            "",
            "_NOTHING = 5e-324",
            "_NOTHING = 1e-2",
            "test_minimisers_are_certified_in_chunks",
        ),
    ),
    *of(
        "metrics/_held_out.py",
        "tests/metrics/test_score.py",
        (
            "HeldOut.outcomes",
            "without_ledger_and_seed(model)",
            "model",
            "tests/test_chunks.py::test_no_seed_and_no_account_travels_with_a_model",
        ),
        (
            "held_out",
            "np.unique(classes)",
            "classes",
            "test_classes_of_a_model_may_be_in_any_order",
        ),
    ),
    *of(
        "metrics/score.py",
        "tests/metrics/test_score.py",
        (
            "private_score",
            'all="ignore"',
            "",
            "tests/test_floating_point_flags.py::test_scores_raise_no_flag",
        ),
        (
            "private_score",
            'opened_ledger(ledger, "private_score")',
            "None",
            "test_a_score_and_a_fit_share_one_ledger",
        ),
        (
            "_Job.events",
            "else 2 *",
            "else ",
            "test_cells_of_scores_of_unknown_units",
        ),
        (
            "_jobs",
            "Budget.of(epsilon, 0.0).equal_parts(len(firsts))",
            "Budget.of(epsilon, 0.0)",
            "test_several_metrics_share_one_budget",
        ),
        (
            "_jobs",
            "Budget.gaussian(mu).equal_parts(len(firsts))",
            "Budget.gaussian(mu)",
            "test_several_metrics_share_one_budget",
        ),
        (
            "_jobs",
            "1.0, share",
            "0.5, share",
            "test_quartiles_are_chosen_by_the_sensitivity_of_ranks",
        ),
    ),
    *of(
        "metrics/_table.py",
        "tests/metrics/test_score.py",
        (
            "",
            "tallies.RIGHT + 2, ",
            "tallies.RIGHT + 1, ",
            "test_no_record_moves_more_than_is_charged_for",
        ),
        (
            "",
            "math.sqrt(tallies.RIGHT**2 + 2.0)",
            "math.sqrt(tallies.RIGHT**2 + 1.0)",
            "test_no_record_moves_more_than_is_charged_for",
        ),
        (
            "",
            "math.sqrt(2.0)",
            "1.0",
            "test_no_record_moves_more_than_is_charged_for",
        ),
        (
            "",
            "(2, math",
            "(1, math",
            "test_no_record_moves_more_than_is_charged_for",
        ),
    ),
    *of(
        "metrics/_tallies.py",
        "tests/metrics/test_score.py",
        (
            "_answers_in_shape",
            "dtype=object if isinstance(given, list | tuple) else None",
            "dtype=None",
            "test_a_list_of_predictions_has_no_common_type",
        ),
        (
            "losses_of",
            "np.clip(loss, 0.0, 1.0)",
            "loss",
            "test_a_loss_of_probabilities_that_are_none_is_one_at_most",
        ),
        (
            "losses_of",
            "np.nan_to_num(0.5 * (probabilities**2).sum(axis=1), nan=1.0)",
            "0.5 * (probabilities**2).sum(axis=1)",
            "test_a_loss_of_probabilities_that_are_none_is_one_at_most",
        ),
        (
            "log_losses_of",
            "np.clip(loss, 0.0, 1.0)",
            "loss",
            "test_log_losses_are_clipped_record_by_record",
        ),
        (
            "log_losses_of",
            "np.nan_to_num(probabilities, nan=0.0)",
            "probabilities",
            "test_log_losses_are_clipped_record_by_record",
        ),
        (
            "count_confusions_of_groups",
            "cells.weights",
            "None",
            "tests/metrics/test_groups.py::test_a_person_moves_them_no_more",
        ),
        (
            "count_bins",
            "np.clip(2.0 * share - 1.0, -1.0, 1.0)",
            "(2.0 * share - 1.0)",
            "test_answers_that_are_no_probabilities_move_no_more",
        ),
        (
            "scores_of",
            "np.nan_to_num(_probabilities(model, X, codes, classes)[:, 1])",
            "_probabilities(model, X, codes, classes)[:, 1]",
            "test_answers_that_are_no_probabilities_move_no_more",
        ),
        (
            "scores_of",
            "np.nan_to_num(scores if is_sorted else -scores)",
            "scores if is_sorted else -scores",
            "test_a_score_that_is_no_number_is_zero",
        ),
        (
            "scores_of",
            "scores if is_sorted else -",
            "",
            "test_classes_of_a_model_may_be_in_any_order",
        ),
        (
            "_probabilities",
            "[:, np.argsort(np.asarray(model.classes_))]",
            "",
            "test_classes_of_a_model_may_be_in_any_order",
        ),
        (
            "_answers_in_shape",
            "answers.shape != shape",
            "False",
            "test_refusals_cost_nothing",
        ),
        (
            "_coded_labels",
            "np.where(is_class, found, (codes + 1) % len(classes))",
            "found",
            "test_a_prediction_that_is_no_class_is_a_wrong_one",
        ),
        (
            "count_bins",
            "if weights is None else place * weights",
            "* 1.0",
            "tests/metrics/test_people.py::test_a_person_moves_counts_like_a_record",
        ),
        (
            "_histogram",
            "columns, weights",
            "columns, None",
            "tests/metrics/test_people.py::test_a_person_moves_counts_like_a_record",
        ),
        (
            "sum_losses",
            "(values, people.starts) // people.counts",
            "(values, people.starts) ",
            "tests/metrics/test_people.py::test_a_person_moves_counts_like_a_record",
        ),
        (
            "sum_losses",
            "np.add.reduceat(values, people.starts) // people.counts",
            "1 * values",
            "tests/metrics/test_people.py::test_a_person_moves_counts_like_a_record",
        ),
        (
            "Cells.weights",
            "(self.largest)",
            "(self.largest) * 0 + 1.0",
            "tests/metrics/test_people.py::test_a_person_moves_counts_like_a_record",
        ),
        (
            "between_places",
            "weights, len",
            "None, len",
            "tests/metrics/test_people.py::test_a_person_moves_no_quartile_by_more_than_one",
        ),
    ),
    *of(
        "model_selection/threshold.py",
        "tests/model_selection/test_threshold.py",
        (
            "PrivateThresholdClassifier._plan_release",
            "ExponentialChoice(1.0, epsilon)",
            "ExponentialChoice(0.5, epsilon)",
            "test_no_record_moves_a_release_by_more_than_is_charged_for",
        ),
        (
            "PrivateThresholdClassifier._plan_release",
            "DiscreteLaplaceNoise(1, first.epsilon)",
            "DiscreteLaplaceNoise(1, 2.0 * first.epsilon)",
            "test_a_fit_pays_before_anything_is_drawn",
        ),
        (
            "PrivateThresholdClassifier._release",
            "np.floor(positive[-1:])",
            "2.0 * positive[-1:]",
            "test_no_record_moves_a_release_by_more_than_is_charged_for",
        ),
        (
            "_Plan.excess",
            "positive - tau * positive[-1]",
            "positive - tau * positive[-1] + positive",
            "test_no_record_moves_a_release_by_more_than_is_charged_for",
        ),
    ),
    *of(
        "model_selection/conformal.py",
        "tests/model_selection/test_conformal.py",
        (
            "PrivateConformalClassifier._plan_release",
            "sensitivity = (1.0 + steepness) * share",
            "sensitivity = 2.0 * share",
            "test_no_record_moves_utilities_by_more_than_is_charged_for",
        ),
        (
            "PrivateConformalClassifier._release",
            "2.0 * (data.n + 1.0 + plan.few + plan.lacking)",
            "inside[:, -1] * 3.0",
            "test_no_record_moves_utilities_by_more_than_is_charged_for",
        ),
        (
            "PrivateConformalClassifier._release",
            "0.5 * (plan.steepness - 1.0)",
            "0.0",
            "test_no_record_moves_utilities_by_more_than_is_charged_for",
        ),
        (
            "PrivateConformalClassifier._release",
            "plan.few_rate * (wanted - plan.few)",
            "2.0 * (wanted - plan.few)",
            "test_no_record_moves_utilities_by_more_than_is_charged_for",
        ),
        (
            "PrivateConformalClassifier._release",
            "plan.step * steps",
            "plan.step * steps * inside / data.n",
            "test_no_record_moves_utilities_by_more_than_is_charged_for",
        ),
    ),
    *of(
        "model_selection/_prefit.py",
        "tests/model_selection/test_threshold.py",
        (
            "PrefitClassifier.fit",
            "opened_ledger(self.ledger, type(self).__name__)",
            "None",
            "test_a_fit_pays_before_anything_is_drawn",
        ),
    ),
    *of(
        "model_selection/_prefit.py",
        "tests/model_selection/test_threshold.py",
        (
            "crossing_utilities",
            "-before, out",
            "before, out",
            "test_first_crossing_is_the_best",
        ),
    ),
    *of(
        "privacy/exponential.py",
        "tests/model_selection/test_conformal.py",
        (
            "ParallelChoice.perturb",
            "sensitivity=self.sensitivity",
            "sensitivity=0.5 * self.sensitivity",
            "test_a_choice_for_every_class_has_the_distribution_of_the_mechanism",
        ),
    ),
    *of(
        "privacy/record.py",
        "tests/privacy/test_attacks.py",
        (
            "PrivacyRecord.attack_tpr",
            "delta + factor * fpr",
            "factor * fpr",
            "test_gaussian_noise_has_the_power_of_neyman_and_pearson",
        ),
    ),
    *of(
        "_budget.py",
        "tests/test_weak_guarantees.py",
        (
            "warn_of_weak_guarantee",
            "1.0 / n",
            "2.0 / n",
            "test_a_large_delta_is_said_once",
        ),
        (
            "warn_of_weak_guarantee",
            "_WEAK_EPSILON <= epsilon",
            "_WEAK_EPSILON < epsilon",
            "test_a_large_epsilon_is_said_once",
        ),
    ),
    *of(
        "metrics/_held_out.py",
        "tests/metrics/test_groups.py",
        (
            "group_codes",
            '"" if hides_rows else ',
            "",
            "test_refusals_cost_nothing",
        ),
        (
            "group_codes",
            'number.get(category_of(cell) or "", len(listed))',
            "number.get(cell, len(listed))",
            "test_a_cell_of_another_type_moves_no_other_record",
        ),
        (
            "group_codes",
            "len(set(categories)) < len(categories)",
            "False",
            "test_refusals_cost_nothing",
        ),
    ),
    *of(
        "data/people.py",
        "tests/test_persons.py",
        (
            "People.weights_for",
            "(one // self.counts) / one",
            "1.0 / self.counts",
            "test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
        (
            "People.weights_for",
            "one // self.counts",
            "one // np.minimum(self.counts, 2)",
            "test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
        (
            "People.places",
            "flatnonzero(is_there), len(index)",
            "arange(is_there.sum()), int(is_there.sum())",
            "test_the_place_of_a_row_does_not_depend_on_how_many_rows_others_have",
        ),
        (
            "People._tiles",
            "_TILE // width",
            "_TILE * len(self)",
            "test_the_work_is_in_proportion_to_the_rows",
        ),
    ),
    *of(
        "optim/risks.py",
        "tests/optim/risks/test_objective_bounds.py",
        (
            "MarginRisk.gradient_change",
            "max_weight * 2.0",
            "max_weight ",
            "test_gradient_change_of_margin_losses",
        ),
        (
            "MarginRisk.gradient_change",
            "lipschitz * self.max_weight",
            "lipschitz ",
            "test_gradient_change_of_margin_losses",
        ),
        (
            "MarginRisk.slope_bounds",
            "2.0 * exponent +",
            "",
            "tests/optim/risks/test_gradient_error.py::test_errors_of_the_exponents_are_needed_and_covered",
        ),
        (
            "MarginRisk.slope_bounds",
            "2.0 * exponent + 40.0 + sums + self.n_columns",
            "0.0",
            "tests/optim/risks/test_gradient_error.py::test_errors_of_the_exponents_are_needed_and_covered",
        ),
    ),
    *of(
        "optim/risks.py",
        "tests/optim/risks/test_softmax.py",
        (
            "SoftmaxRisk.sensitivity",
            "slope = softmax_diameter",
            "slope = 0.93 * softmax_diameter",
            "test_minimisers_of_opposite_rows_nearly_attain_the_bound",
        ),
        (
            "SoftmaxRisk.sensitivity",
            "2.0 * self.max_weight",
            "2.0 ",
            "test_minimisers_of_opposite_rows_nearly_attain_the_bound",
        ),
    ),
    *of(
        "optim/losses.py",
        "tests/optim/risks/test_softmax.py",
        (
            "softmax_diameter",
            "squares, pulls =",
            "largest_score *= 0.7; squares, pulls =",
            "test_farthest_pair_is_covered_and_the_bound_is_near",
        ),
        (
            "softmax_diameter",
            "(beta, n_classes, margin_offset) + (beta * largest_score) ** 2",
            "(beta, n_classes, margin_offset) ",
            "test_farthest_pair_is_covered_and_the_bound_is_near",
        ),
    ),
    *of(
        "optim/risks.py",
        "tests/optim/risks/test_pairs.py",
        (
            "PairRisk.partners",
            "n_samples - 1",
            "n_samples // 2",
            "test_gradient_change",
        ),
        (
            "PairRisk.sensitivity",
            "diameter /",
            "row_norm /",
            "test_sensitivity_against_brute_force",
        ),
    ),
    *of(
        "optim/risks.py",
        "tests/optim/risks/test_margin.py",
        (
            "logistic_diameter",
            "float(found.fun) * FAR_UP",
            "0.9 * float(found.fun)",
            "test_logistic_diameter_anchors",
        ),
        (
            "minimiser_radius",
            "return outer * FAR_UP",
            "return 0.7 * outer",
            "test_radius_logistic_anchors",
        ),
    ),
    *of(
        "optim/pairs.py",
        "tests/optim/objectives/test_pair_grid.py",
        (
            "logistic_rounding",
            "_LEBESGUE * sums",
            "sums",
            "tests/optim/risks/test_gradient_error.py::test_the_bound_is_the_theorem",
        ),
        (
            "_sum_softplus",
            "np.full(places.size, -beyond)",
            "np.zeros(places.size)",
            "test_equals_brute_force_at_every_range",
        ),
    ),
    *of(
        "optim/certificate.py",
        "tests/optim/solvers/test_certificate.py",
        (
            "gradient_error",
            "if compensated:",
            "if True:",
            "test_blocks_that_are_added_plainly_count_each",
        ),
        (
            "solver_tolerance",
            "target + error + linear_error",
            "target ",
            "test_rule",
        ),
        (
            "solver_tolerance",
            "2.0 * certified <= change",
            "certified",
            "test_what_is_certified_may_double_the_noise_and_no_more",
        ),
    ),
    *of(
        "optim/solvers.py",
        "tests/optim/solvers/test_minimum.py",
        (
            "certified_minimum",
            "if not goal.met_by(point):\n                point = accelerated_gradient(objective, goal.gradient, goal.norm)\n            if not goal.met_by(point):\n                # Only rounding errors of the momentum lead here; Newton steps have none.\n                point = _polish(objective, goal.gradient, point.w)",
            "",
            "test_certified_by_every_optimizer",
        ),
        (
            "certified_minimum",
            "point = point_at(objective, point.w)\n                if not goal.met_by(point):\n                    point = _polish(objective, goal.gradient, point.w)",
            "pass",
            "test_a_surrogate_only_shows_the_way",
        ),
    ),
    *of(
        "data/validation.py",
        "tests/test_persons.py",
        (
            "_check_labels",
            "2) or (array.ndim == 2 and array.shape[1] != 1",
            "2",
            "test_no_refusal_tells_how_many_rows_people_have",
        ),
        (
            "check_features",
            "if hides_rows",
            "if False",
            "test_no_refusal_tells_how_many_rows_people_have",
        ),
        (
            "check_training_data",
            "np.repeat(label_set, 3) if hides_rows else",
            "",
            "test_no_warning_tells_how_many_rows_people_have",
        ),
        (
            "is_missing",
            "not value.is_valid or is_missing(value.as_py())",
            "False",
            "test_bad_groups_are_refused_without_a_value_or_a_count",
        ),
        (
            "check_features",
            "_convert_features(estimator, X, reset=reset, read=with_nan)",
            "None",
            "tests/test_inputs.py::test_every_missing_value_among_objects_is_one_missing_value",
        ),
    ),
    *of(
        "__init__.py",
        "tests/test_architecture.py",
        (
            "",
            "from dp_halfspace import metrics as metrics",
            "",
            "test_every_part_is_an_attribute_and_loads_nothing_before",
        ),
    ),
    *of(
        "estimators/base.py",
        "tests/test_common.py",
        (
            "PrivateClassifier.fit",
            'print(f"{type(self).__name__} has charged and released it")',
            "print(data.class_indices)",
            "test_verbose_prints_the_public_record_and_nothing_else",
        ),
    ),
    *of(
        "estimators/base.py",
        "tests/test_persons.py",
        (
            "PrivateClassifier.fit",
            "ArrayLike, *",
            "ArrayLike",
            "test_only_features_and_labels_go_by_position",
        ),
    ),
    *of(
        "_params.py",
        "tests/test_persons.py",
        (
            "fit_context",
            "len(args) > 2",
            "False",
            "test_weights_of_rows_are_not_taken_for_people",
        ),
    ),
    *of(
        "data/validation.py",
        "tests/test_persons.py",
        (
            "_has_missing_part",
            "parts += part",
            "pass",
            "test_bad_groups_are_refused_without_a_value_or_a_count",
        ),
    ),
    *of(
        "rows/single_rows.py",
        "tests/rows/test_single_features.py",
        (
            "sample_groups",
            "np.arange(len(X))",
            "np.arange(len(X))[::-1]",
            "test_which_rows_a_moment_reads_is_decided_by_their_numbers",
        ),
        (
            "SingleFeatureRows._squares",
            "(1.0 + (self.shape[1] + 12) * SINGLE_EPS) ** 2",
            "0.9",
            "test_rows_are_those_of_float64_and_have_norm_one_at_most",
        ),
        (
            "SingleFeatureRows._features",
            "rows[:, size:] = last",
            "rows[:1, size:] = last",
            "test_rows_are_those_of_float64_and_have_norm_one_at_most",
        ),
        (
            "SingleFeatureRows._features",
            "range(part[0] * step, n, part[1] * step)",
            "range(part[0] * step * (self._matrix[300, 0] > 0), n, part[1] * step)",
            "test_which_half_of_the_rows_a_step_reads_is_decided_by_their_numbers",
        ),
        (
            "SingleFeatureRows._features",
            "lo < end",
            "X.any()",
            "test_how_many_features_are_kept_is_decided_by_public_sizes",
        ),
        (
            "SingleFeatureRows.take_groups",
            "_kept={}",
            "_kept=self._kept",
            "test_features_that_are_kept_are_those_that_are_made",
        ),
        (
            "SingleFeatureRows.gram",
            "out=work[: len(rows)]",
            "out=rows",
            "test_features_that_are_kept_are_those_that_are_made",
        ),
    ),
    *of(
        "algorithms/engine/preconditioner.py",
        "tests/rows/test_single_features.py",
        (
            "Preconditioner.single_squares",
            "parts @ removed",
            "2.0 * (parts @ removed)",
            "test_images_have_norm_one_at_most",
        ),
        (
            "Preconditioner.single_squares",
            "1.0 + SINGLE_EPS * roundings",
            "1.0",
            "test_planted_allowance_of_float64_is_caught_in_lengths",
        ),
    ),
    *of(
        "rows/single_rows.py",
        "tests/rows/test_single_rows.py",
        (
            "SingleRows._blocks",
            "not is_ready",
            "not is_ready or not scale.all()",
            "test_what_is_copied_is_decided_by_the_layout",
        ),
        (
            "SingleRows.fused_adjoint",
            "margins[scale == 0.0] = 0.0",
            "",
            "test_a_record_changes_one_group_only",
        ),
    ),
    *of(
        "rows/rows.py",
        "tests/rows/test_rows_by_themselves.py",
        (
            "Rows.scores",
            "X.flags.c_contiguous",
            "True",
            "test_scores_are_products_of_one_layout_whatever_the_records_are",
        ),
    ),
    *of(
        "rows/rows.py",
        "tests/test_persons.py",
        (
            "Rows.apply_to_classes",
            "if self.people is None else counted * self.shares",
            "",
            "test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
    ),
    *of(
        "rows/blocks.py",
        "tests/rows/test_clipping.py",
        (
            "scales_and_lengths",
            "bound * (1.0 - (d + 8) * 2.0**-52)",
            "bound ",
            "test_norms_are_bounded_exactly",
        ),
        (
            "_scales_from_squares",
            "np.minimum(1.0, target / np.sqrt(squares))",
            "target / np.sqrt(squares)",
            "test_norms_are_bounded_exactly",
        ),
    ),
    *of(
        "data/encoding.py",
        "tests/data/test_encoding.py",
        (
            "_count_words",
            "math.sqrt(rows[i] @ rows[i])",
            "math.sqrt((rows * rows).sum())",
            "test_words_of_a_row_depend_on_its_own_cell",
        ),
        (
            "Encoding._encode_columns",
            "np.clip(values, column.low, column.high)",
            "values",
            "test_any_object_has_a_number_and_a_text_silently",
        ),
        (
            "_find_category",
            "place.get(word, -1)",
            "place[word]",
            "tests/data/test_cells.py::test_one_cell_changes_no_other_row",
        ),
    ),
    *of(
        "data/frame.py",
        "tests/data/test_cells.py",
        (
            "_read_arrow",
            "if types.is_time(kind)",
            "if False",
            "test_times_of_day_to_the_nanosecond_and_beyond_the_day",
        ),
        (
            "_columns_beyond_arrow",
            "in _BEYOND_ARROW",
            "in ()",
            "test_columns_of_polars_that_arrow_does_not_have",
        ),
    ),
    *of(
        "data/frame.py",
        "tests/data/test_encoding.py",
        (
            "Stored.numbers",
            "np.clip(numbers, -LARGEST, LARGEST)",
            "numbers",
            "test_any_object_has_a_number_and_a_text_silently",
        ),
        (
            "Stored.numbers",
            "(np.float64) + 0.0",
            "(np.float64) ",
            "test_numbers_are_read_from_every_kind_of_column",
        ),
        (
            "_distinct_objects",
            "(kind, cell)",
            "cell",
            "tests/data/test_cells.py::test_equal_cells_of_other_types_are_read_by_themselves",
        ),
        (
            "read_frame",
            ')\n    refuse_foreign_arrays("X", X',
            "",
            "test_what_is_no_table_is_refused",
        ),
    ),
    *of(
        "data/validation.py",
        "tests/test_persons.py",
        (
            "_owners",
            "map(_name_of, number) if",
            "number if",
            "test_one_name_changes_nobody_else_whatever_a_reader_makes_of_the_column",
        ),
        (
            "_owners",
            "type(value) in plain",
            "True",
            "test_who_is_one_person_depends_neither_on_others_nor_on_their_order",
        ),
        (
            "_owners",
            "abs(key) >= _FIRST_ROUNDED",
            "False",
            "test_bad_groups_are_refused_without_a_value_or_a_count",
        ),
        (
            "_name_of",
            "type(owner)(map(_name_of, owner)) if",
            "owner if",
            "test_so_it_is_for_ids_of_several_parts_and_of_arrow",
        ),
        (
            "_name_of_scalar",
            "else _name_of(value)",
            "else owner",
            "test_so_it_is_for_ids_of_several_parts_and_of_arrow",
        ),
    ),
    *of(
        "data/cells.py",
        "tests/data/test_cells.py",
        (
            "_read_cell",
            "and not isinstance(value, np.timedelta64)",
            "",
            "test_one_object_changes_no_other_row",
        ),
        (
            "_plain_text",
            "if found is None or not",
            "if True or not",
            "test_one_object_changes_no_other_row",
        ),
        (
            "date_in_format",
            "isinstance(value, bytes | bytearray)",
            "False",
            "test_one_object_changes_no_other_row",
        ),
        (
            "_parse_number",
            "_ONE_GROUP[other].fullmatch(text)",
            "True",
            "test_signs_of_decimals",
        ),
        (
            "_in_digits",
            "whole.zfill(n_whole)",
            "whole",
            "test_a_format_of_digits_reads_the_same_from_numbers_and_from_texts",
        ),
        (
            "_read_text",
            "_parse_number(text, decimal)",
            "None",
            "test_one_cell_changes_no_other_row",
        ),
        (
            "_read_text",
            "_parse_moment(text)",
            "None",
            "test_one_cell_changes_no_other_row",
        ),
        (
            "_read_text",
            "if word in (TRUE, FALSE):\n        return word == TRUE",
            "",
            "test_one_cell_changes_no_other_row",
        ),
        (
            "days_of_array",
            "days + nanoseconds / _PER_DAY",
            "array.astype(np.int64) / _STEPS.get(unit, 1)",
            "test_dates_are_the_same_bits_in_every_unit_and_type",
        ),
        (
            "canonical",
            "Exception",
            "KeyError",
            "tests/data/test_encoding.py::test_any_object_has_a_number_and_a_text_silently",
        ),
    ),
    *of(
        "datasets.py",
        "tests/data/test_cells.py",
        (
            "_frame",
            "types_mapper=pandas.ArrowDtype, ignore_metadata",
            " ignore_metadata",
            "test_row_groups_keep_the_types_of_their_file",
        ),
    ),
    *of(
        "_cli/tables.py",
        "tests/cli/test_tables.py",
        (
            "fields",
            "skipinitialspace=is_blank, strict=True",
            "skipinitialspace=is_blank, strict=False",
            "test_unusable_tables",
        ),
        (
            "plain_numbers",
            "None if (np.abs(found) >= _FIRST_ROUNDED).any() else found",
            "found",
            "test_floats_of_a_csv_have_the_canonical_values_of_their_texts",
        ),
    ),
    *of(
        "estimators/table.py",
        "tests/estimators/test_table.py",
        (
            "PrivateTableClassifier._validate",
            "warn_caller(unstated)",
            "pass",
            "test_kinds_that_dtypes_say_are_declared_once",
        ),
        (
            "_TableFit.events",
            "self.scales, self",
            " self",
            "test_a_table_is_learnt_as_it_comes",
        ),
        (
            "_TableFit.events",
            "self.inner, self.calibration",
            "self.inner",
            "test_a_table_is_learnt_as_it_comes",
        ),
    ),
    *of(
        "estimators/base.py",
        "tests/estimators/test_base.py",
        (
            "PrivateClassifier.fit",
            "opened_ledger(self.ledger, type(self).__name__)",
            "None",
            "tests/test_common.py::test_ledger_is_charged_before_noise",
        ),
        (
            "PrivateClassifier._record",
            "events=plan.events",
            "events=plan.events[1:]",
            "test_parameters_set_after_the_fit_change_no_prediction",
        ),
    ),
    *of(
        "data/validation.py",
        "tests/test_inputs.py",
        (
            "_convert_features",
            "if _may_be_single(X)",
            "if True",
            "test_a_missing_cell_does_not_change_the_precision_of_all_rows",
        ),
        (
            "class_indices",
            "_refuse_rounded(label_set)",
            "pass",
            "test_whole_labels_that_floats_cannot_tell_apart_are_not_read_from_floats",
        ),
        (
            "check_features",
            "and not sparse.issparse(checked)",
            "",
            "test_sparse_rows_without_a_number_are_refused_by_their_column",
        ),
    ),
    *of(
        "_rounding.py",
        "tests/test_rounding.py",
        (
            "",
            "UP = 1.0 + 2.0**-40",
            "UP = 1.0",
            "test_a_bound_after_thousands_of_operations_is_not_too_low",
        ),
        (
            "",
            "DOWN = 1.0 - 2.0**-40",
            "DOWN = 1.0",
            "test_parts_of_a_budget_fit_into_it_exactly",
        ),
        (
            "",
            "FAR_UP = 1.0 + 2.0**-30",
            "FAR_UP = 1.0",
            "test_roots_found_by_iteration_are_on_the_safe_side",
        ),
        (
            "",
            "FAR_DOWN = 1.0 - 2.0**-30",
            "FAR_DOWN = 1.0",
            "test_roots_found_by_iteration_are_on_the_safe_side",
        ),
    ),
    *of(
        "algorithms/search/directions.py",
        "tests/estimators/test_pure.py",
        (
            "margin_limits",
            "np.maximum(limits, 1.0)",
            "limits",
            "test_what_was_counted_is_predicted_where_rounded_rows_have_zeros",
        ),
    ),
    *of(
        "algorithms/search/column_rankings.py",
        "tests/algorithms/search/test_column_rankings.py",
        (
            "pair_costs",
            "wrong // (2 * len(cells))",
            "wrong // len(cells)",
            "test_a_record_changes_a_cost_by_one_at_most",
        ),
        (
            "ColumnRankingPlan.events",
            "(self.choice.event,)",
            "()",
            "test_one_choice_is_released_and_nothing_else",
        ),
        (
            "ColumnRankingPlan.run",
            "np.cumsum(repeats)",
            "np.cumsum(repeats[::-1])",
            "test_each_candidate_ranks_by_what_was_counted",
        ),
    ),
    *of(
        "estimators/table.py",
        "tests/estimators/test_ranked_by_a_column.py",
        (
            "_RareTableFit.run",
            "min(noisy, n_samples - noisy)",
            "exact[0] + 0.0 * noisy",
            "test_the_branch_follows_the_released_count",
        ),
        (
            "_RareTableFit.run",
            "steps.with_count(noisy)",
            "steps.with_count(exact[0])",
            "test_a_fit_is_a_function_of_its_releases",
        ),
        (
            "_RareTableFit.run",
            "replace(ranking, noisy=noisy)",
            "replace(ranking, noisy=exact[0])",
            "test_a_fit_is_a_function_of_its_releases",
        ),
        (
            "PrivateTableClassifier._rare_fit",
            "(1.0 - RARE_COUNT_SHARE) * epsilon * FAR_DOWN",
            "epsilon * FAR_DOWN",
            "test_the_record_is_the_same_whichever_follows",
        ),
        (
            "_RareTableFit.events",
            "(self.count.event, self.either)",
            "(self.count.event,)",
            "test_the_record_is_the_same_whichever_follows",
        ),
    ),
    *of(
        "privacy/events.py",
        "tests/privacy/test_accounting.py",
        (
            "contract",
            "[(1.0, event.epsilon, 0.0), (1.0, 0.0, event.mu)]",
            "[(1.0, 0.0, event.mu)]",
            "test_one_of_two_kinds_is_never_dearer_than_its_contract",
        ),
    ),
    *of(
        "privacy/mechanisms.py",
        "tests/privacy/test_mechanisms.py",
        (
            "Permit.enter",
            "Fraction(loss) * count",
            "Fraction(loss)",
            "test_what_neither_kind_covers_is_refused",
        ),
        (
            "Permit.enter",
            "total_mu(counts) <= choice.mu",
            "total_mu(counts[:1]) <= choice.mu",
            "test_what_neither_kind_covers_is_refused",
        ),
        (
            "Permit.enter",
            "self.consume(choice)",
            "pass",
            "test_one_of_two_kinds_is_released_once",
        ),
    ),
    *of(
        "ledger/cap.py",
        "tests/ledger/test_cap.py",
        (
            "_as_gaussian",
            "max(event.mu, _MU_OF_PURE * event.epsilon)",
            "event.mu",
            "test_an_adaptive_ledger_counts_the_dearer_kind",
        ),
    ),
    *of(
        "algorithms/search/small_tables.py",
        "tests/estimators/test_small_tables.py",
        (
            "SmallTablePlan.events",
            "(self.choice.event,)",
            "()",
            "test_a_table_pays_for_its_choice_and_for_the_count_of_errors",
        ),
    ),
    *of(
        "algorithms/search/small_tables.py",
        "tests/algorithms/search/test_small_tables.py",
        (
            "SmallTablePlan.run",
            "float(released[1])",
            "float(np.concatenate(costs)[int(released[0])])",
            "test_a_count_of_errors_is_within_the_budget",
        ),
        (
            "SmallTablePlan._costs",
            "[0], below",
            "[0], 2 * below",
            "test_a_record_changes_a_cost_by_one_at_most",
        ),
    ),
    *of(
        "algorithms/search/small_tables.py",
        "tests/algorithms/search/test_small_tables.py",
        (
            "plan_small_table",
            "round(fewest * more)",
            "fewest",
            "test_constants_are_a_larger_part_of_the_list_where_errors_are_counted",
        ),
        (
            "_part_of_constants",
            "_FALLS / n_epsilon",
            "n_epsilon / _FALLS",
            "test_constants_are_a_larger_part_of_the_list_where_errors_are_counted",
        ),
        (
            "plan_small_table",
            "(epsilon * DOWN)",
            "(2.0 * epsilon * DOWN)",
            "test_one_choice_is_released_and_nothing_else",
        ),
    ),
    *of(
        "algorithms/search/small_tables.py",
        "tests/algorithms/search/test_small_tables.py",
        (
            "SmallTablePlan._costs",
            "[[1",
            "[[2",
            "test_a_record_changes_a_cost_by_one_at_most",
        ),
    ),
    *of(
        "algorithms/search/small_trees.py",
        "tests/algorithms/search/test_small_trees.py",
        (
            "SmallTreePlan.events",
            "(self.choice.event,)",
            "()",
            "test_a_count_of_errors_is_within_the_budget",
        ),
        (
            "SmallTreePlan.costs",
            "(total - right) >> WEIGHT_BITS",
            "(total - right) >> (WEIGHT_BITS - 1)",
            "test_a_record_changes_a_cost_by_one_at_most",
        ),
        (
            "SmallTreePlan.costs",
            "(total - factors * sizes) >> WEIGHT_BITS",
            "(2 * total - 2 * factors * sizes) >> WEIGHT_BITS",
            "test_a_record_changes_a_cost_by_one_at_most",
        ),
        (
            "pair_counts",
            "first & own, first",
            "first, first",
            "test_a_candidate_predicts_what_was_counted",
        ),
        (
            "SmallTreePlan.candidate",
            "(thresholds[limit]) - 0.5",
            "(thresholds[limit])",
            "test_a_candidate_predicts_what_was_counted",
        ),
        (
            "SmallTreePlan.candidate",
            "side + weight * other, side - weight * other",
            "side + 2.0**-6 * other, side - 2.0**-6 * other",
            "test_a_candidate_predicts_what_was_counted",
        ),
        (
            "plan_small_tree",
            "(epsilon * DOWN)",
            "(2.0 * epsilon * DOWN)",
            "test_one_choice_is_released_and_nothing_else",
        ),
        (
            "list_sizes",
            "max(1, round(_CONSTANTS",
            "max(1, round(0.5 * _CONSTANTS",
            "test_the_list_is_public_randomness_with_constants_and_of_bounded_length",
        ),
    ),
    *of(
        "algorithms/search/small_trees.py",
        "tests/algorithms/search/test_staged_trees.py",
        (
            "StagedTreePlan.events",
            "(*choices, *([] if self.count is None else [self.count.noise.event]))",
            "(*choices,)",
            "test_two_choices_are_released_within_the_budget",
        ),
        (
            "on_side",
            "is_there & labels[codes]",
            "is_there | labels[codes]",
            "test_a_record_changes_a_cost_by_one_at_most",
        ),
        (
            "StagedTreePlan._costs",
            "wrong >> WEIGHT_BITS",
            "wrong >> (WEIGHT_BITS - 1)",
            "test_a_record_changes_a_cost_by_one_at_most",
        ),
        (
            "StagedTreePlan.run",
            "scores > cut.threshold",
            "scores - scores[:1] > cut.threshold",
            "test_a_record_changes_a_cost_by_one_at_most",
        ),
        (
            "StagedTreePlan.run",
            "n_errors = n_astray +",
            "n_errors = 2 * n_astray +",
            "test_what_was_counted_is_predicted",
        ),
        (
            "plan_staged_tree",
            "(epsilon - first) * FAR_DOWN",
            "epsilon",
            "test_two_choices_are_released_within_the_budget",
        ),
    ),
    *of(
        "privacy/exponential.py",
        "tests/privacy/test_tallied_selection.py",
        (
            "CountedChoice.rates",
            'epsilon - positive_rational(self.choice_epsilon, "choice_epsilon")',
            "epsilon",
            "test_neighbouring_counted_choices_are_within_the_budget",
        ),
        (
            "CountedChoice.rates",
            "), epsilon",
            "), 2 * epsilon",
            "test_neighbouring_counted_choices_are_within_the_budget",
        ),
        (
            "CountedChoice.event",
            "Pure(self.epsilon)",
            "Pure(self.epsilon - self.choice_epsilon)",
            "test_distribution_of_a_counted_choice_is_the_definition",
        ),
        (
            "CountedChoice.perturb",
            "TalliedChoice(self.choice_epsilon)",
            "TalliedChoice(self.epsilon)",
            "test_distribution_of_a_counted_choice_is_the_definition",
        ),
        (
            "CountedChoice.perturb",
            "up - down",
            "up",
            "test_distribution_of_a_counted_choice_is_the_definition",
        ),
        (
            "TalliedChoices.perturb",
            "TalliedChoice(self.epsilon)",
            "TalliedChoice(2.0 * self.epsilon)",
            "test_distribution_of_several_choices_is_the_definition",
        ),
    ),
    *of(
        "audit/white_box.py",
        "tests/audit/test_replay.py",
        (
            "distance",
            "max(highest, -lowest)",
            "0.0 * highest",
            "test_distances_of_two_lists_add_up",
        ),
    ),
    *of(
        "algorithms/search/directions.py",
        "tests/algorithms/search/test_small_tables.py",
        (
            "asinh_cells",
            "_ends",
            "_ends() * np.abs(scaled).max",
            "test_a_record_changes_a_cost_by_one_at_most",
        ),
    ),
    *of(
        "algorithms/search/directions.py",
        "tests/algorithms/search/test_small_tables.py",
        (
            "CellStream.block",
            "(LARGEST_SUM - size / 2.0)",
            "16.0 * LARGEST_SUM",
            "test_every_sum_of_products_is_exact_in_single_precision",
        ),
    ),
    *of(
        "algorithms/search/small_tables.py",
        "tests/algorithms/search/test_small_tables.py",
        (
            "plan_counted_choice",
            "epsilon * DOWN",
            "1.1 * epsilon",
            "test_a_count_of_errors_is_within_the_budget",
        ),
    ),
    *of(
        "algorithms/search/small_tables.py",
        "tests/algorithms/search/test_staged_trees.py",
        (
            "plan_error_count",
            "(epsilon - part) * FAR_DOWN",
            "epsilon",
            "test_two_choices_are_released_within_the_budget",
        ),
        (
            "ErrorCount.run",
            "permit.release(np.array([float(n_errors)]), self.noise)[0]",
            "n_errors",
            "test_two_choices_are_released_within_the_budget",
        ),
    ),
    *of(
        "estimators/_small_tables.py",
        "tests/estimators/test_small_tables.py",
        (
            "SmallTableFit.run",
            "model.error_share",
            "np.mean((X @ coefficients * norm + model.intercept > 0) != data.class_indices)",
            "test_a_share_of_errors_is_made_of_what_was_released",
        ),
    ),
    *of(
        "algorithms/perturbation/preconditioned.py",
        "tests/algorithms/perturbation/test_preconditioned_output.py",
        (
            "PreconditionedOutputPlan.events",
            "(self.preconditioner.mechanism.event, *self.output.events)",
            "self.output.events",
            "test_whole_budget_and_no_more",
        ),
    ),
    *of(
        "algorithms/perturbation/preconditioned.py",
        "tests/algorithms/perturbation/test_preconditioned_output.py",
        (
            "plan_preconditioned_output",
            "rest.noise",
            "budget.noise",
            "test_whole_budget_and_no_more",
        ),
    ),
    *of(
        "algorithms/perturbation/preconditioned.py",
        "tests/algorithms/perturbation/test_preconditioned_output.py",
        (
            "plan_preconditioned_output",
            "risk, row_norm=1.0",
            "risk",
            "test_plan_is_for_images_of_norm_one",
        ),
    ),
    *of(
        "algorithms/perturbation/preconditioned.py",
        "tests/algorithms/perturbation/test_preconditioned_output.py",
        (
            "release_mapped_rows",
            "FormedRows(rows",
            "MappedRows(rows",
            "test_private_query_is_certified",
        ),
    ),
    *of(
        "algorithms/perturbation/preconditioned.py",
        "tests/algorithms/perturbation/test_preconditioned_output.py",
        (
            "release_mapped_rows",
            "(rows, transform)",
            "(rows, np.eye(len(transform)))",
            "test_private_query_is_certified",
        ),
    ),
    *of(
        "estimators/output_perturbation.py",
        "tests/estimators/test_refusals.py",
        (
            "OutputPerturbationClassifier._is_mapped",
            "(is_robust or budget.delta == 0)",
            "is_robust and budget.delta == 0",
            "test_what_cannot_be_done_is_refused_by_name",
        ),
    ),
    *of(
        "algorithms/fit_plan.py",
        "tests/test_chunks.py",
        (
            "PublicFacts.refuse_unsupported",
            'self.is_chunked and "chunks" not in takes',
            "False",
            "test_what_does_not_run_on_chunks_says_so",
        ),
        (
            "PublicFacts.refuse_unsupported",
            'self.has_people and "groups" not in takes',
            "False",
            "tests/test_persons.py::test_what_does_not_protect_people_refuses_groups_before_it_pays",
        ),
    ),
    *of(
        "rows/mapped_rows.py",
        "tests/algorithms/perturbation/test_preconditioned_output.py",
        (
            "FormedRows._blocks",
            "inverse_lengths(lengths, images.shape[1])",
            "np.ones_like(lengths)",
            "test_sensitivity_against_brute_force",
        ),
    ),
    *of(
        "algorithms/engine/class_counts.py",
        "tests/algorithms/engine/test_class_counts.py",
        (
            "plan_class_counts",
            "math.sqrt(2.0) * UP",
            "1.0",
            "test_a_record_moves_the_counts_by_the_sensitivity",
        ),
        (
            "rarity_of",
            "min(mu, _MOST_MU)",
            "mu",
            "test_the_more_records_of_a_rare_class_the_closer_to_the_fit_of_classes_of_like_size",
        ),
        (
            "rarity_of",
            ", _PER_COLUMN * n_columns",
            ", math.inf",
            "test_few_columns_keep_the_fit_of_a_rare_class_however_many_records_there_are",
        ),
        (
            "plan_class_counts",
            "rest.mu",
            "mu",
            "test_counts_and_the_rest_make_the_whole",
        ),
        (
            "balanced_weights",
            "sizes.min() / sizes",
            "sizes.max() / sizes",
            "test_balanced_weights_are_inverse_sizes_of_at_most_one",
        ),
    ),
    *of(
        "algorithms/engine/defaults.py",
        "tests/algorithms/engine/test_class_counts.py",
        (
            "rarity_settings",
            "weighed / weighed.max()",
            "weighed / weighed.min()",
            "test_whatever_is_counted_the_settings_are_within_their_bounds",
        ),
        (
            "rarity_settings",
            "records / settled",
            "settled / records",
            "test_the_intercept_is_moved_less_the_more_records_a_rare_class_has",
        ),
    ),
    *of(
        "algorithms/engine/noisy_gd.py",
        "tests/estimators/test_auc.py",
        (
            "GradientPlan.with_step_scale",
            "step_size=step_factor * self.descent.step_size)",
            "step_size=step_factor * self.descent.step_size, radius=step_factor)",
            "test_what_follows_the_count_moves_no_noise",
        ),
    ),
    *of(
        "algorithms/engine/noisy_gd.py",
        "tests/algorithms/engine/test_class_counts.py",
        (
            "GradientPlan.for_rarity",
            "min(settings.score_offset, LARGEST_SCORE_OFFSET)",
            "100.0 * settings.score_offset",
            "test_no_noise_follows_the_counts",
        ),
    ),
    *of(
        "algorithms/engine/noisy_gd.py",
        "tests/rows/test_single_features.py",
        (
            "descend",
            "rows.fused_adjoint(query, made, **half)",
            "(1.0 + is_halved) * rows.fused_adjoint(query, made, **half)",
            "test_a_replay_of_halved_steps_finds_nothing",
        ),
    ),
    *of(
        "algorithms/engine/noisy_gd.py",
        "tests/algorithms/engine/test_first_step.py",
        (
            "descend",
            "opening[0].step_factor(noisy, plan)",
            "opening[0].step_factor(ascent, plan)",
            "test_the_pace_is_a_function_of_what_was_released",
        ),
        (
            "FirstStep.step_factor",
            "found + 0.5 * deviation",
            "found",
            "test_noise_is_not_taken_for_signal_nor_for_its_absence",
        ),
        (
            "FirstStep.step_factor",
            "few * length",
            "length",
            "test_more_directions_that_are_flat_ask_for_less_signal",
        ),
    ),
    *of(
        "algorithms/engine/training.py",
        "tests/algorithms/engine/test_first_step.py",
        (
            "first_step",
            "smaller / counts, total",
            "counts / smaller, total",
            "test_whatever_is_counted_weights_are_at_most_one",
        ),
        (
            "LinearPlan.adapt_to_counts",
            "max(n_directions, n_curved)",
            "n_directions",
            "test_a_row_of_many_curved_columns_is_divided_among_them",
        ),
    ),
    *of(
        "algorithms/engine/training.py",
        "tests/algorithms/engine/test_class_counts.py",
        (
            "gradient_training",
            ">= _COUNTS_OF_MANY",
            ">= 0.0",
            "test_few_records_of_many_classes_are_not_counted",
        ),
    ),
    *of(
        "algorithms/engine/training.py",
        "tests/algorithms/engine/test_class_counts.py",
        (
            "LinearPlan.adapt_to_counts",
            "n_columns=self.algorithm.descent.n_columns,",
            "",
            "test_few_columns_keep_the_fit_of_a_rare_class_however_many_records_there_are",
        ),
    ),
    *of(
        "algorithms/engine/training.py",
        "tests/estimators/test_table.py",
        (
            "LinearPlan.adapt_to_counts",
            "is_table=problem.is_table,",
            "",
            "test_only_an_encoded_table_keeps_the_fit_of_a_rare_class_longer",
        ),
    ),
    *of(
        "inspection/displays.py",
        "tests/inspection/test_effects.py",
        (
            "noise_deviations",
            'or not hasattr(model.model_, "feature_map_")',
            "",
            "test_there_is_no_band_for_a_column_that_was_selected",
        ),
        (
            "noise_deviations",
            '"ledger": None, "verbose": 0',
            '"ledger": None',
            "test_a_band_announces_no_release",
        ),
    ),
    *of(
        "algorithms/engine/training.py",
        "tests/estimators/test_table.py",
        (
            "LinearPlan.adapt_to_counts",
            "self.counts.run(data.class_indices, permit, data.people, data.weights)",
            "1.0 * np.bincount(data.class_indices, minlength=problem.n_classes), self.counts.run(data.class_indices, permit, data.people, data.weights)[1]",
            "test_a_fit_that_follows_counts_is_a_function_of_its_releases",
        ),
    ),
    *of(
        "data/record_weights.py",
        "tests/estimators/test_sample_weight.py",
        (
            "_checked",
            "(weights <= 1.0)",
            "(weights <= 2.0)",
            "test_weights_that_are_none_are_refused_without_a_value",
        ),
        (
            "_checked",
            "np.floor(",
            "np.ceil(",
            "test_weights_are_rounded_down_to_a_grid_on_which_sums_are_exact",
        ),
    ),
    *of(
        "algorithms/engine/class_counts.py",
        "tests/estimators/test_sample_weight.py",
        (
            "plan_class_counts",
            "n_classes == 2 and not are_weighed else",
            "n_classes == 2 else",
            "test_a_record_moves_weighted_counts_of_classes_by_the_root_of_two",
        ),
    ),
    *of(
        "algorithms/engine/training.py",
        "tests/estimators/test_sample_weight.py",
        (
            "linear_plan",
            'solver == "objective_perturbation"',
            "True",
            "test_what_is_not_proved_is_refused_before_it_pays",
        ),
    ),
    *of(
        "estimators/table.py",
        "tests/estimators/test_table.py",
        (
            "_TableFit.run",
            "_centre_of_scores(self.encoding, model, fitted.rarity)",
            "float(np.mean(scores))",
            "test_the_centre_of_scores_follows_the_released_model",
        ),
        (
            "_centre_of_scores",
            "side * rarity.degree *",
            "side *",
            "test_the_centre_is_on_the_side_of_the_common_class_and_fades_with_the_degree",
        ),
    ),
    *of(
        "algorithms/engine/calibration.py",
        "tests/estimators/test_sample_weight.py",
        (
            "CalibrationPlan.is_of_integers",
            "isinstance(self.noise, DiscreteLaplaceNoise)",
            "False",
            "test_what_is_not_proved_is_refused_before_it_pays",
        ),
    ),
    *of(
        "estimators/_small_tables.py",
        "tests/estimators/test_sample_weight.py",
        (
            "plan_small_fit",
            " or facts.has_weights",
            "",
            "test_small_tables_with_weights_are_left_to_the_engine",
        ),
    ),
    *of(
        "estimators/output_perturbation.py",
        "tests/estimators/test_sample_weight.py",
        (
            "OutputPerturbationClassifier._risk",
            " or facts.has_weights",
            "",
            "test_a_tilt_knows_that_losses_may_weigh_nothing",
        ),
    ),
    *of(
        "privacy/events.py",
        "tests/privacy/test_record.py",
        (
            "to_dp_event",
            "DOWN / raise_underflow(event.mu)",
            "1.0 / event.mu",
            "test_parameters_for_others_are_on_the_safe_side",
        ),
        (
            "to_dp_event",
            "event.mu == 0.0",
            "event.mu < 0.001",
            "test_parameters_for_others_are_on_the_safe_side",
        ),
    ),
    *of(
        "privacy/record.py",
        "tests/privacy/test_record.py",
        (
            "PrivacyRecord.to_dp_events",
            '"count": count',
            '"count": 1',
            "test_dp_accounting_recomputes_the_cost",
        ),
    ),
    *of(
        "estimators/base.py",
        "tests/algorithms/engine/test_outlook.py",
        (
            "PrivateClassifier._outlook",
            "n_samples = data.n_privacy_units",
            "n_samples = data.n_privacy_units - int(data.class_indices.sum())",
            "test_what_is_said_of_a_ranking_is_the_same_for_neighbours",
        ),
        (
            "PrivateClassifier._count_rarer",
            "_share_of_rarer(fitted.rarity.second)",
            "_share_of_rarer(float(data.class_indices.mean()))",
            "test_after_a_fit_only_what_was_released_is_said",
        ),
    ),
    *of(
        "data/validation.py",
        "tests/data/test_odd_cells.py",
        (
            "with_nan",
            'order="K" if isinstance(X, np.ndarray) else "C"',
            'order="C"',
            "test_an_odd_cell_changes_nothing_of_other_cells_and_warns_of_nothing",
        ),
        (
            "_convert_features",
            "if has_no_order",
            "if False",
            "test_a_missing_cell_of_a_typed_frame_changes_nothing_of_others",
        ),
        (
            "_check_labels",
            "if has_text_in_list",
            "if False",
            "test_a_text_does_not_turn_all_labels_of_a_list_into_texts",
        ),
        (
            "_name_of",
            "or text in _ENDLESS",
            "",
            "test_ids_of_any_length_are_told_apart_whatever_another_id_is",
        ),
    ),
    *of(
        "data/frame.py",
        "tests/data/test_odd_cells.py",
        (
            "_is_row",
            'getattr(row, "ndim", 1) == 1',
            "isinstance(row, list | tuple)",
            "test_how_one_row_is_stored_does_not_decide_how_others_are_read",
        ),
    ),
    *of(
        "data/schema.py",
        "tests/data/test_odd_cells.py",
        (
            "label_set",
            "if is_list",
            "if False",
            "test_types_of_single_labels_do_not_decide_the_type_of_all",
        ),
    ),
    *of(
        "algorithms/engine/class_counts.py",
        "tests/test_rounding.py",
        (
            "plan_class_counts",
            "sensitivity = UP if",
            "sensitivity = 1.0 if",
            "test_a_bound_is_raised_by_its_factor",
        ),
    ),
    *of(
        "algorithms/engine/column_scales.py",
        "tests/test_rounding.py",
        (
            "plan_column_scales",
            "math.sqrt(n_features) * UP",
            "math.sqrt(n_features)",
            "test_a_bound_is_raised_by_its_factor",
        ),
    ),
    *of(
        "algorithms/perturbation/output.py",
        "tests/test_rounding.py",
        (
            "plan_output",
            "(goal.certified / total)) * UP",
            "(goal.certified / total))",
            "test_a_bound_is_raised_by_its_factor",
        ),
    ),
    *of(
        "algorithms/perturbation/objective.py",
        "tests/test_rounding.py",
        (
            "_with_output",
            "size / total * UP",
            "size / total",
            "test_a_bound_is_raised_by_its_factor",
        ),
    ),
    *of(
        "optim/risks.py",
        "tests/test_rounding.py",
        (
            "MarginRisk.sensitivity",
            "(ridge * self.n_samples) * FAR_UP",
            "(ridge * self.n_samples)",
            "test_a_bound_is_raised_by_its_factor",
        ),
        (
            "MarginRisk.influence",
            "self.tilt * spread * FAR_UP",
            "self.tilt * spread",
            "test_a_bound_is_raised_by_its_factor",
        ),
        (
            "PairRisk.log_ratio",
            "(own + rest) * FAR_UP",
            "own + rest",
            "test_a_factor_inside_a_plan_is_used",
        ),
    ),
    *of(
        "ledger/cap.py",
        "tests/test_rounding.py",
        (
            "",
            "math.sqrt(0.5 * math.pi) * UP",
            "math.sqrt(0.5 * math.pi)",
            "test_a_bound_is_raised_by_its_factor",
        ),
    ),
    *of(
        "estimators/output_perturbation.py",
        "tests/test_rounding.py",
        (
            "OutputPerturbationClassifier._plan_clipped",
            "math.hypot(norm, constant or 0.0) * UP",
            "math.hypot(norm, constant or 0.0)",
            "test_a_factor_inside_a_plan_is_used",
        ),
    ),
    *of(
        "algorithms/search/small_tables.py",
        "tests/test_rounding.py",
        (
            "plan_error_count",
            "(epsilon - part) * FAR_DOWN",
            "epsilon - part",
            "test_what_a_budget_is_divided_into_is_lowered_by_its_factor",
        ),
    ),
    *of(
        "model_selection/_search_plan.py",
        "tests/test_rounding.py",
        (
            "_Search.exponential",
            "len(self.grid) * WIDE_DOWN",
            "len(self.grid)",
            "test_what_a_budget_is_divided_into_is_lowered_by_its_factor",
        ),
    ),
    *of(
        "metrics/score.py",
        "tests/test_adjacency.py",
        (
            "private_score",
            '"replace-one" if data.people is None else',
            "",
            "test_only_groups_make_a_person_the_unit",
        ),
    ),
    *of(
        "model_selection/_prefit.py",
        "tests/test_adjacency.py",
        (
            "PrefitClassifier._plan_fit",
            '"replace-one" if data.people is None else',
            "",
            "test_only_groups_make_a_person_the_unit",
        ),
    ),
    *of(
        "preprocessing/scalers.py",
        "tests/test_adjacency.py",
        (
            "PrivateScaler._plan_fit",
            '"replace-one" if people is None else',
            "",
            "test_only_groups_make_a_person_the_unit",
        ),
    ),
    *of(
        "privacy/record.py",
        "tests/test_adjacency.py",
        (
            "",
            '"record; nothing is promised about the features"',
            '"record"',
            "test_a_record_says_in_words_who_is_protected",
        ),
    ),
    *of(
        "algorithms/wrapped_plans.py",
        "tests/estimators/test_balanced.py",
        (
            "BalancedPlan.run",
            "balanced_weights(counts,",
            "balanced_weights(1.0 * np.bincount(data.class_indices, minlength=len(counts)),",
            "test_classes_weigh_by_released_counts_alone",
        ),
        (
            "BalancedPlan.run",
            "data.people, data.weights",
            "None, data.weights",
            "test_people_count_once_and_records_by_their_weights",
        ),
        (
            "plan_balanced",
            "are_weighed=facts.has_weights",
            "are_weighed=False",
            "test_counts_of_weighed_records_are_charged_for_both_classes",
        ),
    ),
    *of(
        "algorithms/engine/class_counts.py",
        "tests/algorithms/test_functions_of_releases.py",
        (
            "ClassCountPlan.run",
            "permit.release(exact[1:], self.noise)[0]",
            "(permit.release(exact[1:], self.noise), exact[1])[1]",
            "test_counts_of_classes",
        ),
        (
            "ClassCountPlan.run",
            "counts.sum(), 1.0",
            "exact.sum(), 1.0",
            "test_counts_of_classes",
        ),
        (
            "ClassCountPlan.run",
            "self.n_classes, people, weights",
            "self.n_classes, None, weights",
            "test_a_person_moves_a_release_by_its_sensitivity_at_most",
        ),
    ),
    *of(
        "algorithms/engine/calibration.py",
        "tests/algorithms/test_functions_of_releases.py",
        (
            "CalibrationPlan.run",
            "NoisyCounts(_EDGES + centre, counts,",
            "NoisyCounts(_EDGES + centre, exact,",
            "test_curves_of_probabilities",
        ),
        (
            "CalibrationPlan.run",
            "_likeliest(counts,",
            "_likeliest(exact,",
            "test_curves_of_probabilities",
        ),
        (
            "CalibrationPlan.run",
            "classes, people, common",
            "classes, None, common",
            "test_a_person_moves_a_release_by_its_sensitivity_at_most",
        ),
    ),
    *of(
        "algorithms/engine/column_scales.py",
        "tests/algorithms/test_functions_of_releases.py",
        (
            "ColumnScalesPlan._look_again",
            "noisy = permit.release(counts, noise)",
            "noisy = (permit.release(counts, noise), counts)[1]",
            "test_scales_of_columns",
        ),
        (
            "ColumnScalesPlan.run",
            "permit.release(moments, self.moments) / self.n_samples",
            "(permit.release(moments, self.moments), moments)[1] / self.n_samples",
            "test_scales_of_columns",
        ),
        (
            "ColumnScalesPlan.run",
            "clipped_moments, X, scales, people",
            "clipped_moments, X, scales, None",
            "test_a_person_moves_a_release_by_its_sensitivity_at_most",
        ),
        (
            "ColumnScalesPlan.run",
            "scales, permit, weights)",
            "scales, permit, None)",
            "test_a_person_moves_a_release_by_its_sensitivity_at_most",
        ),
    ),
    *of(
        "algorithms/engine/training.py",
        "tests/algorithms/test_functions_of_releases.py",
        (
            "LinearPlan.adapt_to_counts",
            "permit, data.people,",
            "permit, None,",
            "test_a_person_moves_a_release_by_its_sensitivity_at_most",
        ),
        (
            "LinearPlan.run",
            "plan.rows(data.X, data.people)",
            "plan.rows(data.X, None)",
            "test_a_person_moves_a_release_by_its_sensitivity_at_most",
        ),
    ),
    *of(
        "algorithms/search/small_tables.py",
        "tests/algorithms/test_functions_of_releases.py",
        (
            "SmallTablePlan.run",
            "self._candidate(int(released[0]),",
            "self._candidate(int(np.concatenate(costs).argmin()),",
            "test_selections_of_small_tables",
        ),
    ),
    *of(
        "algorithms/search/small_trees.py",
        "tests/algorithms/test_functions_of_releases.py",
        (
            "StagedTreePlan.run",
            "self.count.run(n_errors, permit)",
            "0.0 * self.count.run(n_errors, permit) + n_errors",
            "test_selections_of_small_tables",
        ),
    ),
    *of(
        "algorithms/search/halfspace_search.py",
        "tests/algorithms/test_functions_of_releases.py",
        (
            "run_search",
            "permit.choose(utilities, plan.mechanism)",
            "(permit.choose(utilities, plan.mechanism), int(utilities.argmax()))[1]",
            "test_searches_and_a_count",
        ),
    ),
    *of(
        "algorithms/ranking/auc_training.py",
        "tests/algorithms/test_functions_of_releases.py",
        (
            "release_standardisation",
            "permit.release(sums, plan.mechanism) / n",
            "(permit.release(sums, plan.mechanism), sums)[1] / n",
            "test_a_preconditioner_and_a_standardisation",
        ),
        (
            "release_count",
            "weight_of, positive, people",
            "weight_of, positive, None",
            "test_a_person_moves_a_release_by_its_sensitivity_at_most",
        ),
    ),
    *of(
        "model_selection/search.py",
        "tests/model_selection/test_search.py",
        (
            "PrivateSearchCV._plan_search",
            "noise_kind(self.random_state)",
            '"os"',
            "test_the_record_says_where_the_noise_comes_from",
        ),
        (
            "PrivateSearchCV._candidate",
            '"random_state": None',
            '"random_state": 0',
            "test_runs_of_an_unseeded_search_never_draw_the_same_noise",
        ),
    ),
    *of(
        "model_selection/_search_plan.py",
        "tests/model_selection/test_search.py",
        (
            "_train_and_score",
            'OS_RANDOMNESS if seed is None else SeededBytes(seed[0], f"score {seed[1]}")',
            'SeededBytes(0, "score")',
            "test_the_noise_of_a_score_is_the_streams",
        ),
    ),
    *of(
        "model_selection/threshold.py",
        "tests/model_selection/test_functions_of_releases.py",
        (
            "PrivateThresholdClassifier._release",
            "plan.slack_for(count, data.n)",
            "plan.slack_for(None if count is None else float(positive[-1]), data.n)",
            "test_a_target_is_raised_by_the_released_count",
        ),
        (
            "PrivateThresholdClassifier._release",
            "self.n_positive_ = count",
            "self.n_positive_ = None if count is None else float(positive[-1])",
            "test_a_threshold",
        ),
    ),
    *of(
        "rows/single_rows.py",
        "tests/rows/test_single_rows.py",
        (
            "single_normalised_rows",
            "bounds *= 1.0 + (size + 12) * SINGLE_EPS",
            "pass",
            "test_rows_are_shorter_than_one_by_what_their_length_may_be_off",
        ),
        (
            "SingleRows.normalise_images",
            "bounds *= 1.0 + (size + 12) * SINGLE_EPS",
            "pass",
            "test_rows_are_shorter_than_one_by_what_their_length_may_be_off",
        ),
        (
            "SingleRows.normalise_images",
            "bounds += error * self.row_bound",
            "pass",
            "test_rows_are_shorter_than_one_by_what_their_length_may_be_off",
        ),
    ),
    *of(
        "privacy/randomness.py",
        "tests/privacy/test_randomness.py",
        (
            "noise_source",
            'SeededBytes(_check_seed(random_state), "noise")',
            'SeededBytes(_check_seed(random_state), "public/projection")',
            "test_public_generator_is_reproducible_and_apart_from_the_noise",
        ),
    ),
    *of(
        "algorithms/engine/noisy_gd.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "plan_gradient",
            "largest_score_offset=largest_score_offset",
            "largest_score_offset=0.0",
            "test_steps_pay_for_the_roundings_of_a_map_and_of_a_favoured_score",
        ),
        (
            "plan_gradient",
            "else preconditioner.compression",
            "else 1.0",
            "test_steps_pay_for_the_roundings_of_a_map_and_of_a_favoured_score",
        ),
    ),
    *of(
        "algorithms/engine/training.py",
        "tests/audit/test_stated_sensitivities.py",
        (
            "gradient_training",
            "0.0 if counts is None else LARGEST_SCORE_OFFSET",
            "0.0",
            "test_steps_pay_for_the_roundings_of_a_map_and_of_a_favoured_score",
        ),
    ),
    *of(
        "rows/blocks.py",
        "tests/rows/test_clipping.py",
        (
            "scales_and_lengths",
            "(d + 8) * 2.0**-52",
            "d * 2.0**-52",
            "test_rows_are_shorter_than_the_bound_by_what_their_norm_may_be_off",
        ),
    ),
    *of(
        "algorithms/kernel_training.py",
        "tests/algorithms/test_functions_of_releases.py",
        (
            "KernelPlan._normalised_columns",
            ", people=data.people",
            "",
            "test_rows_of_features_weigh_people",
        ),
        (
            "KernelPlan._rows",
            "data.X, self.data_norm, constant_column, people=people",
            "data.X, self.data_norm, constant_column",
            "test_rows_of_features_weigh_people",
        ),
        (
            "KernelPlan._rows",
            "features, constant_column, people=people",
            "features, constant_column",
            "test_rows_of_features_weigh_people",
        ),
    ),
    *of(
        "privacy/random_stopping.py",
        "tests/test_rounding.py",
        (
            "trade_off",
            "np.exp(t) * UP",
            "np.exp(t)",
            "test_a_factor_inside_a_plan_is_used",
        ),
    ),
]
