"""The data for pretraining: generator, configurations, evaluations, store and first look."""

import os
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.fixes import parse_version

pytest.importorskip("pandas")

from benchmarks.data import data_place
from benchmarks.evaluations import families
from benchmarks.first_trial import split_families
from benchmarks.pretraining import look, store
from benchmarks.pretraining.configurations import N_CONFIGURATIONS, draw_configurations, specs_of
from benchmarks.pretraining.evaluate import (
    BOUNDED,
    capped_record,
    evaluate_data_set,
    make_folds,
    numbers_to_do,
)
from benchmarks.pretraining.families import RELATED, development_families, split_regression
from benchmarks.pretraining.features import encode_configurations
from benchmarks.pretraining.generator import (
    CYCLE,
    KINDS,
    MAX_ROWS,
    MIN_CLASS_ROWS,
    MIN_ROWS,
    DataSet,
    clean_table,
    kind_of,
    make_data_set,
)
from benchmarks.pretraining.profiles import make_profile_record
from benchmarks.pretraining.scores import score_classifier
from benchmarks.pretraining.workers import run_in_workers

pytestmark = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="the recorded configurations use the defaults of scikit-learn 1.9",
)
TASKS = ("classification", "regression")
SYNTHETIC = [kind for kind in KINDS if kind.origin == "synthetic"]
has_data = (data_place() / "classification").is_dir()
needs_data = pytest.mark.skipif(not has_data, reason="the real data sets are not here")


def small_data(task, n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)) * [1.0, 5.0, 0.1, 1.0]
    f = X[:, 0] + 0.3 * X[:, 1]
    y = np.digitize(f, [-0.8, 0.8]) if task == "classification" else f
    return DataSet(next(kind for kind in SYNTHETIC if kind.task == task), seed, "small", X, y)


# -- generator -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_data_set_comes_back_from_kind_and_seed(kind):
    if kind.origin == "perturbed" and not has_data:
        pytest.skip("the real data sets are not here")
    one, two, other = (make_data_set(kind, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)
    assert one.X.shape != other.X.shape or not np.array_equal(one.X, other.X)


@pytest.mark.parametrize("kind", SYNTHETIC, ids=str)
def test_synthetic_tables_can_be_cross_validated(kind):
    shapes = set()
    for seed in range(30):
        data = make_data_set(kind, seed)
        shapes.add(data.X.shape)
        assert MIN_ROWS <= len(data.y) == len(data.X) <= MAX_ROWS
        assert 1 <= data.X.shape[1] <= 100
        assert (np.nanmin(data.X, axis=0) < np.nanmax(data.X, axis=0)).all()
        if kind.task == "classification":
            counts = np.bincount(data.y)
            assert 2 <= len(counts) <= 15 and counts.min() >= MIN_CLASS_ROWS
        else:
            assert np.isfinite(data.y).all() and np.var(data.y) > 0
    assert len(shapes) > 25


def test_prior_is_broad():
    tables = [make_data_set(SYNTHETIC[0], seed) for seed in range(120)]
    assert any(np.isnan(table.X).any() for table in tables)
    assert any(table.y.max() >= 7 for table in tables)
    assert any(np.bincount(table.y).min() / len(table.y) < 0.05 for table in tables)
    assert any(set(np.unique(table.X[:, 0])) <= {0.0, 1.0} for table in tables)
    n_columns = [table.X.shape[1] for table in tables]
    assert min(n_columns) <= 3 and max(n_columns) >= 60


def test_any_prefix_has_all_kinds_in_fixed_shares():
    counts = {kind: [kind_of(i) for i in range(200)].count(kind) for kind in KINDS}
    assert sorted(counts.values()) == [40, 40, 60, 60]
    assert set(CYCLE) == set(KINDS)


def test_cleaning_drops_rare_classes_and_constant_columns():
    X = np.column_stack([np.arange(100.0), np.ones(100), np.tile([0.0, 1.0], 50)])
    y = np.array([0] * 50 + [1] * 47 + [2] * 3)
    X, y = clean_table(X, y, "classification")
    assert X.shape == (97, 2) and set(y) == {0, 1}
    assert clean_table(X[:30], y[:30], "classification") is None


# -- families ------------------------------------------------------------------------------------


@needs_data
def test_no_family_of_the_report_is_used():
    folder = data_place()
    family, report = families(folder), split_families(families(folder))["report"]
    used = [source for sources in development_families(folder).values() for source in sources]
    assert not {family[name] for task, name in used if task == "classification"} & report
    sides = split_regression(folder)
    assert not {name for task, name in used if task == "regression"} & sides["report"]
    assert not sides["report"] & sides["development"]
    for name, relative in RELATED.items():  # related sets are on the same side
        assert (name in sides["report"]) == (relative in report)


@needs_data
def test_perturbed_tables_name_a_development_family():
    allowed = development_families(data_place())
    kinds = [kind for kind in KINDS if kind.origin == "perturbed"]
    tables = [make_data_set(kind, seed) for kind in kinds for seed in range(25)]
    assert {table.family for table in tables} <= set(allowed)
    assert len({table.family for table in tables}) > 10


# -- configurations ------------------------------------------------------------------------------


def test_all_estimators_of_the_starter_archive_are_there():
    from benchmarks.starter_spaces import specs

    for task in TASKS:
        assert set(specs_of(task)) == set(specs(task))
    assert sum(len(specs_of(task)) for task in TASKS) == 21


@pytest.mark.parametrize("task", TASKS)
def test_first_configuration_is_the_default_and_half_move_only_some_parameters(task):
    for name, spec in specs_of(task).items():
        drawn = draw_configurations(name, spec, 7)
        defaults = {key: spec.estimator.get_params()[key] for key in spec.space}
        assert drawn[0] == defaults and len(drawn) == N_CONFIGURATIONS
        moved = [sum(each[key] != defaults[key] for key in defaults) for each in drawn[1:10]]
        assert all(each.keys() == defaults.keys() for each in drawn)
        assert np.mean(moved) < 0.75 * len(defaults) or len(defaults) <= 2
        assert draw_configurations(name, spec, 7) == drawn != draw_configurations(name, spec, 8)


@pytest.mark.parametrize("task", TASKS)
def test_configurations_are_valid(task):
    data = small_data(task, 60)
    for name, spec in specs_of(task).items():
        for configuration in draw_configurations(name, spec, 11)[
            :: 3 if spec.group == "cheap" else 9
        ]:
            if configuration.get("n_neighbors", 0) < 60:
                estimator = type(spec.estimator)(**spec.estimator.get_params() | configuration)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    estimator.fit(data.X, data.y)


def test_encoding_resolves_values_that_depend_on_the_data():
    spec = specs_of("classification")["SVC"]
    drawn = [each for i in range(5) for each in draw_configurations("SVC", spec, i)]
    position = 4 + 1  # after the indicators of the kernel and C
    encoded = encode_configurations(spec, drawn, p=10, variance=2.0)
    scale = np.array([each["gamma"] == "scale" for each in drawn])
    np.testing.assert_allclose(encoded[scale, position], np.log10(1 / 20))
    np.testing.assert_allclose(encoded[:, 4], np.log10([each["C"] for each in drawn]))
    assert np.isfinite(encoded).all()


def test_unlimited_depth_is_encoded_above_all_depths():
    spec = specs_of("regression")["DecisionTreeRegressor"]
    drawn = [each for i in range(5) for each in draw_configurations("x", spec, i)]
    encoded = encode_configurations(spec, drawn, p=10, variance=1.0)[:, 0]
    unlimited = np.array([each["max_depth"] is None for each in drawn])
    assert encoded[unlimited].min() > encoded[~unlimited].max()


# -- evaluations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LogisticRegression(), SVC()])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classification_scores_are_those_of_scikit_learn(model, n_classes):
    data = small_data("classification")
    y = np.minimum(data.y, n_classes - 1)
    has_auc = n_classes == 2 or isinstance(model, LogisticRegression)
    scoring = {"balanced_accuracy": "balanced_accuracy", "accuracy": "accuracy"}
    if has_auc:
        scoring["auc"] = "roc_auc" if n_classes == 2 else "roc_auc_ovr"
    if isinstance(model, LogisticRegression):
        scoring["loss"] = "neg_log_loss"
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    expected = cross_validate(model, data.X, y, cv=folds, scoring=scoring)
    found = [
        score_classifier(model.fit(data.X[a], y[a]), data.X[b], y[b], n_classes)
        for a, b in folds.split(data.X, y)
    ]
    for column, name in zip(np.transpose(found), scoring, strict=False):
        np.testing.assert_allclose(column, expected[f"test_{name}"], atol=1e-12)


@pytest.mark.parametrize("task", TASKS)
def test_stored_scores_are_those_of_a_pipeline_behind_a_scaler(task):
    data = small_data(task)
    record = evaluate_data_set(data, "cheap")
    name = "LogisticRegression" if task == "classification" else "Ridge"
    spec = specs_of(task)[name]
    folds = (StratifiedKFold if task == "classification" else KFold)(
        3, shuffle=True, random_state=0
    )
    scoring = "balanced_accuracy" if task == "classification" else "r2"
    codes = record[f"{name}-scaled.scores"]
    scores = store.decode_scores(codes, BOUNDED[task])[:, 0] + (task == "regression")
    for i, configuration in enumerate(draw_configurations(name, spec, data.seed)):
        model = type(spec.estimator)(**spec.estimator.get_params() | configuration)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipeline = make_pipeline(StandardScaler(), model)
            found = cross_validate(pipeline, data.X, data.y, cv=folds, scoring=scoring)
        assert scores[i] == pytest.approx(found["test_score"].mean(), abs=2e-4)


def test_missing_cells_are_imputed_from_the_training_rows():
    data = small_data("regression")
    X = data.X.copy()
    X[::5, 0] = np.nan
    spec = specs_of("regression")["Ridge"]
    train, test = next(KFold(3, shuffle=True, random_state=0).split(X))
    A, _, B, _ = make_folds(replace(data, X=X), spec, scaled=False)[0]
    median = np.nanmedian(X[train, 0])
    assert (A[np.isnan(X[train, 0]), 0] == median).all()
    assert (B[np.isnan(X[test, 0]), 0] == median).all()
    boosting = specs_of("regression")["HistGradientBoostingRegressor"]
    assert np.isnan(make_folds(replace(data, X=X), boosting, scaled=False)[0][0]).any()


def test_slow_configurations_are_capped_and_invalid_ones_fail():
    data = small_data("classification", 60)
    slow = evaluate_data_set(data, "cheap", max_seconds=0.0)
    assert (slow["SVC-scaled.scores"] == store.CAPPED).all()
    assert capped_record(0, "cheap").keys() == slow.keys()
    found = evaluate_data_set(data, "cheap")
    spec = specs_of("classification")["KNeighborsClassifier"]
    drawn = draw_configurations("KNeighborsClassifier", spec, data.seed)
    too_many = np.array([each["n_neighbors"] > 40 for each in drawn])
    failed = found["KNeighborsClassifier-bare.scores"][:, 0] == store.FAILED
    assert too_many.any() and (failed == too_many).all()


def test_every_third_cycle_has_all_kinds():
    todo = numbers_to_do(90, 3, done={0})
    assert len(todo) == 29 and {kind_of(i) for i in todo} == set(KINDS)


def _work(number):
    if number == 1:
        end = time.process_time() + 60
        while time.process_time() < end:
            pass
    if number == 2:
        raise ValueError("bad data set")
    if number == 3:
        os._exit(1)
    return number * 10


def test_workers_survive_slow_failing_and_dying_calls():
    calls = [(number,) for number in range(6)]
    found = {arguments[0]: result for arguments, result in run_in_workers(_work, calls, 2, 1.0)}
    assert found == {0: 0, 1: None, 2: None, 3: None, 4: 40, 5: 50}


# -- store ---------------------------------------------------------------------------------------


def test_scores_survive_their_encoding():
    scores = np.array([[0.0, 1.0, 0.5123, -0.01], [0.2, 0.4, np.nan, -5.0]])
    codes = store.encode_scores(scores, BOUNDED["classification"])
    assert codes.dtype == np.uint16 and codes[1, 2] == store.UNDEFINED
    decoded = store.decode_scores(codes, BOUNDED["classification"])
    np.testing.assert_allclose(decoded, scores, rtol=1e-3, atol=1e-4)
    codes[0, 0] = store.FAILED
    assert np.isnan(store.decode_scores(codes, BOUNDED["classification"])[0, 0])


def test_seconds_and_spreads_survive_their_encoding():
    seconds = np.array([1e-4, 0.02, 3.0])
    decoded = store.decode_seconds(store.encode_seconds(seconds))
    np.testing.assert_allclose(decoded, seconds, rtol=0.04)
    spread = np.array([0.0, 0.01, 0.2])
    assert np.abs(store.decode_spread(store.encode_spread(spread)) - spread).max() < 3e-3


def test_store_resumes_and_packs_records(tmp_path):
    folder, pending = tmp_path / "store", tmp_path / "pending"
    numbers = [0, 1, 4, 100]  # of the task classification, in two shards
    for number in numbers[:3]:
        store.write_pending(pending, "cheap", number, {"a": np.full(2, number)})
    assert store.numbers_done(folder, pending, "cheap") == {0, 1, 4}
    assert store.pack(folder, pending, "cheap", {"seed": 0}) == 3
    assert not list((pending / "cheap").glob("*.npz"))
    store.write_pending(pending, "cheap", 100, {"a": np.full(2, 100)})
    store.write_pending(pending, "cheap", 5, {"a": np.full(2, 5)})
    assert store.pack(folder, pending, "cheap", {"seed": 0}) == 2
    assert store.numbers_done(folder, pending, "cheap") == {0, 1, 4, 5, 100}
    found = store.load_group(folder, "cheap", "classification")
    assert found["numbers"].tolist() == found["a"][:, 0].tolist() == [0, 1, 4, 5, 100]
    assert len(list(folder.glob("cheap-classification-*.npz"))) == 2


def test_store_refuses_another_format(tmp_path, monkeypatch):
    store.write_pending(tmp_path / "pending", "cheap", 0, {"a": np.zeros(1)})
    store.pack(tmp_path, tmp_path / "pending", "cheap", {})
    monkeypatch.setattr(store, "FORMAT", 99)
    with pytest.raises(ValueError, match="another format"):
        store.load_group(tmp_path, "cheap", "classification")


def test_profile_record_has_the_same_shapes_for_all_tables():
    records = [make_profile_record(make_data_set(SYNTHETIC[0], seed)) for seed in range(4)]
    for record in records[1:]:
        assert {k: v.shape for k, v in record.items()} == {
            k: v.shape for k, v in records[0].items()
        }
    names = str(records[0]["response_curves.names"]).split()
    assert len(names) == len(records[0]["response_curves"]) and "knn_1" in names


# -- first look ----------------------------------------------------------------------------------


def made_surfaces(n=120, c=10):
    """Surfaces whose best configuration is a feature of the data set."""
    rng = np.random.default_rng(0)
    best, configurations = rng.random(n), rng.random((n, c, 1))
    scores = -np.abs(configurations[:, :, 0] - best[:, None])
    features = {"known": best[:, None], "noise": rng.random((n, 3))}
    families = np.array([f"family-{i % 30}" for i in range(n)])
    return look.Surfaces(configurations, scores, features, families, np.zeros(n, dtype=bool))


def test_useful_features_explain_surfaces_and_useless_ones_do_not():
    surfaces = made_surfaces()
    known, noise = (look.predict_surfaces(surfaces, (part,)) for part in ("known", "noise"))
    assert look.unexplained(surfaces, known).mean() < 0.3
    assert look.unexplained(surfaces, noise).mean() > 0.6
    assert look.regret(surfaces, known).mean() < 0.2 < look.regret(surfaces, noise).mean()


def test_no_family_is_on_both_sides():
    surfaces = made_surfaces()
    for train, test in look.split_by_family(surfaces):
        assert not set(surfaces.families[train]) & set(surfaces.families[test])


def test_interval_counts_families_not_data_sets():
    values = np.repeat(np.random.default_rng(0).standard_normal(20), 10)
    families = np.repeat(np.arange(20), 10)
    mean, half = look.interval(values, families)
    assert mean == pytest.approx(values.mean())
    assert half == pytest.approx(1.96 * values[::10].std(ddof=1) / np.sqrt(20))
    assert look.interval(values, np.arange(200))[1] < half / 2


def test_look_reports_what_is_in_a_store(tmp_path, monkeypatch):
    pending = tmp_path / "pending"
    monkeypatch.setattr(look, "N_TREES", 3)
    monkeypatch.setattr(look, "INPUTS", {"nothing": (), "sizes": ("sizes", "scales")})
    for number in (i for i in range(40) if kind_of(i) == SYNTHETIC[0]):
        data = make_data_set(SYNTHETIC[0], number)
        rng = np.random.default_rng(number)
        record = capped_record(number, "cheap")
        for name in record:
            if name.endswith(".scores"):
                record[name] = rng.integers(10_000, 60_000, record[name].shape).astype(np.uint16)
        store.write_pending(pending, "cheap", number, record)
        store.write_pending(pending, "profiles", number, make_profile_record(data))
    for group in ("cheap", "profiles"):
        store.pack(tmp_path, pending, group, {})
    text = "\n".join(look.make_report(tmp_path, ["SVC-scaled"]))
    assert "| SVC-scaled | 12 | 720 | 0.00% | 0.00% |" in text
    assert "Unexplained share" in text and "Regret" in text


def test_tables_replace_what_is_between_the_marks():
    page = f"# Title\n{look.MARKS[0]}\nold\n{look.MARKS[1]}\nend\n"
    once = look.insert_tables(page, "new")
    assert "new" in once and "old" not in once
    assert once.startswith("# Title") and once.endswith("end\n")
    assert look.insert_tables(once, "new") == once
