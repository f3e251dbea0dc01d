"""`suggest`: configurations for new data without an evaluation, and the model cache behind it."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from sktransfer import Archive, Task, TransferOptimizer, TransferSearchCV, profile, suggest
from sktransfer.exceptions import ArchiveWarning, SurrogateWarning
from sktransfer.surrogates import DistGP
from sktransfer.surrogates._core.joint_surrogate import JointSurrogate

SPACE = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1)}


def make_data(seed, noise=0.0, n=60):
    return make_classification(n, 5, n_informative=3, flip_y=noise, random_state=seed)


def add_past_tasks(archive, n=5):
    """Add past tasks in which C = 10, gamma = 0.1 was best."""
    rng = np.random.default_rng(0)
    for seed in range(n):
        logs = rng.uniform([-3, -4], [3, 1], (12, 2))
        scores = 0.9 - 0.05 * (logs[:, 0] - 1) ** 2 - 0.05 * (logs[:, 1] + 1) ** 2
        trials = [({"C": 10**c, "gamma": 10**g}, z) for (c, g), z in zip(logs, scores, strict=True)]
        archive.append(
            Task.from_trials(
                SPACE, trials, profile(*make_data(seed)), estimator=SVC(), id=f"t{seed}"
            )
        )


@pytest.fixture
def archive(tmp_path):
    archive = Archive(tmp_path / "archive")
    add_past_tasks(archive)
    return archive


def make_fast_surrogate():
    return DistGP(steps=40)


def is_near_best(params):
    return abs(np.log10(params["C"]) - 1) < 1.2 and abs(np.log10(params["gamma"]) + 1) < 1.2


def test_suggestions_are_good_without_an_evaluation(archive):
    found = suggest(
        SVC(),
        SPACE,
        *make_data(99),
        n=3,
        archive=archive,
        surrogate=make_fast_surrogate(),
        random_state=0,
    )
    assert len(found) == 3
    assert is_near_best(found[0].params)
    assert found[0].mean == pytest.approx(0.8, abs=0.25)
    assert 0 < found[0].std < 1
    assert len({tuple(each.params.values()) for each in found}) == 3
    assert {task for task, _ in found[0].sources} <= {f"t{i}" for i in range(5)}
    similarities = [similarity for _, similarity in found[0].sources]
    assert similarities == sorted(similarities, reverse=True) and similarities[0] <= 1
    assert "similar past task" in found[0].note
    assert len(archive) == 5  # nothing was recorded


@pytest.mark.parametrize("surrogate", ["auto", "warm-start", "gp", "random"])
def test_every_surrogate_makes_a_suggestion(archive, surrogate):
    [found] = suggest(
        SVC(), SPACE, *make_data(99), archive=archive, surrogate=surrogate, random_state=0
    )
    assert set(found.params) == {"C", "gamma"}
    if surrogate in ("gp", "random"):
        assert found.note == "no similar past task: the defaults"
        assert found.params == {"C": 1.0, "gamma": "scale"}


def test_note_says_that_no_past_task_is_similar(tmp_path):
    for archive in (None, tmp_path / "empty"):
        first, second = suggest(
            SVC(C=3.0), SPACE, *make_data(0), n=2, archive=archive, surrogate="task-prior"
        )
        assert first.params == {"C": 3.0, "gamma": "scale"}
        assert first.note == "no similar past task: the defaults"
        assert second.note == "no similar past task: space-filling"
        assert np.isnan(first.mean) and first.sources == ()


def test_past_task_on_the_same_data_is_excluded(archive):
    [found] = suggest(SVC(), SPACE, *make_data(0), archive=archive, surrogate=make_fast_surrogate())
    assert "t0" not in {task for task, _ in found.sources}


def test_past_task_on_the_same_data_is_used_if_overlap_is_allowed(archive):
    [found] = suggest(
        SVC(),
        SPACE,
        *make_data(0),
        archive=Archive(archive.path, overlap="allow"),
        surrogate=make_fast_surrogate(),
    )
    assert "t0" in {task for task, _ in found.sources}


@pytest.mark.parametrize("n", [3, 5])
def test_each_configuration_is_suggested_once(n):
    found = suggest(SVC(), {"C": [0.1, 1, 10]}, *make_data(0), archive=None, n=n, random_state=0)
    assert sorted(each.params["C"] for each in found[:3]) == [0.1, 1, 10]


def test_fitted_search_suggests_from_archive_and_own_trials(archive):
    search = TransferSearchCV(
        SVC(), SPACE, n_iter=3, archive=archive, surrogate=make_fast_surrogate(), random_state=0
    )
    with pytest.raises(NotFittedError):
        search.suggest(*make_data(99))
    search.fit(*make_data(98))
    [found] = search.suggest(*make_data(99))
    assert is_near_best(found.params)
    assert search.task_id_ in {task for task, _ in found.sources}


def test_search_without_archive_suggests_from_its_own_trials():
    search = TransferSearchCV(
        SVC(), SPACE, n_iter=6, archive=None, surrogate=make_fast_surrogate(), random_state=0
    )
    [found] = search.fit(*make_data(98)).suggest(*make_data(99))
    assert len(found.sources) == 1
    assert set(found.params) == {"C", "gamma"}


def test_later_suggestions_keep_the_uncertainty_of_the_model(archive):
    found = suggest(
        SVC(),
        SPACE,
        *make_data(99),
        n=4,
        archive=archive,
        surrogate=make_fast_surrogate(),
        random_state=0,
    )
    assert [each.mean for each in found] == sorted((each.mean for each in found), reverse=True)
    assert min(each.std for each in found) > 0.3 * max(each.std for each in found)


def test_surrogate_that_needs_trials_suggests_the_defaults(archive):
    [found] = suggest(
        SVC(), SPACE, *make_data(99), archive=archive, surrogate="multi-gp", random_state=0
    )
    assert found.note == "no similar past task: the defaults"


@pytest.mark.parametrize("n", [0, -1])
def test_fewer_than_one_suggestion_raises_error(n):
    with pytest.raises(ValueError, match="at least 1"):
        suggest(SVC(), SPACE, *make_data(99), n=n, archive=None)


def test_search_without_archive_excludes_itself_on_its_own_data():
    search = TransferSearchCV(
        SVC(), SPACE, n_iter=3, archive=None, surrogate=make_fast_surrogate(), random_state=0
    )
    [found] = search.fit(*make_data(98)).suggest(*make_data(98))
    assert found.sources == ()


def test_optimizer_suggests_without_recording_a_trial(archive):
    optimizer = TransferOptimizer(
        SPACE, list(archive), surrogate=make_fast_surrogate(), random_state=0
    )
    [found] = optimizer.suggest(*make_data(99))
    assert is_near_best(found.params)
    assert optimizer.to_task().trials == ()  # no trial was recorded


# -- the model cache -----------------------------------------------------------------------------


@pytest.fixture
def trainings(monkeypatch):
    """For each training that takes place, whether it started from an earlier model."""
    started_warm = []
    original = JointSurrogate._train

    def note_and_train(self, inputs, warm_from):
        started_warm.append(warm_from is not None)
        original(self, inputs, warm_from)

    monkeypatch.setattr(JointSurrogate, "_train", note_and_train)
    return started_warm


def suggest_one(archive, seed=99, **params):
    surrogate = make_fast_surrogate().set_params(**params)
    [found] = suggest(
        SVC(), SPACE, *make_data(seed), archive=archive, surrogate=surrogate, random_state=0
    )
    return found


def test_model_is_trained_once_for_the_same_past_tasks(archive, trainings):
    first = suggest_one(archive)
    assert suggest_one(archive) == first
    suggest_one(archive, seed=97)  # other data, the same past tasks
    assert trainings == [False]
    assert len(archive) == 5


def test_other_parameters_of_surrogate_train_another_model(archive, trainings):
    suggest_one(archive)
    suggest_one(archive, max_trials=50)
    assert trainings == [False, False]


def test_new_past_task_continues_training_of_cached_model(archive, trainings):
    suggest_one(archive)
    trials = [({"C": 1.0, "gamma": 0.1}, 0.9), ({"C": 0.01, "gamma": 1.0}, 0.5)]
    archive.append(
        Task.from_trials(SPACE, trials, profile(*make_data(50)), estimator=SVC(), id="t9")
    )
    found = suggest_one(archive)
    assert trainings == [False, True]
    assert "t9" in {task for task, _ in found.sources}


def test_search_uses_the_cached_model(archive, trainings):
    reopened = Archive(archive.path)
    for seed in (97, 98):
        search = TransferSearchCV(
            SVC(),
            SPACE,
            n_iter=2,
            archive=reopened,
            surrogate=make_fast_surrogate(),
            random_state=0,
        )
        search.fit(*make_data(seed))
        assert search.cv_results_["origin"][0] == "model"
        assert np.isfinite(search.cv_results_["predicted_mean"][0])
        (reopened._directory() / "tasks" / f"{search.task_id_}.joblib").unlink()
    assert trainings == [False]


def test_truncated_model_file_is_trained_again(archive, trainings):
    suggest_one(archive)
    [file] = (archive._directory() / "models").glob("*.npz")
    file.write_bytes(file.read_bytes()[:200])
    suggest_one(archive)
    assert trainings == [False, False]


def test_cached_state_that_cannot_be_set_is_trained_again(archive, trainings, monkeypatch):
    suggest_one(archive)
    monkeypatch.setattr(DistGP, "set_state", lambda self, state: 1 / 0)
    with pytest.warns(SurrogateWarning, match="trained again"):
        suggest_one(archive)
    assert trainings == [False, False]


def test_source_tasks_name_the_basis_of_their_similarity(archive):
    large = profile(*make_data(7, n=100))  # the sketch of a smaller table is not stored
    trials = [({"C": 1.0, "gamma": 0.1}, 0.9)]
    archive.append(Task.from_trials(SPACE, trials, large, estimator=SVC(), id="large"))
    X = ["good words", "bad words"] * 20
    text_task = Task.from_trials(
        SPACE,
        trials,
        profile(X, [0, 1] * 20),
        estimator=SVC(),
        id="text",
    )
    archive.append(text_task)
    search = TransferSearchCV(
        SVC(), SPACE, n_iter=1, archive=archive, surrogate=make_fast_surrogate(), random_state=0
    )
    rows = {row["id"]: row for row in search.fit(*make_data(98)).source_tasks_}
    assert rows["large"]["basis"] == "its sketch"
    assert rows["t0"]["basis"].startswith("sizes and labels only")
    assert rows["text"]["basis"].startswith("sizes and labels only: X is text")
    assert all(0 <= row["similarity"] <= 1 for row in rows.values())


def test_unreadable_archive_gives_suggestions_and_a_warning(archive, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(type(archive), "select", fail)
    with pytest.warns(ArchiveWarning, match="Nothing is learned from it"):
        [found] = suggest(SVC(), SPACE, *make_data(99), archive=archive)
    assert found.note == "from the pretrained model"


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), MemoryError()], ids=repr)
def test_surrogate_is_fitted_without_a_cache_that_fails(archive, monkeypatch, error):
    def fail(*args):
        raise error

    monkeypatch.setattr("sktransfer.archive._model_cache.ModelCache.get", fail)
    options = {"archive": archive, "surrogate": make_fast_surrogate(), "random_state": 0}
    with pytest.warns(ArchiveWarning, match="fitted without it"):
        [found] = suggest(SVC(), SPACE, *make_data(99), **options)
    monkeypatch.undo()
    [expected] = suggest(SVC(), SPACE, *make_data(99), **options)
    assert found.params == expected.params
