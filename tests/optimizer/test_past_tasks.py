"""Past scores in today's terms: which metric past tasks are judged by, and in which unit."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, get_scorer, log_loss, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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


def data(seed):
    return make_classification(60, 5, n_informative=3, random_state=seed)


def peak(at):
    """A score that is best where log10 C is `at`."""
    return 0.9 - 0.05 * (LOGS - at) ** 2


def task(number, metrics=("accuracy", "neg_log_loss"), scores=None, others=None):
    """A past task whose accuracy is best at C = 0.01 and whose log loss at C = 100."""
    scores = peak(-2) if scores is None else scores
    others = peak(2) - 1 if others is None else others
    trials = [
        Trial.make({"C": 10**c}, z, metrics=dict.fromkeys(metrics[1:], other))
        for c, z, other in zip(LOGS, scores, others, strict=True)
    ]
    about = profile(*data(number)), LogisticRegression()
    return Task.from_trials(SPACE, trials, about[0], estimator=about[1], metrics=metrics, id=f"t{number}")


def first(tasks, metric, surrogate="auto"):
    optimizer = TransferOptimizer(
        SPACE, tasks, profile=profile(*data(99)), surrogate=surrogate, metric=metric, random_state=0
    )
    return optimizer.propose()[0]


@pytest.mark.parametrize("surrogate", ["auto", "warm-start", "rgpe", "manual-gp"])
def test_judged_by_todays_metric(surrogate):
    tasks = [task(n) for n in range(6)]
    assert first(tasks, "accuracy", surrogate).params["C"] < 0.1
    assert first(tasks, "neg_log_loss", surrogate).params["C"] > 10


def test_judged_by_a_metric_of_its_kind():
    tasks = [task(n) for n in range(6)]
    assert first(tasks, "neg_brier_score").params["C"] > 10
    assert first(tasks, "f1_weighted").params["C"] < 0.1


def test_judged_by_what_was_tuned_where_nothing_else_is_known():
    tasks = [task(n) for n in range(6)]
    assert first(tasks, "neg_max_error").params["C"] < 0.1
    some = np.where(LOGS > 2, np.nan, peak(2))  # not measured at all successes: best settings would be missed
    assert first([task(n, others=some) for n in range(6)], "neg_log_loss").params["C"] < 0.1


def test_a_failed_trial_has_failed_by_every_metric():
    scores = np.where(LOGS > 1, np.nan, peak(-2))
    [encoded] = encode_tasks(Space.parse(SPACE), [task(0, scores=scores)], ["neg_log_loss"])
    assert np.array_equal(np.isnan(encoded.z), LOGS > 1)
    assert np.allclose(encoded.z[LOGS <= 1], (peak(2) - 1)[LOGS <= 1])


def test_the_foretold_score_is_in_todays_unit():
    dollars = [task(n, ("profit",), 1e5 * peak(0) - 2e5) for n in range(6)]
    shares = [task(n, ("r2",), peak(0)) for n in range(6, 10)]
    found = first(dollars + shares, "r2")
    assert 0 < found.mean < 1.5 and found.std < 5
    assert abs(np.log10(found.params["C"])) < 1


def test_without_todays_unit_the_commonest_counts_and_order_is_kept():
    dollars = [task(n, ("profit",), 1e5 * peak(1) - 2e5) for n in range(3)]
    shares = [task(n, ("r2",), peak(-1)) for n in range(3, 5)]
    encoded = encode_tasks(Space.parse(SPACE), dollars + shares, ["neg_max_error"])
    assert np.array_equal(encoded[0].z, 1e5 * peak(1) - 2e5)
    for each in encoded[3:]:
        assert np.array_equal(np.argsort(each.z), np.argsort(peak(-1)))
        assert np.isclose(each.z.mean(), encoded[0].z.mean(), rtol=0.5)


def test_a_single_trial_sets_no_scale():
    one = np.where(LOGS == 0, 0.9, np.nan)
    tasks = [task(0, ("r2",), one), *(task(n, ("cost",), 100 * peak(0)) for n in range(1, 6))]
    encoded = encode_tasks(Space.parse(SPACE), tasks, ["r2"])
    assert np.isclose(np.median(encoded[1].z), 0.9, atol=0.1) and encoded[1].z.std() < 0.2
    tasks.append(task(6, ("r2",), 0.1 * peak(0)))
    moved = encode_tasks(Space.parse(SPACE), tasks, ["r2"])[1]
    assert np.isclose(moved.z.std(), (0.1 * peak(0)).std(), rtol=0.2)


def test_a_scorer_of_ones_own_has_its_own_unit(tmp_path):
    archive = Archive(tmp_path)

    def dollars(model, X, y):
        return -10_000.0 * (1 + np.log10(model.C) ** 2)

    for n, scoring in enumerate([dollars, dollars, None, None]):
        made = TransferSearchCV(LogisticRegression(), SPACE, n_iter=8, cv=2, scoring=scoring, archive=archive)
        made.set_params(random_state=0, refit=False, surrogate="random").fit(*data(n))
    assert sorted(each.metrics[0] for each in archive) == ["dollars", "dollars", "score", "score"]
    [found] = suggest(LogisticRegression(), SPACE, *data(99), archive=archive, random_state=0)
    assert 0 < found.mean < 1.5 and found.std < 3


def test_tasks_without_a_success_set_no_scale():
    nothing = np.full(len(LOGS), np.nan)
    tasks = [task(0, ("r2",), nothing), task(1, ("profit",), 1e5 * peak(0)), task(2, ("cost",), peak(0))]
    for each, original in zip(encode_tasks(Space.parse(SPACE), tasks, ["r2"]), tasks, strict=True):
        assert np.isfinite(each.z).sum() == sum(np.isfinite(trial.score) for trial in original.trials)


def scorer(estimator, X, y):
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
        (LogisticRegression(), make_scorer(log_loss, greater_is_better=False), True, ("own neg_log_loss",)),
        (LogisticRegression(), {"score": "neg_log_loss"}, "score", ("neg_log_loss",)),
        (LogisticRegression(), {"f1": scorer}, "f1", ("scorer",)),
        (LogisticRegression(), "f1", "a text that says nothing", ("f1",)),
        (object(), None, True, ("score",)),
        (LogisticRegression(), ["f1", "roc_auc"], "roc_auc", ("roc_auc",)),
        (LogisticRegression(), ("f1", "roc_auc"), False, ("f1",)),
        (LogisticRegression(), {"a": "f1", "b": "accuracy"}, "b", ("accuracy", "score")),
        (LogisticRegression(), {"a": get_scorer("f1")}, "a", ("f1",)),
        (LogisticRegression(), scorer, "mine", ("mine",)),
        (LogisticRegression(), {"a": "f1"}, "not there", ("not there",)),
        (LogisticRegression(), [], True, ("accuracy", "score")),
    ],
)
def test_names_of_the_tuned_metric(estimator, scoring, refit, names):
    assert tuned_metric(estimator, scoring, refit) == names


def test_searches_of_several_metrics_do_not_share_a_model(tmp_path):
    archive = Archive(tmp_path)
    for n in range(6):
        archive.append(task(n))

    def start(scoring):
        search = TransferSearchCV(
            LogisticRegression(), SPACE, n_iter=1, cv=2, scoring=scoring, archive=archive, random_state=0
        )
        return search.fit(*data(99)).cv_results_["params"][0]["C"]

    assert start(None) < 0.1
    assert start("neg_log_loss") > 10


def test_metrics_under_names_of_ones_own(tmp_path):
    scoring = {"mine": "accuracy", "other": "neg_log_loss", "third": get_scorer("f1")}
    made = TransferSearchCV(LogisticRegression(), SPACE, n_iter=4, cv=2, scoring=scoring, refit="mine")
    fitted = made.set_params(archive=tmp_path, random_state=0).fit(*data(0))
    [record] = Archive(tmp_path)
    assert record.metrics == ("accuracy", "mine", "other", "third", "neg_log_loss", "f1")
    [encoded] = encode_tasks(Space.parse(SPACE), [record], ["neg_log_loss"])
    assert np.allclose(encoded.z, fitted.cv_results_["mean_test_other"])


def test_suggest(tmp_path):
    archive = Archive(tmp_path)
    for n in range(6):
        archive.append(task(n))
    arguments = LogisticRegression(), SPACE, *data(99)
    [usual] = suggest(*arguments, archive=archive, random_state=0)
    [other] = suggest(*arguments, archive=archive, scoring="neg_log_loss", random_state=0)
    assert usual.params["C"] < 0.1 and other.params["C"] > 10
    assert -0.5 < other.mean < 0.2


def test_the_record_names_the_metric():
    optimizer = TransferOptimizer(SPACE, metric="neg_log_loss", random_state=0)
    optimizer.tell({"C": 1.0}, -0.3)
    assert optimizer.to_task().metrics == ("neg_log_loss",)


def test_lambdas_are_known_by_what_they_do():
    one, same, other = (
        tuned_metric(Ridge(), scoring, True)
        for scoring in (lambda m, X, y: 1.0, lambda m, X, y: 1.0, lambda m, X, y: -2.0 * len(y))
    )
    assert one == same != other


def cost(y, p, weigh=None, average=None):
    return 0.0


def test_names_of_scorers_say_what_they_are():
    """The same name in every process, and another one for what is scored otherwise."""
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
    assert len(set(names)) == len(names) and not any("0x" in name or len(name) > 60 for name in names)
    assert names[-2:] == ["neg_cost", "cost"]


def test_a_key_of_ones_own_is_no_metric(tmp_path):
    """What was called "main" in the past is not what is called so today, unless it is the same metric."""
    past = TransferSearchCV(LogisticRegression(), SPACE, n_iter=4, cv=2, archive=tmp_path, random_state=0)
    past.set_params(scoring={"main": "accuracy", "other": "neg_log_loss"}, refit="main").fit(*data(0))
    [record] = Archive(tmp_path)
    names = tuned_metric(LogisticRegression(), {"main": "neg_log_loss"}, "main")
    [encoded] = encode_tasks(Space.parse(SPACE), [record], names)
    assert np.allclose(encoded.z, past.cv_results_["mean_test_other"])
