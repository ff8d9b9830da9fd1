"""Search over parameters within one privacy budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import islice
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from dp_halfspace._budget import BUDGET, warn_of_calls_around, warn_of_weak_budget
from dp_halfspace._memory import NUMBER_BYTES, refuse_beyond_memory
from dp_halfspace._params import MOST_TRAINED, fit_context, require, resolved_delta
from dp_halfspace._pipelines import library_of
from dp_halfspace._silence import IGNORED_WARNINGS, drop_output
from dp_halfspace._sklearn_compat import HasMethods, Interval, StrOptions
from dp_halfspace.estimators.base import PrivateClassifier
from dp_halfspace.model_selection._search_plan import (
    SEARCH_SELECTIONS,
    Search,
    SearchPlan,
    plan_search,
)
from dp_halfspace.model_selection._search_runs import (
    SCORINGS,
    check_workers,
    settings_of_output,
    silence,
    train_and_score,
    workers,
)
from dp_halfspace.model_selection._wrapping import WrappingClassifier
from dp_halfspace.privacy.interception import Mechanism
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.noise import uniform_below
from dp_halfspace.privacy.random_stopping import best_run
from dp_halfspace.privacy.randomness import noise_kind
from dp_halfspace.privacy.record import PrivacyRecord

# Parameters of a candidate, with its budget.
_Params: TypeAlias = dict[str, Any]
# The grid, the candidates in its order, the record of one fit, and delta.
_Data: TypeAlias = tuple[list[_Params], list[Any], PrivacyRecord, float]
# Public facts of a candidate that hold for the search if they hold for every candidate.
_KEPT_FACTS = ("n_samples", "classes", "classes_source", "data_norm", "columns")
# Decided by the search itself, so they cannot be searched over.
_OWN = ("epsilon", "delta", "ledger", "random_state")


def is_private(kind: type) -> bool:
    """Return whether a class is a classifier of this package, and not a subclass of one."""
    return issubclass(kind, PrivateClassifier) and library_of(kind) == "dp_halfspace"


def confidence_repeats(beta: float) -> int:
    """Return the number of runs for a guarantee with high probability instead of in expectation.

    Parameters
    ----------
    beta : float
        Accepted probability of failure, in (0, 1).

    Returns
    -------
    int
        ``ceil(ln(2 / beta))``, to be given to
        :class:`~dp_halfspace.model_selection.PrivateSearchCV` as `n_repeats`.

    Raises
    ------
    ValueError
        If `beta` is not in (0, 1).

    Notes
    -----
    Privacy: a function of a public number.

    By Markov's inequality one run exceeds e times its expected excess error with probability at
    most 1/e, and all of them do with probability at most ``beta / 2``; the private choice of the
    best run fails with probability ``beta / 2``, too. Each run has a smaller share of the budget,
    so repetition helps only where single runs sometimes fail badly. Proof:
    ``docs/proofs/selection.md``, section 8.

    References
    ----------
    R. Bassily, M. Mohri and A. T. Suresh (2022), Algorithm 5, ``M = log(2 / beta)``.
    H. L. Nguyen, J. Ullman and L. Zakynthinou (2020), Algorithm 3, ``ceil(log(8 / beta))``: the
    same rule at a quarter of their `beta`, which is what their proof allows this step.

    Examples
    --------
    >>> from dp_halfspace.model_selection import confidence_repeats
    >>> confidence_repeats(0.05), confidence_repeats(0.05 / 4)
    (4, 6)
    """
    require("in (0, 1)", beta=beta)
    return math.ceil(math.log(2.0 / beta))


@dataclass(eq=False, repr=False)
class PrivateSearchCV(WrappingClassifier):
    """Private search over the parameters of a classifier of this package.

    Candidates are trained with shares of one budget, and compared privately by their number of
    correct predictions on the training rows or by another score. Only the best model is released.
    The number of trained models, the other models and all scores remain secret.

    Parameters
    ----------
    estimator : classifier of this package
        The estimator to search over; a pipeline contains the search as its last step. Subclasses
        are refused. The budget is stated once, in the search: an estimator with another `epsilon`
        or `delta` than the search and than the default is refused, because a reader cannot tell
        whether it is that of a candidate or of the whole search. Its `random_state` is not used. In
        the runs `verbose` is off, and callbacks are not called.
    param_grid : dict or list of dict
        PUBLIC grid, as for :class:`~sklearn.model_selection.GridSearchCV`. The empty grid ``{}``
        has one candidate, the estimator as it is.
    n_repeats : int, default=1
        Number of times that each candidate is listed, each time with its own share of the budget
        and its own noise. See :func:`~dp_halfspace.model_selection.confidence_repeats`.
    epsilon : float, default=1.0
        Budget of the whole search.
    delta : float or "auto", default="auto"
        ``"auto"`` is 0 if that is the `delta` of the estimator, else ``min(1/n^2, 1/4)``; 0
        requests pure DP.
    selection : str, default="auto"
        ``"random_stopping"``: the best of a random number of runs of random candidates. It is
        available for estimators whose releases are all Gaussian, or pure DP. Its cost hardly grows
        with the grid.
        ``"exponential"``: every candidate is trained once, and the exponential mechanism chooses;
        available for any estimator, and best for a few candidates. ``"gaussian"``: every candidate
        is trained once, and noise is added to all scores, as published; needs ``delta > 0``.
        ``"auto"`` is ``"exponential"`` where the cost of random stopping cannot be computed exactly
        and for up to four candidates (three for pure DP), and ``"random_stopping"`` otherwise.
    scoring : str or callable, default="accuracy"
        ``"accuracy"``, ``"balanced_accuracy"``, or ``"roc_auc"`` for two classes. A callable gets a
        fitted estimator, `X` and `y`, and returns a number in [0, 1] for each record, larger is
        better, which depends on that record and the estimator alone
        (:class:`~dp_halfspace.model_selection.RobustAccuracy`, for example). Numbers outside are
        clipped. It must not raise an exception for a reason that depends on the data, and must not
        write or store anything, because it is called in every run and the runs are secret.
    miss : float, default=0.1
        Probability with which a given candidate is never tried by ``"random_stopping"``.
    n_jobs : int or None, default=None
        Number of parallel fits, as in joblib. It does not change the result.
    random_state : int or None, default=None
        As in every estimator: None for a release, an int for a reproducible run without a
        guarantee.
    ledger : object with a method ``charge``, path or None, default=None
        Privacy ledger that is charged once, for the whole search, before anything is drawn. None
        charges the ledger of the estimator, if it has one. Copies and clones charge the same
        account.

    Attributes
    ----------
    best_estimator_ : estimator
        The released model. Its ``privacy_`` and its ledger are those of the search, so fitting it
        again is charged. Its other parameters are those given, without callbacks.
    best_params_ : dict
        Parameters of the released model, from the grid.
    classes_ : ndarray of shape (n_classes,)
        The public label set.
    privacy_ : PrivacyRecord
        The guarantee of the whole search.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    sklearn.model_selection.GridSearchCV : Works with every estimator of the package;
        every fit is charged, and its scores are not private.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private with the adjacency of the
    estimator, for the released model and its parameters together. Public: the grid, and what is
    public for the estimator. The running time of ``"random_stopping"`` reveals the number of runs:
    do not publish it. While candidates run, Python's printed output, log entries and warnings are
    suppressed for the whole process and for its workers. Other effects of your own code in
    `scoring` cannot be suppressed: files, counters, the network, ``sys.__stdout__``, output of
    compiled code or of processes that it starts. Its errors are replaced by an error that quotes no
    data.

    References
    ----------
    E. Wang, Y. Zhu and Y.-X. Wang (2025), Algorithms 2 and 4; J. Liu and K. Talwar (2019);
    N. Papernot and T. Steinke (2022). ``docs/proofs/selection.md``, sections 2 and 7.

    Examples
    --------
    >>> from dp_halfspace import OutputPerturbationClassifier, PrivateSearchCV
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(5000, 5, margin=0.2, random_state=0)
    >>> model = OutputPerturbationClassifier(classes=[-1, 1])
    >>> search = PrivateSearchCV(model, {"alpha": [1e-3, 1e-2, 1.0]}, epsilon=2.0).fit(X, y)
    >>> bool(search.score(X, y) > 0.9), search.privacy_.epsilon
    (True, 2.0)
    """

    estimator: Any
    param_grid: Any
    _: KW_ONLY
    n_repeats: int = 1
    epsilon: float = 1.0
    delta: float | str = "auto"
    selection: str = "auto"
    scoring: str | Callable[..., ArrayLike] = "accuracy"
    miss: float = 0.1
    n_jobs: int | None = None
    random_state: int | None = None
    ledger: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict", "get_params"])],
        "param_grid": [dict, list],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        **BUDGET,
        "selection": [StrOptions(set(SEARCH_SELECTIONS))],
        "scoring": [StrOptions(set(SCORINGS)), callable],
        "miss": [Interval(Real, 1e-3, 1, closed="neither")],
        "n_jobs": [Integral, None],
    }

    @fit_context
    def fit(self, X: Any, y: ArrayLike) -> PrivateSearchCV:
        """Search within the budget.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As the estimator takes it.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        PrivateSearchCV
            The fitted search itself.

        Raises
        ------
        ValueError
            If a parameter, the schema of the data, or `n_jobs` is refused; the search is unchanged.
        BudgetError
            By the ledger, or if the budget is too small for the grid, before any noise is drawn.
        """
        data, plan, total, candidates = self._planned_on(X, y)
        warn_of_calls_around(total)
        warn_of_weak_budget(total)
        ledger = self.estimator.ledger if self.ledger is None else self.ledger
        check_workers(self._candidate(candidates[0]), X, y, self.scoring, self.n_jobs)
        permit = self._permit_for(total, data, ledger, X)

        index, best = self._run_search(plan, candidates, X, y, permit)

        # Replace the run's own record, budget and seed by those of the whole search.
        chosen = {name: value for name, value in candidates[index].items() if name not in _OWN}
        best.set_params(**settings_of_output(self._with_params(chosen)))
        best.privacy_, best.ledger, best.random_state = total, ledger, self.random_state
        self.best_estimator_ = best
        self.best_params_ = chosen
        self.classes_ = best.classes_
        self.privacy_ = total
        return self

    @fit_context
    def plan(self, X: Any, y: ArrayLike) -> PrivacyRecord:
        """Return what ``fit`` would spend; nothing is trained, drawn or charged.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            What would be searched on. Of `X` only shape and storage matter, and that it is valid.
        y : array-like of shape (n_samples,)
            Labels; only the label set matters, where the estimator does not state it.

        Returns
        -------
        PrivacyRecord
            The record that the search would carry, all runs included.

        Raises
        ------
        ValueError, BudgetError
            As ``fit`` would before it charges.

        Notes
        -----
        **Privacy.** A function of public quantities, so calling it uses no budget.
        """
        return self._planned_on(X, y)[2]

    def _planned_on(
        self, X: Any, y: ArrayLike
    ) -> tuple[_Data, SearchPlan, PrivacyRecord, list[_Params]]:
        """Plan the search, and list its candidates with their budgets; the first one warns."""
        data = self._training_data(X, y)
        plan, total = self._planned(data)
        budget = {"epsilon": plan.epsilon, "delta": total.delta}
        candidates = [{**params, **budget} for params in data[0]]
        self._candidate(candidates[0]).plan(X, y)
        return data, plan, total, candidates

    def _training_data(self, X: Any, y: ArrayLike) -> _Data:
        """Validate the data; return what a plan follows from."""
        grid = self._grid()
        self._check_size(X, len(grid))
        with IGNORED_WARNINGS:
            first = self._candidate({}).plan(X, y)
            facts = dict(first.public)
            if self.scoring == "roc_auc" and len(facts["classes"]) != 2:
                raise ValueError("scoring='roc_auc' needs two classes")
            is_pure = isinstance(self.delta, str) and self.estimator.delta == 0
            delta = 0.0 if is_pure else resolved_delta(self.delta, facts["n_samples"])
            # The data are validated once for each candidate, and not for each budget or repeat.
            once = [self._candidate({**each, "delta": delta}) for each in grid[:: self.n_repeats]]
            plans = [candidate._plans(X, y) for candidate in once]
        return grid, [plan for plan in plans for _ in range(self.n_repeats)], first, delta

    def _planned(self, data: _Data) -> tuple[SearchPlan, PrivacyRecord]:
        """Fix every public number of a search."""
        grid, candidates, first, delta = data
        epsilon = float(self.epsilon)
        with IGNORED_WARNINGS:
            search = Search(candidates, dict(first.public)["n_samples"], epsilon, delta)
            plan = plan_search(search, self.selection, float(self.miss))
            known = [dict(record.public) for record in search.records(plan.epsilon)]
        scoring = self.scoring if isinstance(self.scoring, str) else repr(self.scoring)
        kept = [k for k in _KEPT_FACTS if all(each.get(k) == known[0].get(k) for each in known)]
        if not {"classes", "classes_source"} <= {*kept}:
            raise ValueError("the grid changes the label set: state classes in the estimator alone")
        record = PrivacyRecord(
            epsilon=epsilon,
            delta=delta,
            adjacency=first.adjacency,
            events=plan.events,
            noise=noise_kind(self.random_state, epsilon),
            public={
                **{k: v for k, v in known[0].items() if k in kept},
                "estimator": type(self.estimator).__name__,
                "scoring": scoring,
                "candidates": [sorted(params.items(), key=str) for params in grid],
                "selection": plan.selection,
                "epsilon_of_a_run": plan.epsilon,
                "choice": repr(plan.choice),
                "mean_runs": None if plan.distribution is None else plan.distribution.mean,
            },
        )
        return plan, record

    def _check_size(self, X: Any, n_candidates: int) -> None:
        """Refuse models that would not fit into memory together."""
        if self.selection == "random_stopping" or getattr(X, "ndim", 0) != 2:
            return
        classes = self.estimator.classes
        n_outputs = 1 if classes is None or len(classes) == 2 else len(classes)
        n_bytes = NUMBER_BYTES * n_candidates * n_outputs * X.shape[1]
        what = f"a search that keeps {n_candidates} models until one is chosen"
        refuse_beyond_memory(n_bytes, what, "use fewer candidates, or selection='random_stopping'")

    def _grid(self) -> list[_Params]:
        """List the candidates; public."""
        kind = type(self.estimator)
        if not is_private(kind):
            given = "a class" if isinstance(self.estimator, type) else kind.__name__
            raise ValueError(
                f"estimator must be a classifier of this package, and {given} is not. Of a "
                "pipeline, the search is the last step: make_pipeline(step, PrivateSearchCV(...))"
            )
        self._refuse_another_budget(self.estimator)
        # No more than these are listed.
        most = MOST_TRAINED // int(self.n_repeats) + 1
        grid = list(islice(ParameterGrid(self.param_grid), most))
        if len(grid) == most:
            raise ValueError(f"a search has at most {MOST_TRAINED} candidates, repeats included")
        if not grid:
            raise ValueError("param_grid lists no candidate: {} stands for the estimator as it is")
        known = self.estimator.get_params()
        for name in {name for params in grid for name in params}:
            if name in _OWN or name not in known:
                reason = "the search states it" if name in _OWN else "there is no such parameter"
                raise ValueError(f"the grid must not contain {name!r}: {reason}")
        return [params for params in grid for _ in range(self.n_repeats)]

    def _refuse_another_budget(self, model: Any) -> None:
        """Refuse a model that states another budget than the search, which would not be used."""
        for name in ("epsilon", "delta"):
            stated, own = getattr(model, name), getattr(self, name)
            default = getattr(type(model), name, stated)
            # The default delta of a search is 0 if that is the delta of the model.
            is_taken = name == "delta" and (stated, own) == (0, "auto")
            if stated not in (default, own) and not is_taken:
                raise ValueError(
                    f"the estimator states {name}={stated!r} and the search {name}={own!r}, that "
                    "of the whole search, shared by all candidates: leave it out of the estimator"
                )

    def _with_params(self, params: _Params) -> Any:
        """Return the estimator with other parameters."""
        # The class itself clones the values, because a clone of a fitted prior would be none.
        return clone(clone(self.estimator).set_params(**params))

    def _candidate(self, params: _Params) -> Any:
        """Return an estimator that charges no ledger and prints nothing."""
        return silence(self._with_params(params)).set_params(ledger=None, random_state=None)

    def _run_search(
        self,
        plan: SearchPlan,
        candidates: Sequence[_Params],
        X: Any,
        y: ArrayLike,
        permit: Permit,
    ) -> tuple[int, Any]:
        """Train, compare and keep the best; return its number and model.

        Notes
        -----
        **Guarantee.**

        - Adjacency: that of the fits of the candidates.
        - Released: one model, and with it the number of its candidate.
        - Sensitivity: that of the score, in the noise of the choice.
        - Proof: ``docs/proofs/selection.md``, sections 7 to 9.
        """
        seed = None if self.random_state is None else int(self.random_state)
        how = {"X": X, "y": y, "scoring": self.scoring, "seed": seed}

        def runs(models: Iterable[Any], noise: Mechanism | None = None) -> Any:
            """Yield fitted models and scores, in the same order for every number of jobs."""
            run = partial(delayed(train_and_score), noise=noise, **how)
            return workers(self.n_jobs)(run(model, k) for k, model in enumerate(models))

        if plan.distribution is None:
            # Events of the same record cover the trainings.
            models = [self._candidate(params) for params in candidates]
            # Each run is silent by itself, but threads share warning filters.
            with IGNORED_WARNINGS:
                pairs = list(runs(models))
            scores = np.array([score for _, score in pairs])
            best = permit.choose(scores, plan.choice)
            return best, pairs[best][0]
        source = permit.consume(plan.events[0])
        count = plan.distribution.draw(source)
        order = [uniform_below(len(candidates), source) for _ in range(count)]
        chosen = (self._candidate(candidates[index]) for index in order)
        with drop_output():
            # The code that starts the runs must not reveal their number either.
            place, model = best_run(runs(chosen, noise=plan.choice), source)
        return order[place], model
