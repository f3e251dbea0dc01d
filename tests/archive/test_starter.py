"""The starter archive: packing, reading, its use by searches, and invalid files."""

import base64
import json
import pickle
import warnings
import zlib

import joblib
import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.pack_starter import pack_starter
from sktransfer import Archive, Space, Task, TransferSearchCV, Trial, profile, suggest
from sktransfer.archive import RecordError, Starter
from sktransfer.archive._key import HASHES
from sktransfer.archive._locations import PACKAGED_STARTER
from sktransfer.archive._plain_pickle import MAX_BYTES, dumps_plain
from sktransfer.archive._starter import STARTER_FORMAT, unpack_content
from sktransfer.dataset._scales import looks_standardized
from sktransfer.space._estimator_tree import is_scaled

SPACE = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1)}


def data(seed, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1, 10, 100]
    return X, (X[:, 0] + X[:, 1] / 10 > 0).astype(int)


N_ROWS = (40, 50, 40)  # of the data sets in the starter archive, which are recognized by sizes


def content_of(folder, name):
    return unpack_content(joblib.load(folder / f"{name}.joblib")["packed"])


def prefixed(space, prefix="svc__"):
    return {prefix + name: values for name, values in space.items()}


def task_on(seed, scaled, best=1.0):
    """Make a task about an SVC. The best C is `best`."""
    estimator = make_pipeline(StandardScaler(), SVC()) if scaled else SVC()
    space = prefixed(SPACE) if scaled else SPACE
    configurations = Space.parse(space, estimator).sample(12, seed)
    name = "svc__C" if scaled else "C"
    trials = [
        Trial.make(p, 1 - abs(np.log10(p[name] / best)) / 6, metrics={"f1": 0.5})
        for p in configurations
    ]
    form = "scaled" if scaled else "bare"
    return Task.from_trials(
        space,
        trials,
        profile(*(rows[: N_ROWS[seed % 3]] for rows in data(seed))),
        estimator=estimator,
        id=f"set-{seed}-SVC-{form}",
    )


@pytest.fixture
def starter(tmp_path, monkeypatch):
    """A starter archive: an SVC on three data sets, scaled and not, and a tree."""
    folder = tmp_path / "starter"
    tree = DecisionTreeClassifier()
    trials = [({"max_depth": depth}, depth / 10) for depth in (1, 3)]
    tasks = [task_on(seed, scaled) for seed in range(3) for scaled in (False, True)]
    tasks.append(
        Task.from_trials(
            {"max_depth": [1, 2, 3]},
            trials,
            profile(*(rows[: N_ROWS[0]] for rows in data(0))),
            estimator=tree,
            id="set-0-DecisionTreeClassifier-bare",
        )
    )
    pack_starter(tasks, folder)
    monkeypatch.setenv("SKTRANSFER_STARTER", str(folder))
    return folder


def ids(tasks):
    return [task.id.rpartition("-")[0] for task in tasks]


# -- packing and reading -------------------------------------------------------------------------


def test_starter_returns_packed_tasks(starter):
    found = Starter(starter).tasks("SVC")
    assert Starter(starter).estimators == ["DecisionTreeClassifier", "SVC"]
    assert ids(found) == [
        f"starter-SVC-set-{n}-{form}" for n in range(3) for form in ("bare", "scaled")
    ]
    original = task_on(0, scaled=False)
    assert found[0].space == original.space and found[0].metrics == original.metrics
    assert np.allclose(found[0].scores, original.scores, rtol=1e-4)
    for read, written in zip(found[0].trials, original.trials, strict=True):
        assert read.params == pytest.approx(written.params, rel=1e-4) and read.metrics == {
            "f1": 0.5
        }


def test_starter_keeps_failed_trials_and_all_kinds_of_values(tmp_path):
    trials = [
        Trial.make({"a": 1, "b": None}, 0.5, std=0.1, fit_time=2.0),
        Trial.make({"a": 2.0, "b": (3, 4)}, float("nan")),
        Trial.make({"c": True}, -1e-12, metrics={"r2": 0.25}),
    ]
    space = [{"a": [1, 2.0], "b": [None, (3, 4)]}, {"c": [True, False]}]
    task = Task.from_trials(space, trials, profile(*data(0)), estimator=None, id="x-A-bare")
    task.space["predictors"].append("A")
    pack_starter([task], tmp_path)
    [read] = Starter(tmp_path).tasks("A")
    assert [trial.params for trial in read.trials] == [
        {"a": 1, "b": None},
        {"a": 2.0, "b": [3, 4]},
        {"c": True},
    ]
    assert [type(trial.params.get("a")) for trial in read.trials[:2]] == [int, float]
    assert [trial.status for trial in read.trials] == ["ok", "failed", "ok"]
    assert read.trials[0] == trials[0] and read.trials[2] == trials[2]


def test_starter_stores_profile_once_without_rows(starter):
    profiles = content_of(starter, "profiles")["profiles"]
    assert sorted(profiles) == [f"classification/set-{n}" for n in range(3)]
    assert all("sample" not in json.loads(known) for known in profiles.values())
    assert "profile" not in str(content_of(starter, "SVC")["tasks"])


def test_pack_starter_replaces_files(starter):
    pack_starter([task_on(5, scaled=False)], starter)
    assert Starter(starter).estimators == ["SVC"] and len(Starter(starter).tasks("SVC")) == 1
    assert not (starter / "DecisionTreeClassifier.joblib").exists()


def test_pack_starter_gives_other_trials_another_id(starter, tmp_path):
    before = Starter(starter).tasks("SVC", scaled=False)[0].id
    pack_starter([task_on(0, scaled=False, best=10.0)], tmp_path / "other")
    [after] = Starter(tmp_path / "other").tasks("SVC")
    assert after.id != before and ids([after]) == ["starter-SVC-set-0-bare"]


# -- use by searches -----------------------------------------------------------------------------


def test_starter_is_used_by_every_archive_unless_it_is_left_out(starter, tmp_path):
    space, target = Space.parse(SPACE, SVC()), profile(*data(9))
    assert len(Archive().select(space, target).used) == 3
    assert Archive(starter=False).select(space, target).used == ()
    assert len(Archive(tmp_path / "own").select(space, target).used) == 3
    assert Archive(tmp_path / "own", starter=False).select(space, target).used == ()
    assert len(Archive()) == 0 and list(Archive()) == []


def test_starter_can_be_switched_off(starter, monkeypatch):
    monkeypatch.setenv("SKTRANSFER_STARTER", "none")
    assert Archive().select(Space.parse(SPACE, SVC()), profile(*data(9))).used == ()


def test_select_uses_own_and_starter_tasks(starter):
    own = task_on(7, scaled=False)
    Archive().append(own)
    tasks = Archive().select(Space.parse(SPACE, SVC()), profile(*data(9))).used
    assert tasks[0].id == own.id and len(tasks) == 4


def test_get_returns_starter_task(starter):
    first = Starter(starter).tasks("SVC")[0]
    assert Archive()[first.id] == first
    for id in (first.id + "0", "starter-Nothing-a-bare-0"):
        with pytest.raises(KeyError):
            Archive()[id]
    with pytest.raises(KeyError):
        Archive(starter=False)[first.id]


def test_starter_is_part_of_equality_and_repr():
    assert Archive() == Archive() != Archive(starter=False)
    assert repr(Archive("/a", starter=False)) == "Archive('/a', starter=False)"


def test_first_search_uses_starter(starter):
    X, y = data(9)
    search = TransferSearchCV(SVC(), SPACE, n_iter=2, surrogate="warm-start", random_state=0).fit(
        X, y
    )
    assert len(search.source_tasks_) == 3
    assert all(origin.startswith("task starter-SVC-") for origin in search.cv_results_["origin"])
    again = TransferSearchCV(
        SVC(), SPACE, n_iter=2, surrogate="warm-start", random_state=0, resume=True
    )
    assert again.fit(X, y).task_id_ == search.task_id_
    [found] = suggest(SVC(), SPACE, X, y, surrogate="warm-start", random_state=0)
    assert found.sources and found.sources[0][0].startswith("starter-SVC-")


def test_starter_parameters_are_matched_by_canonical_names(starter):
    X, y = data(9)
    steps = [
        ("numbers", ColumnTransformer([("scale", StandardScaler(), [0, 1, 2])])),
        ("clf", SVC()),
    ]
    space = prefixed(SPACE, "clf__")
    search = TransferSearchCV(
        Pipeline(steps), space, n_iter=2, surrogate="warm-start", random_state=0
    )
    search.fit(X, y)
    used = [task["id"] for task in search.source_tasks_ if task["n_used"]]
    assert used and all("-scaled-" in id for id in used)
    # The best past configuration is tried first, under the target's name.
    best = {
        trial.params["svc__C"]
        for task in Starter(starter).tasks("SVC", True)
        for trial in [task.best]
    }
    assert search.cv_results_["params"][0]["clf__C"] in best


def test_select_excludes_starter_task_of_same_data(starter):
    X, y = data(1)
    for rows, factor in ((slice(50), 1), (slice(45), 1), (slice(50), 3), (slice(4, 49), -0.1)):
        selection = Archive().select(Space.parse(SPACE, SVC()), profile(factor * X[rows], y[rows]))
        assert ids(selection.used) == ["starter-SVC-set-0-bare", "starter-SVC-set-2-bare"]
        [(refused, reason)] = selection.excluded
        assert "set-1" in refused.id and "same kind and sizes" in reason
    for other in (profile(X, y), profile(X[:45, :2], y[:45]), profile(X[:45], X[:45, 0])):
        assert len(Archive().select(Space.parse(SPACE, SVC()), other).used) == 3


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
@pytest.mark.parametrize("part", [slice(None), slice(0, None, 2)])
def test_packaged_starter_recognizes_data_of_scikit_learn(monkeypatch, load, part):
    monkeypatch.delenv("SKTRANSFER_STARTER")
    X, y = load(return_X_y=True)
    scaled = StandardScaler().fit_transform(X)
    for table in (X, scaled):
        selection = Archive().select(Space.parse(SPACE, SVC()), profile(table[part], y[part]))
        names = ["iris", "wine", "wdbc", "optdigits"]
        excluded = [name for name in names for task, _ in selection.excluded if name in task.id]
        loaders = (load_iris, load_wine, load_breast_cancer, load_digits)
        expected = dict(zip(loaders, names, strict=True))
        assert expected[load] in excluded
        assert len(selection.used) > 35


def test_packaged_starter_contains_no_hashes():
    content = content_of(PACKAGED_STARTER, "profiles")
    for text in content["profiles"].values():
        known = json.loads(text)
        assert not {*HASHES, "enclosing", "sample"} & known.keys()
        assert known["forms"]


def test_starter_has_no_tasks_of_unknown_estimator(starter):
    class Own(SVC):
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Archive().select(Space.parse(SPACE, Own()), profile(*data(9))).used == ()


# -- scaled or not -------------------------------------------------------------------------------


def test_starter_tasks_match_scaling(starter):
    X, y = data(9)
    scaled = make_pipeline(StandardScaler(), SVC())
    standard = StandardScaler().fit_transform(X)
    for estimator, space, seen, form in [
        (SVC(), SPACE, X, "bare"),
        (scaled, prefixed(SPACE), X, "scaled"),
        (SVC(), SPACE, standard, "scaled"),  # the data are scaled already
    ]:
        tasks = Archive().select(Space.parse(space, estimator), profile(seen, y)).used
        assert len(tasks) == 3 and all(f"-{form}-" in task.id for task in tasks)


def test_starter_tasks_of_both_scalings_are_used_if_scaler_is_searched(starter):
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", SVC())])
    space = {"scale": [StandardScaler(), "passthrough"], **prefixed(SPACE)}
    assert len(Archive().select(Space.parse(space, pipeline), profile(*data(9))).used) == 6


def test_starter_tasks_of_tree_ignore_scaling(starter):
    tree = make_pipeline(StandardScaler(), DecisionTreeClassifier())
    space = Space.parse({"decisiontreeclassifier__max_depth": [1, 2, 3]}, tree)
    assert len(Archive().select(space, profile(*data(9))).used) == 1


def test_scaling_is_unknown_without_estimator():
    assert is_scaled(Space.parse({"C": [1, 10]}).describe()) is None


def test_looks_standardized_recognizes_standardized_data():
    X, y = data(3)
    standard = StandardScaler().fit_transform(X)
    assert looks_standardized(profile(standard, y).scales)
    assert looks_standardized(profile(standard[::2], y[::2]).scales)
    assert not looks_standardized(profile(X, y).scales)
    assert not looks_standardized(profile(["a", "b"]).scales)


# -- damage --------------------------------------------------------------------------------------


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["contents", "profiles", "SVC", "all"])
@pytest.mark.parametrize("harm", ["deleted", "damaged", "empty"])
def test_invalid_starter_causes_one_warning(starter, name, harm):
    files = list(starter.iterdir()) if name == "all" else [starter / f"{name}.joblib"]
    for file in files:
        if harm == "deleted":
            file.unlink()
        elif harm == "empty":
            file.write_bytes(b"")
        else:
            flip(file)
    if name == "all" and harm == "deleted":
        starter.rmdir()
    own = task_on(7, scaled=False)
    Archive().append(own)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        search = TransferSearchCV(SVC(), SPACE, n_iter=2, surrogate="warm-start", random_state=0)
        search.fit(*data(9))
    said = [str(each.message) for each in said if "tarter" in str(each.message)]
    assert len(said) == 1 and "Install sktransfer again" in said[0] and "starter=False" in said[0]
    assert [task["id"] for task in search.source_tasks_] == [own.id]
    assert np.isfinite(search.best_score_)


def test_starter_runs_no_code(starter):
    joblib.dump({"starter": 1, "tasks": [print]}, starter / "SVC.joblib")
    with pytest.raises(RecordError, match="pickle operation"):
        Starter(starter).tasks("SVC")


@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        (pickle.dumps({"tasks": [print]}, protocol=4), "pickle operation"),
        (bytes(2 * MAX_BYTES), "uncompressed joblib file"),
        (b"", "it is empty"),
    ],
    ids=["code", "bomb", "nothing"],
)
def test_starter_refuses_packed_content(starter, hidden, message):
    packed = base64.b64encode(zlib.compress(hidden)).decode()
    record = dumps_plain({"starter": STARTER_FORMAT, "packed": packed})
    (starter / "SVC.joblib").write_bytes(record)
    with pytest.raises(RecordError, match=message):
        Starter(starter).tasks("SVC")


def test_starter_reads_repaired_file(starter):
    content = (starter / "SVC.joblib").read_bytes()
    (starter / "SVC.joblib").write_bytes(b"")
    with pytest.raises(RecordError):
        Starter(starter).tasks("SVC")
    (starter / "SVC.joblib").write_bytes(content)
    assert len(Starter(starter).tasks("SVC")) == 6
