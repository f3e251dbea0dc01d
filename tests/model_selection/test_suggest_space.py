"""`suggest_space` on a starter archive whose good values are known."""

import shutil

import numpy as np
import pytest
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import Ridge, RidgeClassifier, SGDClassifier, SGDRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier

from benchmarks.pack_starter import pack_starter
from sktransfer import Archive, Space, Task, TransferSearchCV, profile, suggest_space
from sktransfer.exceptions import ArchiveWarning
from sktransfer.model_selection._default_spaces import WRITTEN, _add_values
from sktransfer.model_selection._suggest_space import _has_effect

BRANCHES = [
    {
        "kernel": ["rbf"],
        "C": loguniform(1e-4, 1e4),
        "gamma": loguniform(1e-6, 1e2),
        "tol": loguniform(1e-5, 1e-1),  # has no effect
        "coef0": uniform(0, 1),
        "degree": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        "class_weight": [None, "balanced"],
    },
    {"kernel": ["linear"], "C": loguniform(1e-4, 1e4)},
]


def score(params, best):
    """The score falls with the distance from the best values. `tol` has no effect."""
    if params["kernel"] == "linear":
        return -abs(np.log10(params["C"] / 100))
    return (
        -abs(np.log10(params["C"] / best["C"]))
        - abs(np.log10(params["gamma"] / best["gamma"]))
        - 8 * abs(params["coef0"] - best["coef0"])
        - abs(params["degree"] - best["degree"])
        - 4 * (params["class_weight"] != best["class_weight"])
    )


def move_towards(params, best):
    """A configuration closer to the best one, as a search would try it."""
    moved = {name: best[name] * (params[name] / best[name]) ** 0.2 for name in ("C", "gamma")}
    moved["coef0"] = best["coef0"] + 0.2 * (params["coef0"] - best["coef0"])
    moved["degree"] = best["degree"] + params["degree"] % 3 - 1
    return {**params, **moved, "class_weight": best["class_weight"]}


def make_task(seed, scaled):
    """A task with half of its trials drawn at random and half near the best values."""
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
    drawn = (
        drawn[:40] + [move_towards(params, best) for params in drawn[40:]] + linear.sample(20, seed)
    )
    trials = [({prefix + name: v for name, v in p.items()}, score(p, best)) for p in drawn]
    named = [{prefix + name: values for name, values in branch.items()} for branch in BRANCHES]
    X = np.random.default_rng(seed).normal(size=(30, 2))
    name = f"set-{seed}-SVC-{'scaled' if scaled else 'bare'}"
    return Task.from_trials(named, trials, profile(X, X[:, 0] > 0), estimator=estimator, id=name)


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("starter")
    pack_starter([make_task(seed, scaled) for seed in range(4) for scaled in (False, True)], folder)
    return folder


@pytest.fixture(autouse=True)
def starter(packed, tmp_path, monkeypatch):
    folder = shutil.copytree(packed, tmp_path / "starter")
    monkeypatch.setenv("SKTRANSFER_STARTER", str(folder))
    return folder


def test_ranges_hold_good_values_and_little_else():
    space = suggest_space(SVC(class_weight="balanced"))
    assert sorted(space) == ["C", "coef0", "degree", "gamma"]
    (c_low, c_high), (g_low, g_high) = space["C"].support(), space["gamma"].support()
    assert 1e-4 < c_low < 0.3 and 3 < c_high < 1e4 and g_low < 1e-4 < g_high < 1
    assert (
        space["C"].dist.name in ("loguniform", "reciprocal")
        and space["coef0"].dist.name == "uniform"
    )
    low, high = space["coef0"].support()
    assert 0 <= low < 0.45 and 0.55 < high <= 1 and low == round(low, 2)
    assert 3 in space["degree"] and 10 not in space["degree"]
    assert {f"{bound:.3e}"[:5] for bound in (c_low, c_high, g_low, g_high)} <= {"1.000", "5.000"}


def test_category_is_searched_unless_the_estimator_has_the_good_value():
    assert suggest_space(SVC())["class_weight"] == ["balanced"]
    assert "class_weight" not in suggest_space(SVC(class_weight="balanced"))


def test_suggestion_is_the_same_at_every_call():
    first, again = suggest_space(SVC()), suggest_space(SVC())
    assert Space.parse(first).describe() == Space.parse(again).describe()


def test_pipeline_gets_prefixed_names_and_ranges_of_scaled_data():
    bare, scaled = suggest_space(SVC()), suggest_space(make_pipeline(StandardScaler(), SVC()))
    assert sorted(scaled) == [f"svc__{name}" for name in sorted(bare)]
    assert bare["gamma"].support()[1] < scaled["svc__gamma"].support()[1]


def test_scaler_inside_column_transformer_counts_as_scaling():
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), [0]), ("words", OneHotEncoder(), [1])]
    )
    space = suggest_space(Pipeline([("columns", columns), ("clf", SVC())]))
    scaled = suggest_space(make_pipeline(StandardScaler(), SVC()))
    assert space["clf__gamma"].support() == scaled["svc__gamma"].support()


def test_space_is_that_of_the_kernel_of_the_estimator():
    space = suggest_space(SVC(kernel="linear"))
    assert list(space) == ["C"]
    low, high = space["C"].support()
    assert 1 <= low < 100 < high


@pytest.mark.parametrize(
    "kernel", ["precomputed", lambda A, B: A @ B.T], ids=["precomputed", "callable"]
)
def test_gamma_is_not_searched_without_a_kernel_that_uses_it(kernel):
    assert "gamma" in suggest_space(SVC())
    space = suggest_space(SVC(kernel=kernel))
    assert "C" in space and "gamma" not in space


@pytest.mark.parametrize(
    ("name", "current", "has_effect"),
    [
        ("p", {"metric": "cosine"}, False),
        ("p", {"metric": "minkowski"}, True),
        ("learning_rate_init", {"solver": "lbfgs"}, False),
        ("gamma", {}, True),  # of an estimator without a kernel
        ("C", {"kernel": "precomputed"}, True),
    ],
)
def test_parameter_has_effect_only_with_certain_values_of_another(name, current, has_effect):
    assert _has_effect(name, current) == has_effect


def test_class_in_place_of_estimator_raises_type_error():
    with pytest.raises(TypeError, match=r"not a class: suggest_space\(SVC\(\)\)"):
        suggest_space(SVC)


def test_space_is_not_empty_if_no_parameter_has_an_effect(starter):
    task = make_task(0, scaled=False)
    flat = [(trial.params, 0.5) for trial in task.trials]
    pack_starter(
        [Task.from_trials(BRANCHES, flat, task.profile, estimator=SVC(), id=task.id)], starter
    )
    assert suggest_space(SVC())


def test_estimator_inside_meta_estimator_is_found():
    assert "estimator__C" in suggest_space(OneVsRestClassifier(SVC()))


@pytest.mark.parametrize(
    ("estimator", "example"),
    [
        (SVR(), r"{'C': loguniform\(0\.01, 100\)}"),
        (KMeans(), r"{'n_clusters': randint\(2, 33\)}"),
        (make_pipeline(StandardScaler()), r"{'copy': \[True, False\]}"),
    ],
    ids=["regressor", "clusterer", "transformer"],
)
def test_unknown_estimator_raises_error_with_an_example_for_it(estimator, example):
    expected = rf"suggested for \w+, only for .*SVC.*\. Define the space yourself, .*{example}"
    with pytest.raises(ValueError, match=expected):
        suggest_space(estimator)


def test_missing_starter_archive_raises_error(starter):
    for file in starter.iterdir():
        file.unlink()
    with pytest.raises(
        ValueError, match=r"Reinstall sktransfer to repair it\. Define the space yourself"
    ):
        suggest_space(SVC())


def test_packaged_starter_is_used_if_searches_have_it_turned_off(starter, monkeypatch):
    monkeypatch.setenv("SKTRANSFER_STARTER", "none")
    monkeypatch.setattr("sktransfer.archive._locations.PACKAGED_STARTER", starter)
    assert "C" in suggest_space(SVC())


def test_search_with_auto_space_uses_the_suggestion(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] > 0
    archive = Archive(tmp_path / "own")
    search = TransferSearchCV(SVC(), "auto", n_iter=3, archive=archive, random_state=0)
    search.fit(X, y)
    assert search.space == "auto" and sorted(search.space_.names) == sorted(suggest_space(SVC()))
    assert search.cv_results_["params"][0].keys() == suggest_space(SVC()).keys()
    assert search.suggest(X + 1, y)[0].params.keys() == suggest_space(SVC()).keys()
    assert len(archive[archive.add(search, X, y)].trials) == 3


def test_search_raises_error_for_unknown_estimator_and_unknown_space():
    X, y = [[0.0], [1.0]] * 5, [0, 1] * 5
    with pytest.raises(ValueError, match="No space can be suggested for GaussianNB"):
        TransferSearchCV(GaussianNB(), "auto", archive=None).fit(X, y)
    with pytest.raises(ValueError, match="'auto'"):
        TransferSearchCV(SVC(), "atuo", archive=None).fit(X, y)


# -- what the user set, defaults, budgets ----------------------------------------------------------


@pytest.fixture
def packaged(monkeypatch):
    """The starter archive of the package."""
    monkeypatch.delenv("SKTRANSFER_STARTER")


@pytest.mark.usefixtures("packaged")
def test_parameters_that_the_user_set_are_not_searched():
    assert "hidden_layer_sizes" not in suggest_space(MLPClassifier(hidden_layer_sizes=(200,)))
    assert "activation" not in suggest_space(MLPClassifier(activation="logistic"))
    assert "n_neighbors" not in suggest_space(KNeighborsClassifier(n_neighbors=500))
    assert sorted(suggest_space(SVC(C=10.0))) == ["gamma"]
    with pytest.raises(ValueError, match=r"You set every parameter of LinearSVC .*: C\. Leave one"):
        suggest_space(LinearSVC(C=10.0))


@pytest.mark.usefixtures("packaged")
@pytest.mark.parametrize(
    "estimator",
    [RandomForestClassifier(), ExtraTreesRegressor(), HistGradientBoostingClassifier()],
    ids=lambda each: type(each).__name__,
)
def test_number_of_trees_is_left_to_the_estimator(estimator):
    assert not {"n_estimators", "max_iter"} & suggest_space(estimator).keys()


@pytest.mark.usefixtures("packaged")
@pytest.mark.parametrize(
    "estimator",
    [RandomForestClassifier(), DecisionTreeClassifier(), SVC(), KNeighborsClassifier(), Ridge()],
    ids=lambda each: type(each).__name__,
)
def test_space_contains_default_values(estimator):
    defaults, space = estimator.get_params(), suggest_space(estimator)
    for name, values in space.items():
        if isinstance(values, list):
            assert defaults[name] in values, name
        elif not isinstance(defaults[name], str):
            low, high = values.support()
            assert low <= defaults[name] <= high, name
    if "max_depth" in space:
        assert None in space["max_depth"]


@pytest.mark.usefixtures("packaged")
@pytest.mark.parametrize(
    "estimator",
    [
        SGDClassifier(),
        SGDRegressor(),
        AdaBoostClassifier(),
        BaggingRegressor(),
        LinearSVR(),
        RidgeClassifier(),
        make_pipeline(StandardScaler(), SGDClassifier()),
    ],
    ids=lambda each: type(each).__name__,
)
def test_written_space_can_be_searched(estimator):
    space = suggest_space(estimator)
    assert Space.parse(space, estimator).sample(5, 0)
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = X[:, 0] + X[:, 1] > 0
    search = TransferSearchCV(
        estimator, "auto", n_iter=3, cv=2, archive=None, random_state=0, error_score="raise"
    )
    assert search.fit(X, y).space_.names


@pytest.mark.parametrize("name", ["LGBMClassifier", "XGBRegressor"])
def test_boosting_libraries_have_a_space(name):
    """Their classes list parameters in ``__init__``; these stand-ins have the same names."""
    space = WRITTEN[name]
    source = f"def __init__(self, {', '.join(f'{p}=None' for p in space)}, n_estimators=100):\n"
    source += "".join(f"    self.{p} = {p}\n" for p in [*space, "n_estimators"])
    scope = {}
    exec(source, scope)
    estimator = type(name, (BaseEstimator,), {"__init__": scope["__init__"]})()
    assert suggest_space(estimator).keys() == space.keys()


def test_newest_space_of_the_own_archive_is_suggested(tmp_path):
    archive = Archive(tmp_path / "own")
    for id, high in (("a", 10.0), ("b", 50.0)):
        space = {"C": loguniform(0.1, high), "epsilon": [0.1, 0.2], "kernel": ["rbf", "poly"]}
        trials = [({"C": 1.0, "epsilon": 0.1, "kernel": "rbf"}, 0.5)]
        archive.append(Task.from_trials(space, trials, estimator=SVR(), id=id))
    found = suggest_space(make_pipeline(StandardScaler(), SVR()), archive=archive)
    assert found["svr__C"].support() == (0.1, 50.0)
    assert found["svr__epsilon"] == [0.1, 0.2] and found["svr__kernel"] == ["rbf", "poly"]
    with pytest.raises(ValueError, match="No space can be suggested for SVR"):
        suggest_space(SVR(), archive=None)
    X = np.random.default_rng(0).normal(size=(40, 2))
    search = TransferSearchCV(SVR(), "auto", n_iter=2, cv=2, archive=archive, random_state=0)
    assert sorted(search.fit(X, X[:, 0]).space_.names) == ["C", "epsilon", "kernel"]


def test_unreadable_archive_gives_a_space_and_a_warning(tmp_path, monkeypatch):
    archive = Archive(tmp_path)
    monkeypatch.setattr(Archive, "__iter__", lambda self: iter([None]))
    with pytest.warns(ArchiveWarning, match="suggested without it"):
        found = suggest_space(SVC(), archive=archive)
    assert found.keys() == suggest_space(SVC(), archive=None).keys()


def own_search(space, best, estimator=None):
    """A search of 20 trials of the user, the first two of which are good."""
    names = list(space)
    drawn = Space.parse(space, estimator or SVC()).sample(18, 0)
    trials = [(dict(zip(names, values, strict=True)), 0.9) for values in best]
    return Task.from_trials(space, trials + [(p, 0.1) for p in drawn], estimator=estimator or SVC())


def test_good_values_of_the_own_archive_widen_the_space(tmp_path):
    archive = Archive(tmp_path, starter=False)
    before = suggest_space(SVC(), archive=archive)
    low, high = before["C"].support()
    wide = {"C": loguniform(1e-6, 1e6)}
    archive.append(own_search(wide, [(1.0,), (1234.5 * high,)]))
    after = suggest_space(SVC(), archive=archive)
    assert after["C"].support()[0] == low
    assert 1234.5 * high <= after["C"].support()[1] <= 1.1 * 1234.5 * high
    assert after["gamma"].support() == before["gamma"].support()
    # Unscaled searches say nothing about scaled data.
    scaled = make_pipeline(StandardScaler(), SVC())
    assert suggest_space(scaled, archive=archive)["svc__C"].support() == (
        suggest_space(scaled, archive=None)["svc__C"].support()
    )


def test_search_in_the_suggested_space_does_not_change_it(tmp_path):
    archive = Archive(tmp_path, starter=False)
    before = suggest_space(SVC(), archive=archive)
    trials = [(params, -1.0) for params in Space.parse(before, SVC()).sample(12, 0)]
    archive.append(Task.from_trials(before, trials, estimator=SVC()))
    assert repr(Space.parse(suggest_space(SVC(), archive=archive), SVC())) == (
        repr(Space.parse(before, SVC()))
    )


def test_lists_and_integers_are_widened(tmp_path):
    archive = Archive(tmp_path, starter=False)
    space = {"C": loguniform(1e-4, 1e4), "epsilon": [0.1, 5.0]}
    archive.append(own_search(space, [(2.0, 5.0), (1e4, 5.0)], LinearSVR()))
    found = suggest_space(LinearSVR(), archive=archive)
    assert found["epsilon"] == [0.0, 0.01, 0.1, 1.0, 5.0] and found["C"].support()[1] == 1e4
    assert _add_values(randint(2, 11), [40, 3]).support() == (2, 40)
