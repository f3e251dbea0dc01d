"""Past tasks in the terms of the target: metric, unit, and parameters that they do not have."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import loguniform, randint, uniform
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, get_scorer, log_loss, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import (
    Archive,
    Space,
    Task,
    TransferOptimizer,
    TransferSearchCV,
    Trial,
    profile,
    suggest,
)
from sktransfer.optimizer._past_tasks import encode_tasks
from sktransfer.utils._metric_names import tuned_metric

SPACE = {"C": loguniform(1e-3, 1e3)}
LOGS = np.linspace(-3, 3, 13)


def make_data(seed):
    return make_classification(60, 5, n_informative=3, random_state=seed)


def peak_at(log_c):
    """Scores that are best where log10 C is `log_c`."""
    return 0.9 - 0.05 * (LOGS - log_c) ** 2


def make_task(number, metrics=("accuracy", "neg_log_loss"), scores=None, others=None):
    """A past task whose accuracy is best at C = 0.01 and whose log loss is best at C = 100."""
    scores = peak_at(-2) if scores is None else scores
    others = peak_at(2) - 1 if others is None else others
    trials = [
        Trial.make({"C": 10**c}, z, metrics=dict.fromkeys(metrics[1:], other))
        for c, z, other in zip(LOGS, scores, others, strict=True)
    ]
    return Task.from_trials(
        SPACE,
        trials,
        profile(*make_data(number)),
        estimator=LogisticRegression(),
        metrics=metrics,
        id=f"t{number}",
    )


def first_proposal(tasks, metric, surrogate="auto"):
    optimizer = TransferOptimizer(
        SPACE,
        tasks,
        profile=profile(*make_data(99)),
        surrogate=surrogate,
        metric=metric,
        random_state=0,
    )
    return optimizer.propose()[0]


@pytest.mark.parametrize("surrogate", ["auto", "warm-start", "rgpe", "manual-gp"])
def test_past_tasks_are_ranked_by_the_optimized_metric(surrogate):
    tasks = [make_task(n) for n in range(6)]
    assert first_proposal(tasks, "accuracy", surrogate).params["C"] < 0.1
    assert first_proposal(tasks, "neg_log_loss", surrogate).params["C"] > 10


def test_past_tasks_are_ranked_by_a_related_metric():
    tasks = [make_task(n) for n in range(6)]
    assert first_proposal(tasks, "neg_brier_score").params["C"] > 10
    assert first_proposal(tasks, "f1_weighted").params["C"] < 0.1


def test_past_tasks_are_ranked_by_their_own_metric_if_no_other_fits():
    tasks = [make_task(n) for n in range(6)]
    assert first_proposal(tasks, "neg_max_error").params["C"] < 0.1
    some = np.where(LOGS > 2, np.nan, peak_at(2))  # missing for some successes
    assert (
        first_proposal([make_task(n, others=some) for n in range(6)], "neg_log_loss").params["C"]
        < 0.1
    )


def test_failed_trial_is_failed_in_every_metric():
    scores = np.where(LOGS > 1, np.nan, peak_at(-2))
    [encoded] = encode_tasks(Space.parse(SPACE), [make_task(0, scores=scores)], ["neg_log_loss"])
    assert np.array_equal(np.isnan(encoded.z), LOGS > 1)
    assert np.allclose(encoded.z[LOGS <= 1], (peak_at(2) - 1)[LOGS <= 1])


def test_predicted_score_is_in_the_unit_of_the_optimized_metric():
    profits = [make_task(n, ("profit",), 1e5 * peak_at(0) - 2e5) for n in range(6)]
    r2_scores = [make_task(n, ("r2",), peak_at(0)) for n in range(6, 10)]
    found = first_proposal(profits + r2_scores, "r2")
    assert 0 < found.mean < 1.5 and found.std < 5
    assert abs(np.log10(found.params["C"])) < 1


def test_scores_without_a_common_unit_get_the_most_frequent_and_keep_their_order():
    profits = [make_task(n, ("profit",), 1e5 * peak_at(1) - 2e5) for n in range(3)]
    r2_scores = [make_task(n, ("r2",), peak_at(-1)) for n in range(3, 5)]
    encoded = encode_tasks(Space.parse(SPACE), profits + r2_scores, ["neg_max_error"])
    assert np.array_equal(encoded[0].z, 1e5 * peak_at(1) - 2e5)
    for each in encoded[3:]:
        assert np.array_equal(np.argsort(each.z), np.argsort(peak_at(-1)))
        assert np.isclose(each.z.mean(), encoded[0].z.mean(), rtol=0.5)


def test_single_trial_does_not_set_the_scale():
    one = np.where(LOGS == 0, 0.9, np.nan)
    tasks = [
        make_task(0, ("r2",), one),
        *(make_task(n, ("cost",), 100 * peak_at(0)) for n in range(1, 6)),
    ]
    encoded = encode_tasks(Space.parse(SPACE), tasks, ["r2"])
    assert np.isclose(np.median(encoded[1].z), 0.9, atol=0.1) and encoded[1].z.std() < 0.2
    tasks.append(make_task(6, ("r2",), 0.1 * peak_at(0)))
    rescaled = encode_tasks(Space.parse(SPACE), tasks, ["r2"])[1]
    assert np.isclose(rescaled.z.std(), (0.1 * peak_at(0)).std(), rtol=0.2)


def test_custom_scorer_has_its_own_unit(tmp_path):
    archive = Archive(tmp_path)

    def dollars(model, X, y):
        return -10_000.0 * (1 + np.log10(model.C) ** 2)

    for n, scoring in enumerate([dollars, dollars, None, None]):
        search = TransferSearchCV(
            LogisticRegression(), SPACE, n_iter=8, cv=2, scoring=scoring, archive=archive
        )
        search.set_params(random_state=0, refit=False, surrogate="random").fit(*make_data(n))
    assert sorted(each.metrics[0] for each in archive) == ["dollars", "dollars", "score", "score"]
    [found] = suggest(LogisticRegression(), SPACE, *make_data(99), archive=archive, random_state=0)
    assert 0 < found.mean < 1.5 and found.std < 3


def test_tasks_without_success_do_not_set_the_scale():
    all_failed = np.full(len(LOGS), np.nan)
    tasks = [
        make_task(0, ("r2",), all_failed),
        make_task(1, ("profit",), 1e5 * peak_at(0)),
        make_task(2, ("cost",), peak_at(0)),
    ]
    for each, original in zip(encode_tasks(Space.parse(SPACE), tasks, ["r2"]), tasks, strict=True):
        assert np.isfinite(each.z).sum() == sum(
            np.isfinite(trial.score) for trial in original.trials
        )


def custom_scorer(estimator, X, y):
    return {"mine": estimator.score(X, y)}


@pytest.mark.parametrize(
    ("estimator", "scoring", "refit", "names"),
    [
        (LogisticRegression(), None, True, ("accuracy", "score")),
        (LogisticRegression(), "accuracy", True, ("accuracy", "score")),
        (make_pipeline(StandardScaler(), Ridge()), None, True, ("r2", "score")),
        (KMeans(), None, True, ("score",)),
        (Ridge(), "neg_max_error", True, ("neg_max_error",)),
        (LogisticRegression(), get_scorer("f1"), True, ("f1",)),
        (LogisticRegression(), make_scorer(f1_score), True, ("f1",)),
        (LogisticRegression(), make_scorer(accuracy_score), True, ("accuracy", "score")),
        (
            LogisticRegression(),
            make_scorer(f1_score, labels=[0, 1]),
            True,
            ("f1_score(labels=[0, 1])",),
        ),
        (LogisticRegression(), make_scorer(log_loss), True, ("log_loss",)),
        (
            LogisticRegression(),
            make_scorer(log_loss, greater_is_better=False),
            True,
            ("own neg_log_loss",),
        ),
        (LogisticRegression(), {"score": "neg_log_loss"}, "score", ("neg_log_loss",)),
        (LogisticRegression(), {"f1": custom_scorer}, "f1", ("custom_scorer",)),
        (LogisticRegression(), "f1", "unrelated text", ("f1",)),
        (object(), None, True, ("score",)),
        (LogisticRegression(), ["f1", "roc_auc"], "roc_auc", ("roc_auc",)),
        (LogisticRegression(), ("f1", "roc_auc"), False, ("f1",)),
        (LogisticRegression(), {"a": "f1", "b": "accuracy"}, "b", ("accuracy", "score")),
        (LogisticRegression(), {"a": get_scorer("f1")}, "a", ("f1",)),
        (LogisticRegression(), custom_scorer, "mine", ("mine",)),
        (LogisticRegression(), {"a": "f1"}, "missing", ("missing",)),
        (LogisticRegression(), [], True, ("accuracy", "score")),
    ],
)
def test_tuned_metric_has_canonical_names(estimator, scoring, refit, names):
    assert tuned_metric(estimator, scoring, refit) == names


def test_searches_with_different_metrics_do_not_share_a_cached_model(tmp_path):
    archive = Archive(tmp_path)
    for n in range(6):
        archive.append(make_task(n))

    def first_c(scoring):
        search = TransferSearchCV(
            LogisticRegression(),
            SPACE,
            n_iter=1,
            cv=2,
            scoring=scoring,
            archive=archive,
            surrogate="task-prior",
            random_state=0,
        )
        return search.fit(*make_data(99)).cv_results_["params"][0]["C"]

    assert first_c(None) < 0.1
    assert first_c("neg_log_loss") > 10


def test_metrics_with_custom_keys_are_recorded_by_their_canonical_names(tmp_path):
    scoring = {"mine": "accuracy", "other": "neg_log_loss", "third": get_scorer("f1")}
    search = TransferSearchCV(
        LogisticRegression(), SPACE, n_iter=4, cv=2, scoring=scoring, refit="mine"
    )
    fitted = search.set_params(archive=tmp_path, random_state=0).fit(*make_data(0))
    [record] = Archive(tmp_path)
    assert record.metrics == ("accuracy", "mine", "other", "third", "neg_log_loss", "f1")
    [encoded] = encode_tasks(Space.parse(SPACE), [record], ["neg_log_loss"])
    assert np.allclose(encoded.z, fitted.cv_results_["mean_test_other"])


def test_suggest_ranks_past_tasks_by_scoring(tmp_path):
    archive = Archive(tmp_path)
    for n in range(6):
        archive.append(make_task(n))
    arguments = LogisticRegression(), SPACE, *make_data(99)
    options = {"archive": archive, "surrogate": "task-prior", "random_state": 0}
    [by_accuracy] = suggest(*arguments, **options)
    [by_log_loss] = suggest(*arguments, scoring="neg_log_loss", **options)
    assert by_accuracy.params["C"] < 0.1 and by_log_loss.params["C"] > 10
    assert -0.5 < by_log_loss.mean < 0.2


def test_record_of_optimizer_names_its_metric():
    optimizer = TransferOptimizer(SPACE, metric="neg_log_loss", random_state=0)
    optimizer.tell({"C": 1.0}, -0.3)
    assert optimizer.to_task().metrics == ("neg_log_loss",)


def test_lambdas_are_identified_by_their_code():
    one, same, other = (
        tuned_metric(Ridge(), scoring, True)
        for scoring in (lambda m, X, y: 1.0, lambda m, X, y: 1.0, lambda m, X, y: -2.0 * len(y))
    )
    assert one == same != other


def cost(y, p, weigh=None, average=None):
    return 0.0


def test_different_scorers_have_different_names():
    """A name is the same in every process, and short."""
    scorers = [
        make_scorer(cost, weigh=np.mean),
        make_scorer(cost, weigh=np.arange(100)),
        make_scorer(cost, weigh=list(range(100))),
        make_scorer(cost, average=np.arange(3)),
        make_scorer(partial(f1_score, average="macro")),
        make_scorer(partial(f1_score, average="micro")),
        make_scorer(cost, greater_is_better=False),
        cost,
    ]
    names = [tuned_metric(LogisticRegression(), each, True)[0] for each in scorers]
    assert len(set(names)) == len(names) and not any(
        "0x" in name or len(name) > 60 for name in names
    )
    assert names[-2:] == ["neg_cost", "cost"]


def test_same_key_of_different_metrics_is_not_compared(tmp_path):
    """The key "main" of a past task and of the target are compared only if the metrics agree."""
    past = TransferSearchCV(
        LogisticRegression(), SPACE, n_iter=4, cv=2, archive=tmp_path, random_state=0
    )
    past.set_params(scoring={"main": "accuracy", "other": "neg_log_loss"}, refit="main").fit(
        *make_data(0)
    )
    [record] = Archive(tmp_path)
    names = tuned_metric(LogisticRegression(), {"main": "neg_log_loss"}, "main")
    [encoded] = encode_tasks(Space.parse(SPACE), [record], names)
    assert np.allclose(encoded.z, past.cv_results_["mean_test_other"])


@pytest.mark.parametrize("surrogate", ["auto", "task-prior"])
def test_parameter_that_no_past_task_has_is_spread(surrogate):
    """SelectKBest in front of an SVC that past searches tuned alone."""
    ranges = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1e1)}

    def score(params):
        return -sum(0.1 * np.log10(params[name]) ** 2 for name in ("svc__C", "svc__gamma"))

    steps = make_pipeline(SVC())
    named = {f"svc__{name}": values for name, values in ranges.items()}
    past = []
    for seed in range(3):
        drawn = Space.parse(named, steps).sample(15, seed)
        trials = [(params, score(params)) for params in drawn]
        X, y = make_classification(80, 30, random_state=seed)
        past.append(Task.from_trials(named, trials, profile(X, y), estimator=steps))
    space = Space.parse(
        named | {"selectkbest__k": randint(1, 31)}, make_pipeline(SelectKBest(), SVC())
    )
    data = profile(*make_classification(80, 30, random_state=9))
    optimizer = TransferOptimizer(
        space, past, profile=data, surrogate=surrogate, metric="accuracy", random_state=0
    )
    chosen = []
    for _ in range(10):
        [params] = optimizer.ask()
        chosen.append(params["selectkbest__k"])
        optimizer.tell(params, score(params) + 0.001 * params["selectkbest__k"])
    assert sum(14 <= k <= 17 for k in chosen) <= 4
    assert max(chosen) >= 25 and min(chosen) <= 6 and max(chosen[-4:]) >= 20


def test_batch_with_one_past_task_fills_the_space():
    past = Task.from_trials({"a": uniform()}, [({"a": a}, -a) for a in (0.1, 0.5, 0.9)])
    optimizer = TransferOptimizer({"a": uniform()}, [past], surrogate="task-prior", random_state=0)
    origins = [proposal.origin for proposal in optimizer.propose(4)]
    assert origins == [f"task {past.id}", *["space-filling"] * 3]
