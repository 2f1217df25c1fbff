"""From a request and a task to a learned map: what is tried, held out, resumed and learned again.

All of a fit goes through `Trainer`: alternatives that are compared on held-out rows, the fit on the
training part, the refit on all rows. Each of them is a run of the one training loop under a plan.
Losses and maps know nothing of it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hopefold.fitting.alternatives import alternatives, comparisons
from hopefold.fitting.build import Method, Start, build, learned_so_far
from hopefold.fitting.chance import warn_of_chance, warn_of_no_validation
from hopefold.fitting.cross_fitting import cross_fit, deal
from hopefold.fitting.fit_identity import identify
from hopefold.fitting.held_out import calibrate, misclassifies_more, split, trust_held_out
from hopefold.fitting.incremental import IncrementalState
from hopefold.fitting.landmarks import with_landmarks
from hopefold.fitting.last_stretch import (
    LastStretch,
    goes_on,
    learn_the_rest,
    warn_of_early_end,
)
from hopefold.fitting.memory import check_memory
from hopefold.fitting.objective import Objective
from hopefold.fitting.plan import resolve
from hopefold.fitting.plan_values import Plan, Request
from hopefold.fitting.request_checks import check_request
from hopefold.fitting.row_span import RowSpan
from hopefold.fitting.selection import Selection
from hopefold.fitting.size_budget import learn_within_budget
from hopefold.fitting.task import Learned, Task
from hopefold.fitting.time_limit import (
    FOR_COMPARISONS,
    FOR_THE_FIRST,
    FOR_THE_REST,
    FOR_THE_RUN,
    TimeLimit,
)
from hopefold.fitting.trials import best_of
from hopefold.training.checkpoints import hold
from hopefold.training.loop import minimize
from hopefold.training.progress import Progress
from hopefold.training.settings import Training

if TYPE_CHECKING:
    from numpy import ndarray

    Decided = Mapping[str, tuple[Any, str]]

#: The steps of `partial_fit` are as large as in the middle of a run: nobody knows the last one.
MIDDLE = 0.5


class Trainer:
    """Learns a map as a user has asked for, by the rules of one method."""

    def __init__(
        self,
        request: Request,
        method: type[Method],
        *,
        verbose: bool = False,
        decided: Decided | None = None,
    ) -> None:
        self._request, self._method, self._verbose = request, method, verbose
        #: What held-out rows, or an earlier fit, have decided.
        self._decided: Decided = decided or {}
        self._limit = TimeLimit(None)
        #: How much of the time of the present run has passed.
        self._time_spent: Callable[[], float] | None = None

    def fit(self, task: Task, random: np.random.RandomState) -> tuple[Learned, Task]:
        """Learn with some rows held out, to know the error; then, if asked, from all rows.

        The task that is returned has the columns that were learned from.
        """
        self._limit = TimeLimit(self._request.parameters.get("time_limit"), task.sharding.group)
        with (
            torch.inference_mode(False),  # whatever the caller is in
            torch.enable_grad(),
            self._with_checkpoint(task, random) as (kept, seeded),
        ):
            chosen = self._choose(kept, seeded)
            if not chosen.is_labeled:
                return self._fit_unlabeled(chosen, seeded), chosen
            return self._fit_labeled(chosen, seeded)

    def fit_more(self, task: Task, state: IncrementalState) -> Learned:
        """Go on from a state, in one pass over these rows; the state is changed."""
        plan = self.plan(task, max_epochs=(1, "one pass over the rows of each call"))
        method, everything = self._method(plan), np.arange(len(task.labels))
        loss = method.make_loss(task, everything)
        parts = (state.map, state.map, loss, everything, state.exemplars, state.labels)
        objective = Objective(plan, task, *parts)
        settings = replace(plan.training(), constant_progress=MIDDLE, recovers=False)
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            Progress(plan.method, 1, verbose=False) as progress,
        ):
            run = minimize(
                objective.loss,
                objective.groups,
                len(everything),
                settings,
                state.generator,
                progress,
                optimizer=state.optimizer(objective.groups, settings),
            )
        state.leave_out_eliminated()
        map_ = method.finish(copy.deepcopy(state.map).cpu().requires_grad_(False))
        exemplars = objective.learned_exemplars().detach().cpu().numpy()
        return Learned(map_, exemplars, state.labels, run, plan)

    def plan(self, task: Task, n_training: int | None = None, **decided: tuple[Any, str]) -> Plan:
        """The plan of a run that learns from so many rows, by default from all."""
        return resolve(self._request, task.facts(n_training), {**self._decided, **decided})

    def _fit_labeled(self, task: Task, random: np.random.RandomState) -> tuple[Learned, Task]:
        plan = self.plan(task)
        if plan.cross_fits:
            return self._fit_few(plan, task, random), task
        everything = task.learned_from(plan)
        training, held_out = everything, everything[:0]
        if plan.validation_fraction > 0:
            training, held_out = split(plan, task, random)
            if not len(held_out):
                warn_of_no_validation()
        self._time_spent = self._limit.portion(FOR_COMPARISONS)
        task = self._select(task, training, random)
        plan = self.plan(task, len(training))

        def evaluate(learned: Learned) -> Learned:
            """What held-out rows tell of a map that has not learned from them."""
            if plan.structure:
                unseen = np.setdiff1d(everything, training, assume_unique=True)
                trusted = trust_held_out(plan, task, learned.map, unseen)
                learned = replace(learned, trustworthiness=trusted)
            return calibrate(learned, task, training, held_out) if len(held_out) else learned

        if plan.refit and len(held_out) and goes_on(self._request, plan):
            self._time_spent = self._limit.portion(FOR_THE_RUN)
            stretch = LastStretch(everything, evaluate)
            learned = self.run(plan, task, training, held_out, stretch=stretch)
        else:
            again = plan.refit and len(held_out) > 0
            self._time_spent = self._limit.portion(FOR_THE_FIRST if again else FOR_THE_RUN)
            learned = evaluate(self.run(plan, task, training, held_out))
            self._time_spent = self._limit.portion(FOR_THE_RUN)
            if again and not learned.run.interrupted:
                learned = self._refit(task, training, everything, learned)
        if len(held_out):
            warn_of_chance(learned.run.late_error, task.class_shares(held_out), len(held_out))
        return learned.evaluated_on(task, held_out), task

    def _fit_few(self, plan: Plan, task: Task, random: np.random.RandomState) -> Learned:
        """Learn from all rows, after each of them was held out once."""
        everything = np.arange(len(task.labels))
        folds = deal(task.labels, round(1 / plan.validation_fraction), random)
        if not folds:
            warn_of_no_validation()
            return self.run(plan, task, everything, everything[:0])

        def share_time(n_runs: int) -> None:
            self._time_spent = self._limit.portion(FOR_THE_RUN / n_runs)

        tested = cross_fit(self, task, folds, share_time)
        if isinstance(tested, Learned):
            return tested
        share_time(1)
        learned = self.run(plan, task, everything, everything[:0])
        learned = tested.applied_to(learned, task)
        n_rows = len(tested.rows)
        warn_of_chance(learned.run.late_error, task.class_shares(tested.rows), n_rows)
        return learned

    def _select(self, task: Task, training: ndarray, random: np.random.RandomState) -> Task:
        """Choose columns and settings on a part of the training rows; the task with the columns."""
        compared = comparisons(self._request, task.facts(len(training)))
        if not (compared.columns or compared.decays or compared.one_layer):
            return task
        plain = replace(task, checkpoint=None)  # what is compared is learned again in no time
        small_factors = self._request.defaults.small_factors
        selection = Selection(self, plain, training, random, small_factors, self._time_spent)
        if compared.columns and task.rows.is_dense:
            plain = selection.choose_columns(plain)
        chosen = selection.choose_map(plain, compared.decays, compared.one_layer)
        self._decided = {**self._decided, **chosen}
        return replace(plain, checkpoint=task.checkpoint)

    def _refit(
        self, task: Task, training: ndarray, everything: ndarray, learned: Learned
    ) -> Learned:
        """Learn again from all rows, for the number of epochs that was kept.

        The learning rate is annealed anew within that number. What held-out rows have found of the
        first run is kept; so is its map, if the other one misclassifies more training rows.
        """
        epochs = learned.run.epochs, "as many as were kept on the training part"
        self._decided = {**self._decided, "max_epochs": epochs}
        plan = self.plan(task, len(everything))
        again = self.run(plan, task, everything, everything[:0], like=learned)
        run = learned.run._replace(interrupted=again.run.interrupted)
        if misclassifies_more(again, learned, task, training):
            return replace(learned, run=run)
        return replace(
            again,
            run=run,
            trustworthiness=learned.trustworthiness,
            temperature=learned.temperature,
            calibration_error=learned.calibration_error,
        )

    def _fit_unlabeled(self, task: Task, random: np.random.RandomState) -> Learned:
        """Nothing is chosen on held-out rows: the map is learned once, and evaluated on them."""
        plan = self.plan(task)
        n_held_out = round(plan.validation_fraction * len(task.labels))
        held_out, training = np.split(random.permutation(len(task.labels)), [n_held_out])
        plan = self.plan(task, len(training))
        self._time_spent = self._limit.portion(FOR_THE_RUN)
        learned = self.run(plan, task, np.sort(training), held_out[:0])
        trusted = trust_held_out(plan, task, learned.map, held_out)
        return replace(learned, trustworthiness=trusted)

    def run(
        self,
        plan: Plan,
        task: Task,
        training: ndarray,
        held_out: ndarray,
        like: Learned | None = None,
        stage: str = "",
        stretch: LastStretch | None = None,
        is_fold: bool = False,
    ) -> Learned:
        """One run under a plan: a map and exemplars, with the error on the held-out rows.

        Of ``like``, a run before it on held-out rows, it takes how coarse numbers may be. With
        ``stretch``, it learns from all rows for some more epochs after the error is known. The
        user may interrupt a fold, or a run that has no ``stage`` to name, and keep its map.
        """
        if plan.max_bytes is not None:
            return learn_within_budget(self, plan, task, training, held_out, like)
        method = self._method(plan)
        if method.is_solved:
            return method.solve(task, training, held_out)
        with torch.device("meta"):  # sizes alone
            map_ = method.make_learning_map(task.rows.n_features)
        pairs, saved = plan.exemplars != "joint", task.checkpoint is not None
        n_rows, sizes = len(training), method.sizes
        check_memory(map_, n_rows, plan.batch_size, pairs=pairs, saved=saved, sizes=sizes)
        title = f"{plan.method}{stage}{', all rows' if like is not None else ''}"
        keeps = (is_fold or not stage) and task.sharding.group.size == 1
        settings = replace(plan.training(), keeps_interrupted=keeps)
        learned = self._descend(method, task, training, held_out, title, settings, stretch)
        if not stage or learned.run.interrupted:
            warn_of_early_end(learned.run, plan, resumes=task.checkpoint is not None)
        return learned

    def make_method(self, plan: Plan) -> Method:
        """The method under a plan."""
        return self._method(plan)

    def _descend(
        self,
        method: Method,
        task: Task,
        training: ndarray,
        held_out: ndarray,
        title: str,
        settings: Training,
        stretch: LastStretch | None,
    ) -> Learned:
        """Build what the plan names, minimize the loss, and return the result on the CPU."""
        plan, verbose = method.plan, self._verbose and task.sharding.group.is_first
        span = RowSpan.of(plan, task, training)
        if span is not None:
            task = span.coordinates(task)

        def so_far() -> Learned:
            learned = learned_so_far(method, task, objective, run)
            return learned if span is None else span.in_columns(learned)

        with Progress(title, plan.max_epochs, verbose=verbose) as progress:
            random = np.random.RandomState(task.seed)
            generator = torch.Generator().manual_seed(task.seed)
            objective = build(method, Start(task, training, random, generator, verbose))
            run = minimize(
                objective.loss,
                objective.groups,
                len(objective.rows),
                settings,
                generator,
                progress,
                misclassified=objective.validation_on(held_out, random) if len(held_out) else None,
                shuffle=partial(task.rows.shuffle, objective.rows),
                checkpoint=task.checkpoint,
                time_spent=self._time_spent,
            )
        learned = so_far()
        if stretch is None:
            return learned
        evaluated = stretch.evaluate(learned)
        if run.interrupted:
            return evaluated
        time_spent = self._limit.portion(FOR_THE_REST)
        if not learn_the_rest(objective, method, task, stretch.rows, generator, time_spent):
            run = run._replace(interrupted=True)
        return evaluated.with_map_of(so_far())

    # -- what is compared on held-out rows --------------------------------------------------------

    def _choose(self, task: Task, random: np.random.RandomState) -> Task:
        """Decide between alternatives on held-out rows, and find the landmarks they need."""
        tried = alternatives(self._request, task.facts())
        plans = [resolve(self._request, task.facts(), decided) for decided in tried]
        check_request(self._request, task, plans)
        prepared = task
        if structured := [plan for plan in plans if plan.structure]:
            prepared = with_landmarks(structured[0], task, random)
        tasks = [prepared if plan.structure else task for plan in plans]
        best = 0
        if len(tried) > 1:
            best = best_of(self, self._request, tried, tasks, random)
        self._decided = tried[best]
        return tasks[best]

    # -- checkpoints ------------------------------------------------------------------------------

    @contextmanager
    def _with_checkpoint(
        self, task: Task, random: np.random.RandomState
    ) -> Iterator[tuple[Task, np.random.RandomState]]:
        asked = self._request.parameters
        if asked.get("checkpoint") is None:
            yield task, random
            return
        unseeded, group = asked["random_state"] is None, task.sharding.group
        seed = random.randint(2**31) if unseeded else 0
        identity, minutes = identify(self._request, task), asked["checkpoint_minutes"]
        with hold(asked["checkpoint"], identity, seed, minutes, group, anew=unseeded) as checkpoint:
            if unseeded:  # the seed of the fit that resumes here
                random = np.random.RandomState(checkpoint.seed)
                task = replace(task, seed=random.randint(2**31))
            yield replace(task, checkpoint=checkpoint), random
            checkpoint.finish()
