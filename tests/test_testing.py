"""The conformance checks: our own classes pass them, and broken ones do not."""

import numpy as np
import pytest

from sktransfer import Archive
from sktransfer.encoders import DistributionEncoder, ManualEncoder, PairEncoder
from sktransfer.surrogates import GP, REGISTRY, WarmStart, make_surrogate
from sktransfer.testing import (
    ARCHIVE_CHECKS,
    ENCODER_CHECKS,
    SURROGATE_CHECKS,
    check_archive,
    check_encoder,
    check_helpful_past_helps,
    check_hints,
    check_order_of_rows_does_not_count,
    check_params_are_kept,
    check_past_scores_count,
    check_predictions_are_finite,
    check_records_never_change,
    check_shared_rows_are_excluded,
    check_similarity,
    check_state_round_trip,
    check_surrogate,
)

# Names of the same class with other parameters are left out: training takes its time.
NAMES = sorted(set(REGISTRY) - {"auto", "copula-ts", "deep-gp", "fsbo", "manual-blr", "multi-blr"})


@pytest.mark.parametrize("check", SURROGATE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_own_surrogates_pass(name, check):
    check(make_surrogate(name))


@pytest.mark.parametrize("check", ENCODER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "encoder",
    [ManualEncoder(), PairEncoder(), DistributionEncoder()],
    ids=lambda e: type(e).__name__,
)
def test_own_encoders_pass(encoder, check):
    check(encoder)


@pytest.mark.parametrize("check", ARCHIVE_CHECKS, ids=lambda check: check.__name__)
def test_own_archive_passes(tmp_path, check):
    check(Archive(tmp_path))


def test_whole_suites_run():
    check_surrogate(WarmStart())
    check_encoder(ManualEncoder())
    check_archive(Archive)


# -- broken ones -----------------------------------------------------------------------------------


class ChangesItself(GP):
    def fit(self, tasks, warm_from=None):
        self.n_initial += 1
        return super().fit(tasks, warm_from)


class HasInfiniteMean(GP):
    def posterior(self, target):
        posterior = super().posterior(target)
        posterior.predict = lambda theta: (np.full(len(theta), np.inf), np.ones(len(theta)))
        return posterior


class IsTooSimilar(GP):
    def similarity(self, target):
        return np.full(4, 1.5)


class ForgetsItsTasks(WarmStart):
    def get_state(self):
        return {**super().get_state(), "ids": np.array(["x"], dtype=object)}


class NamesNoSource(WarmStart):
    def hints(self, target):
        from dataclasses import replace

        return replace(super().hints(target), sources=())


class IgnoresPastScores(WarmStart):
    def fit(self, tasks, warm_from=None):
        from dataclasses import replace

        return super().fit([replace(task, z=np.arange(len(task.z)) * 1.0) for task in tasks])


class Minimizes(WarmStart):
    def fit(self, tasks, warm_from=None):
        from dataclasses import replace

        return super().fit([replace(task, z=-task.z) for task in tasks])


class ReadsFirstRow(ManualEncoder):
    def transform(self, profiles):
        first = [[0.0 if each is None else each.sample["X"][0][0]] for each in profiles]
        return np.hstack([super().transform(profiles), first])


class Overwrites(Archive):
    def append(self, task):
        self.remove(task.id) if task.id in self else None
        return super().append(task)


@pytest.mark.parametrize(
    ("check", "broken", "message"),
    [
        (check_params_are_kept, ChangesItself(), "fit changed the parameters"),
        (check_predictions_are_finite, HasInfiniteMean(), "not finite"),
        (check_similarity, IsTooSimilar(), r"must be in \[0, 1\]"),
        (check_state_round_trip, ForgetsItsTasks(), "ids is no plain array"),
        (check_hints, NamesNoSource(), "must name its past task"),
        (check_past_scores_count, IgnoresPastScores(), "make no difference"),
        (check_past_scores_count, Minimizes(), "maximized, not minimized"),
        (check_helpful_past_helps, Minimizes(), "with past tasks"),
        (check_order_of_rows_does_not_count, ReadsFirstRow(), "Mismatched"),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_broken_one_is_caught(check, broken, message):
    with pytest.raises(AssertionError, match=message):
        check(broken)


def test_archive_that_overwrites_is_caught(tmp_path):
    with pytest.raises(AssertionError, match="was replaced"):
        check_records_never_change(Overwrites(tmp_path))


def test_archive_that_leaks_is_caught(tmp_path):
    with pytest.raises(AssertionError):
        check_shared_rows_are_excluded(Archive(tmp_path, overlap="allow"))
