"""Conformance checks for surrogates, encoders and archives from outside of this package.

Each check takes the object and raises an AssertionError that says what is wrong. With pytest::

    import pytest
    from sktransfer.testing import SURROGATE_CHECKS

    @pytest.mark.parametrize("check", SURROGATE_CHECKS, ids=lambda check: check.__name__)
    def test_my_surrogate(check):
        check(MySurrogate())
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import uniform
from sklearn.base import clone

from sktransfer.archive import Archive
from sktransfer.dataset import DatasetProfile, profile
from sktransfer.encoders import Encoder
from sktransfer.exceptions import SktransferWarning
from sktransfer.optimizer import TransferOptimizer
from sktransfer.space import Space
from sktransfer.surrogates import EncodedTask, Surrogate
from sktransfer.task import Task, Trial

__all__ = [
    "ARCHIVE_CHECKS",
    "ENCODER_CHECKS",
    "SURROGATE_CHECKS",
    "TRANSFER_CHECKS",
    "check_archive",
    "check_encoder",
    "check_surrogate",
]

NUMERIC = np.array([False, False])
BEST_SETTING = np.array([0.75, 0.3])
SPACE = {"a": uniform(0, 1), "b": uniform(0, 1)}
ODD_SCORES = [
    [],
    [0.5],
    [0.5, 0.5, 0.5],
    [np.nan],
    [np.nan, np.nan, 0.5],
    [1e-12, 2e-12, 3e-12],
    [1e12, -1e12, 0.0],
]


def check_surrogate(surrogate: Surrogate) -> None:
    """Run all checks of a surrogate, those of transfer included if it uses past tasks.

    Parameters
    ----------
    surrogate : Surrogate
        It is cloned, not fitted.

    Examples
    --------
    >>> from sktransfer.surrogates import GP
    >>> check_surrogate(GP())
    """
    for check in SURROGATE_CHECKS:
        check(surrogate)
    if surrogate.uses_past_tasks:
        for check in TRANSFER_CHECKS:
            check(surrogate)


def check_encoder(encoder: Encoder) -> None:
    """Run all checks of an encoder.

    Examples
    --------
    >>> from sktransfer.encoders import ManualEncoder
    >>> check_encoder(ManualEncoder())
    """
    for check in ENCODER_CHECKS:
        check(encoder)


def check_archive(make_archive: Callable[[Path], Archive]) -> None:
    """Run all checks of an archive, given a function that opens a new one in a folder.

    Examples
    --------
    >>> check_archive(Archive)
    """
    for check in ARCHIVE_CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            check(make_archive(Path(folder) / "archive"))


# -- past tasks to learn from ----------------------------------------------------------------------


def score(theta: np.ndarray, shift: np.ndarray | float = 0.0) -> np.ndarray:
    """Score of configurations; 1 at the best setting; (..., 2) -> (...)."""
    difference = np.asarray(theta) - BEST_SETTING - shift
    return np.asarray(1 - 3 * (difference[..., 0] ** 2 + 0.5 * difference[..., 1] ** 2))


def make_profile(seed: int = 0, n_rows: int = 80) -> DatasetProfile:
    """Profile of a small data set of two classes."""
    X = np.random.default_rng(seed).standard_normal((n_rows, 3))
    return profile(X, (X[:, 0] > 0).astype(int), keep="sample")


def make_past_tasks(
    n_tasks: int = 10, *, sign: float = 1.0, shuffled: bool = False
) -> list[EncodedTask]:
    """Tasks whose best settings are near the target's, each with a level of scores of its own.

    Parameters
    ----------
    n_tasks : int
    sign : float
        -1 turns the scores round, so that the past tasks mislead.
    shuffled : bool
        Whether the scores are assigned to the wrong configurations.
    """
    tasks = []
    for seed in range(n_tasks):
        rng = np.random.default_rng(100 + seed)
        theta = rng.random((20, 2))
        z = sign * score(theta, rng.normal(0, 0.03, 2))
        z = 10 * seed + (rng.permutation(z) if shuffled else z)
        times = {"fit_time": 1 + 10 * theta[:, 1]}
        tasks.append(EncodedTask(theta, z, NUMERIC, make_profile(seed), f"task-{seed}", times))
    return tasks


def make_target(n_trials: int = 0, seed: int = 50) -> EncodedTask:
    """A target with some random trials."""
    theta = np.random.default_rng(seed).random((n_trials, 2))
    times = {"fit_time": 1 + 10 * theta[:, 1]}
    return EncodedTask(theta, score(theta), NUMERIC, make_profile(seed), metrics=times)


def best_so_far(
    surrogate: Surrogate, tasks: Sequence[EncodedTask], n_trials: int, seed: int = 0
) -> np.ndarray:
    """Best score after each trial of a search that learns from these past tasks; -> (n_trials,)."""
    optimizer = TransferOptimizer(SPACE, profile=make_profile(77), random_state=seed)
    optimizer.surrogate, optimizer.is_fitted = fit_quietly(surrogate, tasks), True
    best: list[float] = []
    for _ in range(n_trials):
        [params] = optimizer.ask()
        value = float(score(np.array([params["a"], params["b"]])))
        optimizer.tell(params, value, cost=1 + 10 * params["b"])
        best.append(max([value, *best[-1:]]))
    return np.array(best)


def fit_quietly(surrogate: Surrogate, tasks: Sequence[EncodedTask]) -> Surrogate:
    """A fitted clone, without the warning that there are no past tasks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SktransferWarning)
        made: Surrogate = clone(surrogate)
        return made.fit(tasks)


# -- surrogates ------------------------------------------------------------------------------------


def check_params_are_kept(surrogate: Surrogate) -> None:
    """`fit` changes no parameter, and a clone has the same ones."""
    before = repr(surrogate)
    surrogate.check_params()
    fitted = fit_quietly(surrogate, make_past_tasks(3))
    assert repr(clone(fitted)) == before, f"fit changed the parameters: {before} became {fitted!r}"


def check_predictions_are_finite(surrogate: Surrogate) -> None:
    """Whatever the scores are, predictions are finite and standard deviations positive."""
    points = np.random.default_rng(1).random((20, 2))
    for tasks in ([], make_past_tasks(3)):
        fitted = fit_quietly(surrogate, tasks)
        for z in ODD_SCORES:
            theta = np.random.default_rng(0).random((len(z), 2))
            target = EncodedTask(theta, np.array(z, dtype=float), NUMERIC, make_profile(5))
            posterior = fitted.posterior(target)
            if posterior is None:
                continue
            mean, std = posterior.predict(points)
            what = f"for scores {z} and {len(tasks)} past tasks"
            assert mean.shape == std.shape == (20,), f"wrong shapes {what}"
            assert np.isfinite(mean).all() and np.isfinite(std).all(), f"not finite {what}"
            assert (std > 0).all(), f"a standard deviation is not positive {what}"
            drawn = posterior.sample(points, 3, np.random.default_rng(0))
            assert drawn.shape == (3, 20) and np.isfinite(drawn).all(), f"bad draws {what}"


def check_predictions_are_reproducible(surrogate: Surrogate) -> None:
    """The same past tasks and trials give the same predictions."""
    points = np.random.default_rng(1).random((5, 2))
    first, second = (
        _predict(fit_quietly(surrogate, make_past_tasks(3)), make_target(6), points)
        for _ in range(2)
    )
    np.testing.assert_allclose(second, first, err_msg="two fits to the same tasks differ")


def check_state_round_trip(surrogate: Surrogate) -> None:
    """`set_state` restores what `get_state` returned, as plain arrays."""
    target, points = make_target(6), np.random.default_rng(1).random((5, 2))
    fitted = fit_quietly(surrogate, make_past_tasks(3))
    state = fitted.get_state()
    for name, array in state.items():
        assert isinstance(array, np.ndarray) and array.dtype.kind in "biufU", (
            f"{name} is no plain array"
        )
    restored = clone(surrogate).set_state({name: array.copy() for name, array in state.items()})
    np.testing.assert_allclose(
        _predict(restored, target, points),
        _predict(fitted, target, points),
        err_msg="a restored surrogate predicts something else",
    )
    assert restored.task_ids == fitted.task_ids, "a restored surrogate has other past tasks"


def check_similarity(surrogate: Surrogate) -> None:
    """Similarities are in [0, 1], one for each past task, each with a basis in words."""
    tasks = make_past_tasks(4)
    fitted = fit_quietly(surrogate, tasks)
    similarity, basis = fitted.similarity(make_target(3)), fitted.similarity_basis(make_target(3))
    if similarity is not None:
        assert similarity.shape == (len(tasks),), "similarity must have one number per past task"
        assert ((similarity >= 0) & (similarity <= 1)).all(), "similarity must be in [0, 1]"
    assert basis is None or len(basis) == len(tasks), "similarity_basis must have one text per task"


def check_hints(surrogate: Surrogate) -> None:
    """Hints are of the right shapes, before and after the first trials."""
    for tasks in ([], make_past_tasks(3)):
        fitted = fit_quietly(surrogate, tasks)
        for n_trials in (0, 1, 6):
            hints = fitted.hints(make_target(n_trials))
            assert hints.n_initial >= 0 and 0 <= hints.redraw <= 1
            settings = hints.first_settings
            n_settings = 0 if settings is None else len(settings)
            assert len(hints.sources) == n_settings, "each first setting must name its past task"
            for codes in (settings, hints.restrict_to):
                assert codes is None or codes.shape[1:] == (2,), "codes must have one column each"


def _predict(surrogate: Surrogate, target: EncodedTask, points: np.ndarray) -> np.ndarray:
    posterior = surrogate.posterior(target)
    return np.zeros((2, len(points))) if posterior is None else np.array(posterior.predict(points))


SURROGATE_CHECKS: tuple[Callable[[Surrogate], None], ...] = (
    check_params_are_kept,
    check_predictions_are_finite,
    check_predictions_are_reproducible,
    check_state_round_trip,
    check_similarity,
    check_hints,
)
"""Checks of every surrogate."""


# -- transfer --------------------------------------------------------------------------------------


def check_helpful_past_helps(surrogate: Surrogate) -> None:
    """Past tasks that are like the target give better trials than none."""
    helped, alone = (
        np.mean([best_so_far(surrogate, tasks, 8, seed).mean() for seed in range(3)])
        for tasks in (make_past_tasks(), [])
    )
    assert helped > alone, f"mean best score {helped:.3f} with past tasks, {alone:.3f} without"


def check_misleading_past_is_overcome(surrogate: Surrogate) -> None:
    """Past tasks that mislead cost trials, but not the result."""
    for name, tasks in {
        "turned round": make_past_tasks(sign=-1.0),
        "shuffled": make_past_tasks(shuffled=True),
    }.items():
        best = best_so_far(surrogate, tasks, 25)[-1]
        assert best > 0.97, f"best score {best:.3f} of 1 after 25 trials with scores {name}"


def check_past_scores_count(surrogate: Surrogate) -> None:
    """What is proposed depends on the scores of past tasks, and on their direction."""
    right, wrong = (_favorite(surrogate, make_past_tasks(sign=sign)) for sign in (1.0, -1.0))
    assert np.abs(right - wrong).max() > 0.1, "the scores of past tasks make no difference"
    assert score(right) > score(wrong), "scores are maximized, not minimized"


def _favorite(surrogate: Surrogate, tasks: Sequence[EncodedTask]) -> np.ndarray:
    """The configuration that a surrogate wants most, given past tasks; -> (2,)."""
    fitted, target = fit_quietly(surrogate, tasks), make_target(2)
    first = fitted.hints(make_target()).first_settings
    if first is not None and len(first):  # a kernel has no direction, but first settings have
        return np.asarray(first[0])
    theta = np.random.default_rng(1).random((200, 2))
    region = fitted.hints(target).region
    inside = theta if region is None else theta[region.contains(theta)]
    posterior = fitted.posterior(target)
    if posterior is None and region is not None:  # a random search where past tasks were good
        return np.asarray(inside.mean(axis=0))
    assert posterior is not None, "there is no posterior after two trials"
    return np.asarray(inside[np.argmax(posterior.predict(inside)[0])])


TRANSFER_CHECKS: tuple[Callable[[Surrogate], None], ...] = (
    check_helpful_past_helps,
    check_misleading_past_is_overcome,
    check_past_scores_count,
)
"""Checks of surrogates that use past tasks. They take seconds to minutes."""


# -- encoders --------------------------------------------------------------------------------------


def _profiles() -> list[DatasetProfile]:
    return [make_profile(seed, 50 + 10 * seed) for seed in range(4)]


def check_vectors(encoder: Encoder) -> None:
    """Vectors are finite, of one length, and NaN for a data set of which nothing is known."""
    fitted = clone(encoder).fit(_profiles())
    vectors = fitted.transform(_profiles())
    assert vectors.shape[0] == 4 and np.isfinite(vectors).all(), "vectors must be finite"
    assert fitted.transform([None]).shape[0] == 1, "None is a data set of which nothing is known"


def check_order_of_rows_does_not_count(encoder: Encoder) -> None:
    """The vector of a data set does not depend on the order of its rows."""
    fitted = clone(encoder).fit(_profiles())
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    order = rng.permutation(60)
    same = [profile(X, y, keep="sample"), profile(X[order], y[order], keep="sample")]
    first, second = fitted.transform(same)
    np.testing.assert_allclose(second, first, atol=1e-3)


def check_encoder_state_round_trip(encoder: Encoder) -> None:
    """`set_state` restores what `get_state` returned."""
    fitted = clone(encoder).fit(_profiles())
    restored = clone(encoder).set_state(fitted.get_state())
    np.testing.assert_allclose(restored.transform(_profiles()), fitted.transform(_profiles()))


ENCODER_CHECKS: tuple[Callable[[Encoder], None], ...] = (
    check_vectors,
    check_order_of_rows_does_not_count,
    check_encoder_state_round_trip,
)
"""Checks of every encoder that reads data."""


# -- archives --------------------------------------------------------------------------------------


def _task(id: str, seed: int = 0) -> Task:
    trials = [({"C": 1}, 0.9), ({"C": 10}, 0.8)]
    return Task.from_trials({"C": [1, 10, 100]}, trials, make_profile(seed), id=id)


def check_records_are_kept(archive: Archive) -> None:
    """What was appended is there, in the order of its ids, and equal to what was given."""
    assert len(archive) == 0 and list(archive) == [], "a new archive must be empty"
    tasks = [_task("a", 1), _task("b", 2)]
    for task in reversed(tasks):
        assert archive.append(task) == task.id
    assert len(archive) == 2 and "a" in archive and "c" not in archive
    assert [task.id for task in archive] == ["a", "b"]
    assert archive["a"].trials == tasks[0].trials


def check_records_never_change(archive: Archive) -> None:
    """A record can be appended again, but not replaced by another of the same id."""
    archive.append(_task("a"))
    archive.append(archive["a"])
    other = Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.1)], id="a")
    try:
        archive.append(other)
    except ValueError:
        pass
    else:
        raise AssertionError("a record was replaced by another of the same id")
    assert len(archive) == 1 and archive["a"].best == Trial.make({"C": 1}, 0.9)


def check_shared_rows_are_excluded(archive: Archive) -> None:
    """A past task on the same rows is excluded with a reason; one on other rows is used."""
    archive.append(_task("same", 1))
    archive.append(_task("other", 2))
    space = Space.parse({"C": [1, 10, 100]})
    selection = archive.select(space, make_profile(1), limit=None, starter=False)
    assert [task.id for task in selection.used] == ["other"]
    assert [(task.id, bool(reason)) for task, reason in selection.excluded] == [("same", True)]


def check_journal_survives(archive: Archive) -> None:
    """The trials of a search that was killed are found as an incomplete task."""
    journal = archive.journals.start(Task.from_trials({"C": [1, 10]}, [], id="killed"))
    journal.add(Trial.make({"C": 1}, 0.9), [])
    journal.sync()
    [task] = archive.journals.tasks()
    assert task.id == "killed" and not task.complete and task.n_trials == 1


def check_models_are_cached(archive: Archive) -> None:
    """A cached model is found by its settings and tasks, and by no others."""
    archive.model_cache.put({"surrogate": "A"}, ["t1"], {"weights": np.arange(3.0)})
    found = archive.model_cache.get({"surrogate": "A"}, ["t1"])
    assert found is not None and found["weights"].tolist() == [0.0, 1.0, 2.0]
    assert archive.model_cache.get({"surrogate": "B"}, ["t1"]) is None


ARCHIVE_CHECKS: tuple[Callable[[Archive], None], ...] = (
    check_records_are_kept,
    check_records_never_change,
    check_shared_rows_are_excluded,
    check_journal_survives,
    check_models_are_cached,
)
"""Checks of every archive. Each takes a new, empty one."""
