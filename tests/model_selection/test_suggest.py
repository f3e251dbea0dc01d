"""`suggest`, and the meta-models that make it quick."""

import warnings

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from sktransfer import Archive, Task, TransferOptimizer, TransferSearchCV, profile, suggest
from sktransfer.surrogates import DistGP
from sktransfer.surrogates._core.joint_surrogate import JointSurrogate

SPACE = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1)}


def data(seed, noise=0.0, n=60):
    return make_classification(n, 5, n_informative=3, flip_y=noise, random_state=seed)


def fill(archive, n=5):
    """Past tunings in which C = 10, gamma = 0.1 was best."""
    rng = np.random.default_rng(0)
    for seed in range(n):
        logs = rng.uniform([-3, -4], [3, 1], (12, 2))
        scores = 0.9 - 0.05 * (logs[:, 0] - 1) ** 2 - 0.05 * (logs[:, 1] + 1) ** 2
        trials = [({"C": 10**c, "gamma": 10**g}, z) for (c, g), z in zip(logs, scores, strict=True)]
        archive.append(Task.from_trials(SPACE, trials, profile(*data(seed)), estimator=SVC(), id=f"t{seed}"))


@pytest.fixture
def archive(tmp_path):
    made = Archive(tmp_path / "archive")
    fill(made)
    return made


def quick():
    return DistGP(steps=40)


def near_the_best(params):
    return abs(np.log10(params["C"]) - 1) < 1.2 and abs(np.log10(params["gamma"]) + 1) < 1.2


def test_without_an_evaluation(archive):
    found = suggest(SVC(), SPACE, *data(99), n=3, archive=archive, surrogate=quick(), random_state=0)
    assert len(found) == 3
    assert near_the_best(found[0].params)
    assert found[0].mean == pytest.approx(0.8, abs=0.25)
    assert 0 < found[0].std < 1
    assert len({tuple(each.params.values()) for each in found}) == 3
    assert {task for task, _ in found[0].sources} <= {f"t{i}" for i in range(5)}
    similarities = [alike for _, alike in found[0].sources]
    assert similarities == sorted(similarities, reverse=True) and similarities[0] <= 1
    assert "similar past task" in found[0].note
    assert len(archive) == 5  # nothing was recorded


@pytest.mark.parametrize("surrogate", ["auto", "warm-start", "gp", "random"])
def test_every_surrogate_can_be_asked(archive, surrogate):
    [found] = suggest(SVC(), SPACE, *data(99), archive=archive, surrogate=surrogate, random_state=0)
    assert set(found.params) == {"C", "gamma"}
    if surrogate in ("gp", "random"):
        assert found.note == "no similar past task: the defaults"
        assert found.params == {"C": 1.0, "gamma": "scale"}


def test_nothing_similar_is_said(tmp_path):
    for where in (None, tmp_path / "empty"):
        first, second = suggest(SVC(C=3.0), SPACE, *data(0), n=2, archive=where)
        assert first.params == {"C": 3.0, "gamma": "scale"}
        assert first.note == "no similar past task: the defaults"
        assert second.note == "no similar past task: space-filling"
        assert np.isnan(first.mean) and first.sources == ()


def test_data_of_the_past_have_no_say(archive):
    [found] = suggest(SVC(), SPACE, *data(0), archive=archive, surrogate=quick())
    assert "t0" not in {task for task, _ in found.sources}


def test_unless_the_archive_allows_it(archive):
    [found] = suggest(
        SVC(), SPACE, *data(0), archive=Archive(archive.path, overlap="allow"), surrogate=quick()
    )
    assert "t0" in {task for task, _ in found.sources}


@pytest.mark.parametrize("n", [3, 5])
def test_a_default_is_suggested_once(n):
    found = suggest(SVC(), {"C": [0.1, 1, 10]}, *data(0), archive=None, n=n, random_state=0)
    assert sorted(each.params["C"] for each in found[:3]) == [0.1, 1, 10]


def test_on_a_fitted_search(archive):
    search = TransferSearchCV(SVC(), SPACE, n_iter=3, archive=archive, surrogate=quick(), random_state=0)
    with pytest.raises(NotFittedError):
        search.suggest(*data(99))
    search.fit(*data(98))
    [found] = search.suggest(*data(99))
    assert near_the_best(found.params)
    assert search.task_id_ in {task for task, _ in found.sources}


def test_a_search_without_an_archive_suggests_from_its_own_trials():
    search = TransferSearchCV(SVC(), SPACE, n_iter=6, archive=None, surrogate=quick(), random_state=0)
    [found] = search.fit(*data(98)).suggest(*data(99))
    assert len(found.sources) == 1
    assert set(found.params) == {"C", "gamma"}


def test_later_suggestions_are_as_uncertain_as_the_first(archive):
    found = suggest(SVC(), SPACE, *data(99), n=4, archive=archive, surrogate=quick(), random_state=0)
    assert [each.mean for each in found] == sorted((each.mean for each in found), reverse=True)
    assert min(each.std for each in found) > 0.3 * max(each.std for each in found)


def test_a_method_that_knows_nothing_of_new_data_says_so(archive):
    [found] = suggest(SVC(), SPACE, *data(99), archive=archive, surrogate="multi-gp", random_state=0)
    assert found.note == "no similar past task: the defaults"


@pytest.mark.parametrize("n", [0, -1])
def test_at_least_one(n):
    with pytest.raises(ValueError, match="at least 1"):
        suggest(SVC(), SPACE, *data(99), n=n, archive=None)


def test_its_own_data_are_refused_without_an_archive_too():
    search = TransferSearchCV(SVC(), SPACE, n_iter=3, archive=None, surrogate=quick(), random_state=0)
    [found] = search.fit(*data(98)).suggest(*data(98))
    assert found.sources == ()


def test_on_an_optimizer(archive):
    optimizer = TransferOptimizer(SPACE, list(archive), surrogate=quick(), random_state=0)
    [found] = optimizer.suggest(*data(99))
    assert near_the_best(found.params)
    assert optimizer.to_task().trials == ()  # its own search has not begun


# -- kept models -----------------------------------------------------------------------------------


@pytest.fixture
def trainings(monkeypatch):
    """Steps of each training that took place, and whether it started from an earlier model."""
    made = []
    original = JointSurrogate._train

    def watched(self, inputs, warm_from):
        made.append(warm_from is not None)
        original(self, inputs, warm_from)

    monkeypatch.setattr(JointSurrogate, "_train", watched)
    return made


def ask(archive, seed=99, **params):
    surrogate = quick().set_params(**params)
    [found] = suggest(SVC(), SPACE, *data(seed), archive=archive, surrogate=surrogate, random_state=0)
    return found


def test_a_model_is_trained_once_and_found_again(archive, trainings):
    first = ask(archive)
    assert ask(archive) == first
    ask(archive, seed=97)  # other data, the same past
    assert trainings == [False]
    assert len(archive) == 5


def test_other_settings_are_another_model(archive, trainings):
    ask(archive)
    ask(archive, max_trials=50)
    assert trainings == [False, False]


def test_a_new_task_trains_on(archive, trainings):
    ask(archive)
    trials = [({"C": 1.0, "gamma": 0.1}, 0.9), ({"C": 0.01, "gamma": 1.0}, 0.5)]
    archive.append(Task.from_trials(SPACE, trials, profile(*data(50)), estimator=SVC(), id="t9"))
    found = ask(archive)
    assert trainings == [False, True]
    assert "t9" in {task for task, _ in found.sources}


def test_the_search_uses_the_kept_model_too(archive, trainings):
    kept = Archive(archive.path)
    for seed in (97, 98):
        search = TransferSearchCV(SVC(), SPACE, n_iter=2, archive=kept, surrogate=quick(), random_state=0)
        search.fit(*data(seed))
        assert search.cv_results_["origin"][0] == "model"
        assert np.isfinite(search.cv_results_["predicted_mean"][0])
        (kept._tasks_directory() / f"{search.task_id_}.joblib").unlink()
    assert trainings == [False]


def test_a_spoilt_model_is_trained_anew(archive, trainings):
    ask(archive)
    [file] = (archive._tasks_directory().parent / "models").glob("*.npz")
    file.write_bytes(file.read_bytes()[:200])
    ask(archive)
    assert trainings == [False, False]


def test_a_model_that_does_not_fit_is_trained_anew(archive, trainings, monkeypatch):
    ask(archive)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        patch.setattr(DistGP, "set_state", lambda self, state: 1 / 0)
        warnings.simplefilter("ignore")
        ask(archive)
    assert trainings == [False, False]


def test_what_a_task_was_compared_by_is_said(archive):
    X = ["good words", "bad words"] * 20
    texts = Task.from_trials(
        SPACE, [({"C": 1.0, "gamma": 0.1}, 0.9)], profile(X, [0, 1] * 20), estimator=SVC(), id="text"
    )
    archive.append(texts)
    search = TransferSearchCV(SVC(), SPACE, n_iter=1, archive=archive, surrogate=quick(), random_state=0)
    rows = {row["id"]: row for row in search.fit(*data(98)).source_tasks_}
    assert rows["t0"]["basis"] == "its sketch"
    assert rows["text"]["basis"].startswith("sizes and labels only: X is text")
    assert all(0 <= row["similarity"] <= 1 for row in rows.values())
