"""Lines on which privacy rests, each with a wrong one in its place and the test that notices.

``python -m tests.mutations`` runs them. The text of a right line occurs once in its file, which
``tests/test_mutations.py`` checks; whoever moves or rewords such a line moves its entry.
"""
# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A change of one place in a file of the package, and tests of which one has to fail."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, source: str) -> str:
        """Change the source of the file."""
        count = source.count(self.old)
        if count != 1:
            raise ValueError(f"{self.old!r} is {count} times in {self.file}: it must be there once")
        return source.replace(self.old, self.new)

    def __str__(self) -> str:
        return f"{self.file}: {self.old!r} -> {self.new!r} ({self.tests[0]})"


def of(file: str, home: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """List changes of a file; their tests are in `home`, or elsewhere by their whole name."""
    return [
        Mutant(file, old, new, (test if "::" in test else f"{home}::{test}",))
        for old, new, test in changes
    ]


MUTANTS = [
    *of(
        "model_selection/search.py",
        "tests/model_selection/test_search_laws.py",
        (
            "        count = plan.law.draw(source)",
            "        count = round(plan.law.mean)",
            "test_random_stopping_has_the_law_of_the_proof",
        ),
    ),
    *of(
        "model_selection/_scores.py",
        "tests/model_selection/test_search.py",
        (
            "    return math.fsum(np.clip(each, 0.0, 1.0))",
            "    return math.fsum(each)",
            "test_scores_are_cut_to_one_number_in_the_unit_interval_for_each_record",
        ),
    ),
    *of(
        "model_selection/_search_plan.py",
        "tests/model_selection/test_search_laws.py",
        (
            "    return 1.0 + 2.0**-40 + n_samples * 2.0**-51",
            "    return 0.5",
            "test_sums_of_scores_change_by_no_more_than_their_sensitivity",
        ),
    ),
    *of(
        "algorithms/gradient/noisy_gd.py",
        "tests/algorithms/gradient/test_noisy_gd.py",
        (
            "        return 2.0 * (longest + rounding)",
            "        return longest + rounding",
            "test_run_costs_exactly_what_it_says",
        ),
    ),
    *of(
        "algorithms/gradient/descent.py",
        "tests/algorithms/gradient/test_descent.py",
        (
            "        return (self.metric.mechanism.event, self.descent.event)",
            "        return (self.descent.event,)",
            "test_whole_budget_and_no_more",
        ),
    ),
    *of(
        "algorithms/gradient/adversarial_rows.py",
        "tests/algorithms/gradient/test_adversarial_rows.py",
        (
            "    length = np.hypot(1.0, bias or 0.0)",
            "    length = 1.0",
            "test_rows_have_one_factor",
        ),
    ),
    *of(
        "algorithms/gradient/margin_gd.py",
        "tests/algorithms/gradient/test_margin_gd.py",
        (
            "        return np.asarray(signs[lo:hi] * weights[lo:hi] * np.clip(missing, 0.0, 1.0))",
            "        return np.asarray(signs[lo:hi] * weights[lo:hi] * np.maximum(missing, 0.0))",
            "test_sum_of_gradients_moves_by_two_at_most_and_does",
        ),
    ),
    *of(
        "algorithms/gradient/phased_gd.py",
        "tests/algorithms/gradient/test_phased_gd.py",
        (
            "    return GaussianNoise(2.0 * (pull * (1.0 + 2.0**-30) + rounding), mu)",
            "    return GaussianNoise(pull * (1.0 + 2.0**-30) + rounding, mu)",
            "test_phases_are_a_partition_into_halves",
        ),
    ),
    *of(
        "algorithms/gradient/mean_difference.py",
        "tests/algorithms/gradient/test_mean_difference.py",
        (
            "MOMENT_SENSITIVITY = math.sqrt(4.5) * (1.0 + 2.0**-50)",
            "MOMENT_SENSITIVITY = 2.0 * (1.0 + 2.0**-50)",
            "test_squares_and_rows_together_change_by_the_root_of_four_and_a_half",
        ),
    ),
    *of(
        "algorithms/gradient/preconditioner.py",
        "tests/algorithms/gradient/test_preconditioner.py",
        (
            "    weight = np.full((size, size), math.sqrt(2.0))",
            "    weight = np.full((size, size), 2.0)",
            "test_sensitivity_against_brute_force",
        ),
    ),
    *of(
        "algorithms/perturbation/output.py",
        "tests/algorithms/perturbation/test_output.py",
        (
            "(exact + 2.0 * (goal.certified / total)) * _UP",
            "exact * _UP",
            "test_planned_sensitivity_covers_the_tolerance",
        ),
    ),
    *of(
        "algorithms/perturbation/objective.py",
        "tests/algorithms/perturbation/test_objective.py",
        (
            ("    ridge = max(ridge, risk.ridge_floor(epsilon))\n    linear: LinearTerm"),
            "    linear: LinearTerm",
            "test_exact_delta_in_one_dimension",
        ),
    ),
    *of(
        "algorithms/perturbation/linear_term.py",
        "tests/algorithms/perturbation/test_linear_term.py",
        (
            "        return self.change / self.mu * _UP",
            "        return self.change / self.mu / 2.0",
            "test_draws_have_the_claimed_law",
        ),
    ),
    *of(
        "algorithms/perturbation/preconditioned_objective.py",
        "tests/algorithms/perturbation/test_preconditioned_objective.py",
        (
            "        return (self.metric.mechanism.event, *self.objective.events)",
            "        return self.objective.events",
            "test_whole_budget_and_no_more",
        ),
    ),
    *of(
        "algorithms/perturbation/label_statistic.py",
        "tests/algorithms/perturbation/test_label_statistic.py",
        (
            "    exact = 1.0 if n_classes == 2 else math.sqrt(2.0)",
            "    exact = 0.5 if n_classes == 2 else math.sqrt(2.0)",
            "test_sensitivity_is_attained_and_never_exceeded",
        ),
    ),
    *of(
        "algorithms/selection/class_counts.py",
        "tests/test_persons.py",
        (
            "    weights = np.ones(len(positive)) if people is None else people.weights",
            "    weights = np.ones(len(positive))",
            "test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
    ),
    *of(
        "algorithms/selection/direction_counts.py",
        "tests/algorithms/selection/test_direction_counts.py",
        (
            "    values[~(squares <= ROW_NORM**2)] = 0.0",
            "    pass",
            "test_rows_that_are_too_long_are_zero",
        ),
    ),
    *of(
        "algorithms/selection/halfspace_search.py",
        "tests/algorithms/selection/test_halfspace_search.py",
        (
            "        return (self.choice.event,) * (1 + len(self.radii))",
            "        return (self.choice.event,)",
            "test_stages_look_round_the_winner_and_share_the_budget",
        ),
    ),
    *of(
        "algorithms/selection/margin_counts.py",
        "tests/algorithms/selection/test_margin_counts.py",
        (
            "scores((sizes[0] - first[1], second[0])",
            "scores((sizes[0] + first[1], second[0])",
            "test_costs_are_the_definition",
        ),
    ),
    *of(
        "algorithms/selection/directions.py",
        "tests/algorithms/selection/test_directions.py",
        (
            "ROW_NORM, _DIRECTION_NORM = 4095, 2047",
            "ROW_NORM, _DIRECTION_NORM = 65535, 65535",
            "test_directions_are_small_integers_and_repeat",
        ),
    ),
    *of(
        "algorithms/selection/threshold.py",
        "tests/algorithms/selection/test_threshold.py",
        (
            "    return ExponentialChoice(1.0 + 2.0**-30 + rounding, epsilon)",
            "    return ExponentialChoice(0.5, epsilon)",
            "test_sensitivity_against_brute_force",
        ),
    ),
    *of(
        "algorithms/selection/staged_search.py",
        "tests/algorithms/selection/test_staged_search.py",
        (
            "        return (self.mechanism.event,) * len(self.radii)",
            "        return (self.mechanism.event,)",
            "test_two_stages_by_enumeration",
        ),
    ),
    *of(
        "algorithms/selection/network.py",
        "tests/algorithms/selection/test_network.py",
        (
            "            total += signed[lo : lo + rows] @ np.clip(scores + 0.5, 0.0, 1.0)",
            "            total += signed[lo : lo + rows] @ (scores + 0.5)",
            "test_losses_are_weighted_errors",
        ),
    ),
    *of(
        "algorithms/selection/hypothesis_cover.py",
        "tests/algorithms/selection/test_hypothesis_cover.py",
        (
            "            total += record_weights[lo : lo + step] @ (predicted != labels[:, None])",
            "            total += 2.0 * (record_weights[lo : lo + step] @ (predicted != labels[:, None]))",
            "test_losses_are_weighted_errors",
        ),
    ),
    *of(
        "algorithms/fits/auc_budget.py",
        "tests/estimators/test_auc.py",
        (
            "        rest = (1.0 - share) * _DOWN",
            "        rest = 1.0",
            "test_every_mechanism_ranks",
        ),
    ),
    *of(
        "algorithms/fits/auc_training.py",
        "tests/estimators/test_auc.py",
        (
            "        return (*count, *self.ranker.plan.events, *last)",
            "        return (*self.ranker.plan.events, *last)",
            "test_every_mechanism_ranks",
        ),
    ),
    *of(
        "algorithms/fits/calibration.py",
        "tests/algorithms/fits/test_calibration.py",
        (
            "_SENSITIVITY, _PURE_SENSITIVITY = math.sqrt(2.0) * (1.0 + 2.0**-40), 2",
            "_SENSITIVITY, _PURE_SENSITIVITY = 1.0, 2",
            "test_a_record_moves_the_counts_by_the_root_of_two",
        ),
    ),
    *of(
        "algorithms/fits/kernel_selection.py",
        "tests/algorithms/fits/test_margin_training.py",
        (
            "        reach = tuple((1.0 + 1.0 / margin + gap) * (1.0 + 2.0**-30) for margin, gap in pairs)",
            "        reach = tuple(1.0 for margin, gap in pairs)",
            "test_an_attack_raises_the_allowance_for_rounding",
        ),
    ),
    *of(
        "algorithms/fits/label_training.py",
        "tests/estimators/test_label_private.py",
        (
            "        sensitivity = 1.0 + 2.0**-30 + 2.0**-50 * n_samples**2",
            "        sensitivity = 0.5",
            "test_losses_of_a_search_are_within_the_sensitivity_and_attain_it",
        ),
    ),
    *of(
        "algorithms/fits/margin_selection.py",
        "tests/algorithms/fits/test_margin_selection.py",
        (
            "        each = mu_beside(choice.epsilon, epsilon, delta) / math.sqrt(count) * _DOWN",
            "        each = mu_beside(choice.epsilon, epsilon, delta) * _DOWN",
            "test_events_use_the_whole_budget",
        ),
    ),
    *of(
        "algorithms/fits/margin_training.py",
        "tests/algorithms/fits/test_margin_training.py",
        (
            ("        mu=mu * (1.0 - 2.0**-40),\n        attack=scaled,"),
            "        mu=mu * (1.0 - 2.0**-40),",
            "test_an_attack_raises_the_allowance_for_rounding",
        ),
    ),
    *of(
        "algorithms/units/plan.py",
        "tests/algorithms/units/test_units.py",
        (
            "        sensitivity = 2.0 * math.sqrt(self.n_features) * _UP",
            "        sensitivity = math.sqrt(self.n_features) * _UP",
            "test_pure_noise_is_what_the_sensitivities_ask_for",
        ),
    ),
    *of(
        "algorithms/units/cells.py",
        "tests/algorithms/units/test_units.py",
        (
            ("        cell[np.isnan(block)] = n_cells - 1\n"),
            "",
            "test_heavy_tails_zeros_constants_and_holes_have_units",
        ),
    ),
    *of(
        "preprocessing/private_scaler.py",
        "tests/preprocessing/test_scalers.py",
        (
            "        permit = authorise(record, noise_source(self.random_state), self.ledger)",
            "        permit = authorise(record, noise_source(self.random_state), None)",
            "test_units_are_released_and_booked",
        ),
    ),
    *of(
        "metrics/score.py",
        "tests/metrics/test_score.py",
        (
            "    permit = authorise(record, noise_source(random_state), ledger)",
            "    permit = authorise(record, noise_source(random_state), None)",
            "test_a_score_and_a_fit_share_one_ledger",
        ),
    ),
    *of(
        "metrics/_tallies.py",
        "tests/metrics/test_score.py",
        (
            '    "accuracy": (1, 1.0),',
            '    "accuracy": (1, 0.5),',
            "test_no_record_moves_more_than_is_charged_for",
        ),
    ),
    *of(
        "_people.py",
        "tests/test_persons.py",
        (
            "        return np.repeat((one // self.counts) / one, self.counts)",
            "        return np.repeat(1.0 / self.counts, self.counts)",
            "test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have",
        ),
    ),
    *of(
        "optim/risks/margin.py",
        "tests/optim/risks/test_objective_bounds.py",
        (
            "        return self.loss.lipschitz * self.max_weight * 2.0 * self.row_norm * _UP",
            "        return self.loss.lipschitz * self.max_weight * self.row_norm * _UP",
            "test_gradient_change_of_margin_losses",
        ),
    ),
    *of(
        "optim/risks/softmax.py",
        "tests/optim/risks/test_softmax.py",
        (
            "        slope = softmax_diameter(self.n_classes, reach, shift=self.shift)",
            "        slope = 0.93 * softmax_diameter(self.n_classes, reach, shift=self.shift)",
            "test_minimisers_of_opposite_rows_nearly_attain_the_bound",
        ),
    ),
    *of(
        "optim/risks/softmax_gradients.py",
        "tests/optim/risks/test_softmax.py",
        (
            "    return _diameter(n_classes, math.ceil(math.log(reach) / _STEP), shift)",
            "    return _diameter(n_classes, math.ceil(math.log(0.7 * reach) / _STEP), shift)",
            "test_farthest_pair_is_covered_and_the_bound_is_near",
        ),
    ),
    *of(
        "optim/risks/pairs.py",
        "tests/optim/risks/test_pairs.py",
        (
            "        return max(1, self.n_samples - 1) / self.normaliser",
            "        return max(1, self.n_samples // 2) / self.normaliser",
            "test_gradient_change",
        ),
    ),
    *of(
        "optim/risks/stability.py",
        "tests/optim/risks/test_margin.py",
        (
            "    return min(1.0, -float(found.fun) * _UP)",
            "    return min(1.0, -0.9 * float(found.fun))",
            "test_logistic_diameter_anchors",
        ),
    ),
    *of(
        "privacy/ledger.py",
        "tests/privacy/test_balance.py",
        (
            "        self._balance = balance = balance.after(rows[bool(balance.last) :], self.handle)",
            (
                "        whole = balance.after(rows[bool(balance.last) :], self.handle)\n"
                "        self._balance = Balance(whole.digest, whole.last, balance.spent)\n"
                "        self._balance = balance = whole"
            ),
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            ("            self._balance = balance.after([row], self.handle)\n        else:"),
            ("            self._balance = balance\n        else:"),
            "test_an_entry_that_cannot_be_read_stops_every_charge",
        ),
        (
            "                account.insert(row)",
            "                del account",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            "            fits = cap.holds([*balance.events(), *record.events])",
            "            fits = cap.holds(record.events)",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            "            fits = cap.holds([*balance.events(), *record.events])",
            "            fits = cap.holds(balance.events())",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            "            fits = cap.holds([*balance.events(), *record.events])",
            "            fits = True",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            ("        self._check_kind(record)\n        cap = self._cap()"),
            "        cap = self._cap()",
            "tests/privacy/test_ledger.py::test_labels_only_is_less_than_a_whole_record",
        ),
        (
            "        with self._store.transaction(writes=True) as account:",
            "        with self._store.transaction(writes=False) as account:",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            '            spent.update((Pure(math.inf),) if record.noise == "seeded" else record.events)',
            "            spent.update(record.events)",
            "test_an_entry_of_seeded_noise_has_no_guarantee",
        ),
        (
            '            spent.update((Pure(math.inf),) if record.noise == "seeded" else record.events)',
            "            spent.update(set(record.events))",
            "test_an_entry_of_seeded_noise_has_no_guarantee",
        ),
        (
            "        return [Repeated(event, n) if n > 1 else event for event, n in self.spent.items()]",
            "        return [event for event, n in self.spent.items()]",
            "test_no_interruption_leaves_more_than_the_entries_do",
        ),
        (
            "            if (row.number, row.digest) != (last, digest):",
            "            if row.number != last:",
            "test_a_balance_is_made_whole_or_not_at_all",
        ),
    ),
    *of(
        "privacy/_ledger_store.py",
        "tests/privacy/test_ledger.py",
        (
            "        if os.getpid() != self._process:",
            "        if False:",
            "test_a_ledger_in_memory_refuses_other_processes",
        ),
    ),
    *of(
        "privacy/_cap.py",
        "tests/privacy/test_cap.py",
        (
            "        return cost <= self.delta * (1.0 + _DELTA_SLACK)",
            "        return cost < self.delta * (1.0 + _DELTA_SLACK)",
            "test_a_cap_of_no_delta_is_a_sum",
        ),
    ),
    *of(
        "privacy/mechanisms.py",
        "tests/privacy/test_mechanisms.py",
        (
            "        return self.sensitivity / self.mu * _UP",
            "        return self.sensitivity / self.mu / 2.0",
            "test_gaussian_scale_is_on_the_safe_side",
        ),
    ),
    *of(
        "privacy/laplace.py",
        "tests/privacy/test_laplace.py",
        (
            "    sigma = Fraction(scale) * _chi_variate(dimension + 1, source)",
            "    sigma = Fraction(scale) * _chi_variate(dimension, source) if dimension > 1 else Fraction(scale)",
            "test_norm_is_gamma",
        ),
    ),
]
