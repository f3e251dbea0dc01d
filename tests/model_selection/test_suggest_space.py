"""`suggest_space`, from a starter archive in which it is known what is good."""

import shutil

import numpy as np
import pytest
from scipy.stats import loguniform, uniform
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from sktransfer import Archive, Space, Task, TransferSearchCV, profile, suggest_space
from sktransfer.archive._starter import pack
from sktransfer.model_selection._suggest_space import _has_effect

BRANCHES = [
    {
        "kernel": ["rbf"],
        "C": loguniform(1e-4, 1e4),
        "gamma": loguniform(1e-6, 1e2),
        "tol": loguniform(1e-5, 1e-1),  # makes no difference
        "coef0": uniform(0, 1),
        "degree": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        "class_weight": [None, "balanced"],
    },
    {"kernel": ["linear"], "C": loguniform(1e-4, 1e4)},
]


def score(params, best):
    """Each parameter has one best place; `tol` has none."""
    if params["kernel"] == "linear":
        return -abs(np.log10(params["C"] / 100))
    return (
        -abs(np.log10(params["C"] / best["C"]))
        - abs(np.log10(params["gamma"] / best["gamma"]))
        - 8 * abs(params["coef0"] - best["coef0"])
        - abs(params["degree"] - best["degree"])
        - 4 * (params["class_weight"] != best["class_weight"])
    )


def nearer(params, best):
    """A configuration on the way to the best one, as a search would try it."""
    moved = {name: best[name] * (params[name] / best[name]) ** 0.2 for name in ("C", "gamma")}
    moved["coef0"] = best["coef0"] + 0.2 * (params["coef0"] - best["coef0"])
    moved["degree"] = best["degree"] + params["degree"] % 3 - 1
    return {**params, **moved, "class_weight": best["class_weight"]}


def task_of(seed, scaled):
    """Half of the trials anywhere, half near the best place."""
    best = {
        "C": 1.0,
        "gamma": 1e-2 if scaled else 1e-4,
        "coef0": 0.5,
        "degree": 3,
        "class_weight": "balanced",
    }
    estimator = make_pipeline(StandardScaler(), SVC()) if scaled else SVC()
    prefix = "svc__" if scaled else ""
    rbf, linear = (Space.parse(branch) for branch in BRANCHES)
    drawn = rbf.sample(80, seed)
    drawn = drawn[:40] + [nearer(params, best) for params in drawn[40:]] + linear.sample(20, seed)
    trials = [({prefix + name: v for name, v in p.items()}, score(p, best)) for p in drawn]
    named = [{prefix + name: values for name, values in branch.items()} for branch in BRANCHES]
    X = np.random.default_rng(seed).normal(size=(30, 2))
    name = f"set-{seed}-SVC-{'scaled' if scaled else 'bare'}"
    return Task.from_trials(named, trials, profile(X, X[:, 0] > 0), estimator=estimator, id=name)


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("starter")
    pack([task_of(seed, scaled) for seed in range(4) for scaled in (False, True)], folder)
    return folder


@pytest.fixture(autouse=True)
def starter(packed, tmp_path, monkeypatch):
    folder = shutil.copytree(packed, tmp_path / "starter")
    monkeypatch.setenv("SKTRANSFER_STARTER", str(folder))
    return folder


def test_ranges_hold_what_was_good_and_little_else():
    space = suggest_space(SVC(class_weight="balanced"))
    assert sorted(space) == ["C", "coef0", "degree", "gamma"]
    (c_low, c_high), (g_low, g_high) = space["C"].support(), space["gamma"].support()
    assert 1e-4 < c_low < 0.3 and 3 < c_high < 1e4 and g_low < 1e-4 < g_high < 1
    assert space["C"].dist.name in ("loguniform", "reciprocal") and space["coef0"].dist.name == "uniform"
    low, high = space["coef0"].support()
    assert 0 <= low < 0.45 and 0.55 < high <= 1 and low == round(low, 2)
    assert 3 in space["degree"] and 10 not in space["degree"]
    assert {f"{bound:.3e}"[:5] for bound in (c_low, c_high, g_low, g_high)} <= {"1.000", "5.000"}


def test_a_category_is_searched_unless_the_estimator_has_the_good_one():
    assert suggest_space(SVC())["class_weight"] == ["balanced"]
    assert "class_weight" not in suggest_space(SVC(class_weight="balanced"))


def test_it_is_the_same_again():
    first, again = suggest_space(SVC()), suggest_space(SVC())
    assert Space.parse(first).describe() == Space.parse(again).describe()


def test_a_pipeline_has_its_own_names_and_ranges():
    bare, scaled = suggest_space(SVC()), suggest_space(make_pipeline(StandardScaler(), SVC()))
    assert sorted(scaled) == [f"svc__{name}" for name in sorted(bare)]
    assert bare["gamma"].support()[1] < scaled["svc__gamma"].support()[1]


def test_columns_that_are_scaled_inside_a_transformer_count():
    columns = ColumnTransformer([("numbers", StandardScaler(), [0]), ("words", OneHotEncoder(), [1])])
    space = suggest_space(Pipeline([("columns", columns), ("clf", SVC())]))
    scaled = suggest_space(make_pipeline(StandardScaler(), SVC()))
    assert space["clf__gamma"].support() == scaled["svc__gamma"].support()


def test_the_variant_that_the_estimator_is_counts():
    space = suggest_space(SVC(kernel="linear"))
    assert list(space) == ["C"]
    low, high = space["C"].support()
    assert 1 <= low < 100 < high


@pytest.mark.parametrize("kernel", ["precomputed", lambda A, B: A @ B.T])
def test_what_has_no_effect_is_not_searched(kernel):
    assert "gamma" in suggest_space(SVC())
    space = suggest_space(SVC(kernel=kernel))
    assert "C" in space and "gamma" not in space


@pytest.mark.parametrize(
    ("name", "own", "serves"),
    [
        ("p", {"metric": "cosine"}, False),
        ("p", {"metric": "minkowski"}, True),
        ("learning_rate_init", {"solver": "lbfgs"}, False),
        ("gamma", {}, True),  # of another estimator than those with a kernel
        ("C", {"kernel": "precomputed"}, True),
    ],
)
def test_which_parameters_serve(name, own, serves):
    assert _has_effect(name, own) == serves


def test_a_class_is_no_estimator():
    with pytest.raises(TypeError, match=r"not a class: suggest_space\(SVC\(\)\)"):
        suggest_space(SVC)


def test_where_nothing_matters_something_is_searched(starter):
    task = task_of(0, scaled=False)
    flat = [(trial.params, 0.5) for trial in task.trials]
    pack([Task.from_trials(BRANCHES, flat, task.profile, estimator=SVC(), id=task.id)], starter)
    assert suggest_space(SVC())


def test_an_estimator_behind_a_wrapper():
    assert "estimator__C" in suggest_space(OneVsRestClassifier(SVC()))


@pytest.mark.parametrize("estimator", [SVR(), BaggingClassifier(SVC()), make_pipeline(StandardScaler())])
def test_an_unknown_estimator_is_told_what_is_known(estimator):
    with pytest.raises(ValueError, match=r"suggested for \w+, only for SVC\. Define the space yourself"):
        suggest_space(estimator)


def test_without_a_starter_archive(starter):
    for file in starter.iterdir():
        file.unlink()
    with pytest.raises(ValueError, match=r"Reinstall sktransfer to repair it\. Define the space yourself"):
        suggest_space(SVC())


def test_who_does_without_its_trials_may_ask_it(starter, monkeypatch):
    monkeypatch.setenv("SKTRANSFER_STARTER", "none")
    monkeypatch.setattr("sktransfer.archive._storage.PACKAGED_STARTER", starter)
    assert "C" in suggest_space(SVC())


def test_a_search_takes_it(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] > 0
    archive = Archive(tmp_path / "own")
    search = TransferSearchCV(SVC(), "auto", n_iter=3, archive=archive, random_state=0)
    search.fit(X, y)
    assert search.space == "auto" and sorted(search.space_.names) == sorted(suggest_space(SVC()))
    assert search.cv_results_["params"][0].keys() == suggest_space(SVC()).keys()
    assert search.suggest(X + 1, y)[0].params.keys() == suggest_space(SVC()).keys()
    assert len(archive[archive.add(search, X, y)].trials) == 3


def test_a_search_says_what_is_wrong():
    X, y = [[0.0], [1.0]] * 5, [0, 1] * 5
    with pytest.raises(ValueError, match="No space can be suggested for BaggingClassifier"):
        TransferSearchCV(BaggingClassifier(), "auto", archive=None).fit(X, y)
    with pytest.raises(ValueError, match="'auto'"):
        TransferSearchCV(SVC(), "atuo", archive=None).fit(X, y)


def test_more_trees_than_were_tried_are_left_alone(monkeypatch):
    monkeypatch.delenv("SKTRANSFER_STARTER")
    assert "n_estimators" in suggest_space(RandomForestClassifier())
    assert "n_estimators" not in suggest_space(RandomForestClassifier(n_estimators=500))
    assert "n_neighbors" in suggest_space(KNeighborsClassifier(n_neighbors=500))
