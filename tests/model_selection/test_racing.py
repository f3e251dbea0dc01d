"""Racing: candidates that cannot become the best are stopped after their first folds."""

import math
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import t as student
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit

from sktransfer import Archive, TransferOptimizer, TransferSearchCV
from sktransfer.model_selection._racing import PRIOR_COUNT, Prediction, Race
from sktransfer.model_selection._recorder import Recorder
from sktransfer.surrogates import EncodedTask, make_surrogate

N_FOLDS = 5
X = np.random.default_rng(0).normal(size=(50, 2))
X[:, 0] = np.repeat(np.arange(N_FOLDS), 10)  # the number of the fold
y = np.arange(50) % 2
CV = KFold(N_FOLDS)
LEVELS = [0.0, 0.03, -0.02, 0.01, -0.01]  # how easy each fold is


class Leveled(ClassifierMixin, BaseEstimator):
    """Its score is `a`, plus the level of the fold, plus a little that differs between folds."""

    n_fits, max_fits = 0, math.inf

    def __init__(self, a=0.0, fails=False):
        self.a, self.fails = a, fails

    def fit(self, X, y):
        if Leveled.n_fits >= Leveled.max_fits:
            raise KeyboardInterrupt
        Leveled.n_fits += 1
        if self.fails or self.a < -10:
            raise RuntimeError("fails")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.resize(self.classes_, len(X))

    def score(self, X, y):
        fold = int(X[0, 0])
        if len(set(X[:, 0])) > 1:
            return 1.0  # of the training part
        return self.a + LEVELS[fold] + 0.002 * math.sin(100 * self.a + 7 * fold)


class Capped(Leveled):
    """All values of `a` above a half are the same model."""

    def score(self, X, y):
        return Leveled(min(self.a, 0.5)).score(X, y)


@pytest.fixture(autouse=True)
def reset_counter():
    Leveled.n_fits, Leveled.max_fits = 0, math.inf


GRID = {"a": [0.5, 0.7, 0.1, 0.2, 0.69, 0.701, 0.3, 0.9, 0.4, 0.65]}


def make_search(space=GRID, estimator=None, **params):
    params = {"cv": CV, "archive": None, "refit": False, "racing": True, "n_iter": 10} | params
    params = {"random_state": 0, "surrogate": "gp"} | params
    return TransferSearchCV(estimator or Leveled(), space, **params)


def assert_same_results(one, other):
    assert one.cv_results_.keys() == other.cv_results_.keys()
    for key, values in one.cv_results_.items():
        if not key.endswith("_time"):
            np.testing.assert_array_equal(values, other.cv_results_[key], err_msg=key)


def split_scores(results, name="test_score"):
    return np.array([results[f"split{fold}_{name}"] for fold in range(N_FOLDS)]).T


# -- the rule --------------------------------------------------------------------------------------

SEEN_ONE = [math.nan] * 4


def make_race(*candidates):
    race = Race([10] * N_FOLDS)
    for scores in candidates or ([0.9, 0.8, 0.85, 0.95, 0.9], [0.88, 0.79, 0.84, 0.93, 0.87]):
        race.add(np.array(scores))
    return race


def test_candidate_far_behind_is_lost_after_one_fold():
    assert make_race().is_lost(np.array([0.5, *SEEN_ONE]))


def test_candidate_level_with_or_ahead_of_the_best_is_not_lost():
    race = make_race()
    assert not race.is_lost(np.array([0.9, *SEEN_ONE]))
    assert not race.is_lost(np.array([0.95, *SEEN_ONE]))


def test_folds_are_compared_in_pairs():
    """0.82 is good on a hard fold and bad on an easy one."""
    race = make_race()
    assert not race.is_lost(np.array([math.nan, 0.82, math.nan, math.nan, math.nan]))
    assert race.is_lost(np.array([math.nan, math.nan, math.nan, 0.82, math.nan]))


def test_nothing_is_lost_without_an_incumbent_or_with_all_folds():
    assert not Race([10] * N_FOLDS).is_lost(np.array([0.1, *SEEN_ONE]))
    assert not make_race().is_lost(np.full(N_FOLDS, 0.1))


def test_noisier_folds_need_more_evidence():
    rng = np.random.default_rng(0)
    quiet, loud = (
        make_race(*(0.9 + scale * rng.normal(size=(6, N_FOLDS)))) for scale in (0.001, 0.1)
    )
    seen = np.full(N_FOLDS, math.nan)
    seen[0] = 0.88
    assert quiet.is_lost(seen) and not loud.is_lost(seen)


AHEAD_ONCE = np.array([0.91, *SEEN_ONE])
BEHIND_ONCE = np.array([0.89, *SEEN_ONE])


def test_probability_without_prediction_is_that_of_the_paired_differences():
    race, scores = make_race(), np.array([0.89, 0.77, *SEEN_ONE[:3]])
    best, other = race._known
    d, k, n = (scores - best)[:2], 2, N_FOLDS
    variance = PRIOR_COUNT * np.var(other - best, ddof=1) + ((d - d.mean()) ** 2).sum()
    variance /= PRIOR_COUNT + k - 1
    expected = student.cdf(d.mean() / np.sqrt(variance * (n - k) / (n * k)), PRIOR_COUNT + k - 1)
    assert race.probability(scores) == pytest.approx(expected)
    assert race.probability(scores, Prediction(0.5)) == race.probability(scores)


def test_prediction_is_weighted_by_its_precision():
    """The limits are the folds alone and the prediction alone."""
    race, best = make_race(), make_race().incumbent.mean()
    alone = race.probability(BEHIND_ONCE)
    vague, sure = (Prediction(best, std) for std in (1e3, 1e-9))
    assert race.probability(BEHIND_ONCE, vague) == pytest.approx(alone, abs=1e-3)
    assert race.probability(BEHIND_ONCE, sure) == pytest.approx(0.5, abs=1e-3)
    shares = [race.probability(BEHIND_ONCE, Prediction(best + up, 0.01)) for up in (-0.02, 0, 0.02)]
    assert shares[0] < alone < shares[1] < shares[2]


def test_candidate_that_is_predicted_to_be_worse_is_lost_sooner():
    race, best = make_race(), make_race().incumbent.mean()
    seen = np.array([0.895, *SEEN_ONE])
    assert not race.is_lost(seen)
    assert race.is_lost(seen, Prediction(best - 0.015, 0.005))


def test_prediction_that_the_folds_refute_does_not_stop_a_better_candidate():
    race, seen = make_race(), np.array([1.0, *SEEN_ONE])
    assert not race.is_lost(seen, Prediction(0.2, 1e-6))
    seen = np.array([0.97, 0.88, *SEEN_ONE[:3]])
    assert not race.is_lost(seen, Prediction(0.8, 0.001))


def test_repeated_scores_are_lost_once_repeats_are_known():
    base = np.array([0.9, 0.8, 0.85, 0.95, 0.9])
    other = base - [0.02, 0.01, 0.01, 0.02, 0.03]
    seen = np.where(np.arange(N_FOLDS) < 1, base, math.nan)
    assert not make_race(base, other).is_lost(seen)
    assert make_race(base, other, *[base] * 9).is_lost(seen)
    # Two that agree on this fold only: chance, so that equal scores there tell less.
    chance = np.where(np.arange(N_FOLDS) < 1, base, base - 0.03)
    race = make_race(base, other, base, base)
    by_chance = make_race(base, other, base, base, chance, chance - [0, 0, 0, 0, 0.01])
    assert by_chance._repeat_probability(seen) == (2 + 1) / (4 + 2)
    assert by_chance._repeat_probability(seen) < race._repeat_probability(seen) == (2 + 1) / (2 + 2)
    assert race._repeat_probability(AHEAD_ONCE) == 0


def test_scores_that_never_differ_need_one_fold():
    assert make_race(np.ones(N_FOLDS)).is_lost(np.array([1.0, *SEEN_ONE]))


def test_standard_error_falls_with_the_folds_seen():
    race, scores = make_race(), np.array([0.5, 0.4, 0.45, 0.55, 0.5])
    errors = [
        race.std_error(np.where(np.arange(N_FOLDS) < k, scores, math.nan))
        for k in range(1, N_FOLDS + 1)
    ]
    assert (np.diff(errors) < 0).all() and errors[-1] == 0


def test_largest_folds_come_first_then_the_most_telling():
    race = Race([10, 12, 10, 11, 10])
    assert race.fold_order() == [1, 3, 0, 2, 4]
    quality = np.linspace(0.1, 0.9, 8)
    noise = np.random.default_rng(0).normal(size=(8, N_FOLDS)) * [1, 1, 1, 1, 0.01]
    for each, row in zip(quality, noise, strict=True):
        race.add(each + row)
    assert race.fold_order()[0] == 4


@pytest.mark.parametrize("n_folds", [3, 5, 10])
def test_rule_rarely_stops_the_best(n_folds):
    """Simulated candidates with known means: the chosen one is nearly as good as the best."""
    losses, shares = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        means, levels = rng.normal(0, 1, 25), rng.normal(0, 1, n_folds)
        scores = means[:, None] + levels + 0.3 * rng.normal(size=(25, n_folds))
        race, n_seen = Race([1] * n_folds), 0
        for own in scores:
            seen = np.full(n_folds, math.nan)
            for fold in race.fold_order():
                seen[fold], n_seen = own[fold], n_seen + 1
                if race.is_lost(seen):
                    break
            else:
                race.add(own)
        totals = scores.mean(axis=1)
        losses.append(totals.max() - race.incumbent.mean())
        shares.append(1 - n_seen / scores.size)
    assert np.mean(losses) < 0.02  # standard deviations of the candidates
    assert np.mean(shares) > 0.4


# -- cv_results_ -----------------------------------------------------------------------------------


def test_results_have_the_form_of_grid_search():
    search = make_search(return_train_score=True).fit(X, y)
    n_fits = Leveled.n_fits
    expected = GridSearchCV(Leveled(), GRID, cv=CV, refit=False, return_train_score=True).fit(X, y)
    own, other = search.cv_results_, expected.cv_results_
    added = {"origin", "predicted_mean", "predicted_std", "n_folds_evaluated"}
    assert set(own) - added == set(other)
    assert own["n_folds_evaluated"].sum() == n_fits < 0.7 * 5 * 10
    complete = own["n_folds_evaluated"] == N_FOLDS
    for key in set(other) - {"params"}:
        if not key.endswith("_time") and not key.startswith("rank_"):
            np.testing.assert_array_equal(own[key][complete], other[key][complete], err_msg=key)
    for name in ("test_score", "train_score"):
        missing = np.isnan(split_scores(own, name)).sum(axis=1)
        np.testing.assert_array_equal(missing, N_FOLDS - own["n_folds_evaluated"])
    assert np.isfinite(own["mean_test_score"]).all()
    assert own["params"][search.best_index_] == {"a": 0.9} == expected.best_params_


def test_mean_of_stopped_candidate_is_the_expectation_given_the_incumbent():
    own = make_search().fit(X, y).cv_results_
    folds, means = split_scores(own), own["mean_test_score"]
    incumbents = [0, 1, 1, 1, 1]  # best candidate before each of the first five
    for number in np.flatnonzero(own["n_folds_evaluated"] < N_FOLDS)[:3]:
        best = incumbents[number]
        difference = np.nanmean(folds[number] - folds[best])
        filled = np.where(np.isnan(folds[number]), folds[best] + difference, folds[number])
        assert means[number] == pytest.approx(filled.mean())
        assert means[number] < means[best]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_stopped_candidates_rank_behind_complete_ones():
    own = make_search({"a": [0.5, 0.9, 0.1, -20, 0.2]}, n_iter=5).fit(X, y).cv_results_
    assert own["n_folds_evaluated"].tolist() == [5, 5, 1, 1, 1]
    assert own["rank_test_score"].tolist() == [2, 1, 4, 5, 3]


def test_standard_deviation_is_that_of_the_evaluated_folds():
    own = make_search().fit(X, y).cv_results_
    folds = split_scores(own)
    for number, n in enumerate(own["n_folds_evaluated"]):
        std = own["std_test_score"][number]
        assert math.isnan(std) if n == 1 else std == pytest.approx(np.nanstd(folds[number]))
    assert np.isfinite(own["mean_fit_time"]).all()


def test_racing_is_off_by_default():
    search = TransferSearchCV(Leveled(), GRID, cv=CV, archive=None, refit=False)
    assert search.racing is False
    assert "n_folds_evaluated" not in search.fit(X, y).cv_results_
    assert Leveled.n_fits == 50


def test_best_candidate_has_all_folds_and_is_refitted():
    search = make_search({"a": uniform(0, 1)}, n_iter=12, refit=True).fit(X, y)
    own = search.cv_results_
    assert own["n_folds_evaluated"][search.best_index_] == N_FOLDS
    assert search.best_score_ == np.mean(split_scores(own)[search.best_index_])
    assert own["n_folds_evaluated"].sum() < 60
    assert search.best_estimator_.a == search.best_params_["a"]


# -- every kind of search --------------------------------------------------------------------------


def test_one_fold_leaves_nothing_to_stop():
    own = make_search(cv=ShuffleSplit(1, random_state=0)).fit(X, y).cv_results_
    assert own["n_folds_evaluated"].tolist() == [1] * 10


@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_failed_fit_stops_a_candidate():
    with pytest.warns(FitFailedWarning, match="1 fits failed out of a total of 11"):
        search = make_search({"a": [0.5, -20, 0.6]}, n_iter=3).fit(X, y)
    own = search.cv_results_
    assert own["n_folds_evaluated"].tolist() == [5, 1, 5]
    assert math.isnan(own["mean_test_score"][1]) and search.best_index_ == 2


def test_search_whose_fits_all_fail_raises_error():
    with pytest.raises(ValueError, match="All the 50 fits failed"):
        make_search(estimator=Leveled(fails=True)).fit(X, y)


def two_scores(estimator, X, y):
    score = estimator.score(X, y)
    return {"own": score, "other": 1 - score}


def test_metric_of_refit_decides():
    by_own = make_search(scoring=two_scores, refit="own").fit(X, y)
    by_other = make_search(scoring=two_scores, refit="other").fit(X, y)
    assert by_own.best_params_ == {"a": 0.9} and by_other.best_params_ == {"a": 0.1}
    own = by_own.cv_results_
    stopped = own["n_folds_evaluated"] < N_FOLDS
    assert stopped.any() and np.isfinite(own["mean_test_other"]).all()
    np.testing.assert_allclose(own["mean_test_own"] + own["mean_test_other"], 1)
    assert (
        np.isnan(split_scores(own, "test_other")).sum()
        == np.isnan(split_scores(own, "test_own")).sum()
    )


def test_first_metric_decides_without_refit():
    search = make_search(scoring=two_scores, refit=False).fit(X, y)
    complete = search.cv_results_["n_folds_evaluated"] == N_FOLDS
    assert {0.5, 0.7, 0.9} <= set(np.array(GRID["a"])[complete])


def choose_third(results):
    return 2


def choose_lowest(results):
    return int(np.argmin(results["mean_test_score"]))


@pytest.mark.parametrize("choose", [choose_third, choose_lowest])
def test_choice_of_callable_refit_is_given_all_folds(choose, tmp_path):
    search = make_search(refit=choose, archive=tmp_path).fit(X, y)
    own = search.cv_results_
    assert own["params"][search.best_index_] == {"a": 0.1}
    assert own["n_folds_evaluated"][2] == N_FOLDS
    assert own["mean_test_score"][2] == np.mean(split_scores(own)[2])
    assert own["n_folds_evaluated"].sum() == Leveled.n_fits - 1  # and the refit
    trial = Archive(tmp_path)[search.task_id_].trials[2]
    assert trial.score == own["mean_test_score"][2] and trial.std_error == 0


def test_callable_refit_that_is_no_index_raises_the_error_of_grid_search():
    with pytest.raises(TypeError, match="not an integer"):
        make_search(refit=lambda results: "best").fit(X, y)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_several_workers_give_the_same_results_each_time(n_jobs):
    space = {"a": uniform(0, 1)}
    with parallel_config(backend="threading"):
        found = [make_search(space, n_jobs=n_jobs, batch_size=2).fit(X, y) for _ in range(2)]
    assert_same_results(*found)
    folds = found[0].cv_results_["n_folds_evaluated"]
    assert folds[0] == N_FOLDS and folds.sum() < 50


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_race_is_told_what_the_surrogate_predicts(monkeypatch, n_jobs):
    told = []

    def is_lost(self, scores, predicted):
        told.append(predicted)
        return False

    monkeypatch.setattr(Race, "is_lost", is_lost)
    space = {"a": uniform(0, 1)}
    with parallel_config(backend="threading"):
        own = make_search(space, n_jobs=n_jobs).fit(X, y).cv_results_
    expected = set(zip(own["predicted_mean"], own["predicted_std"], strict=True))
    known = {pair for pair in expected if np.isfinite(pair).all()}
    assert len(known) >= 5 and known <= {tuple(each) for each in told}
    told.clear()
    make_search(GRID).fit(X, y)
    assert told and not any(each.is_known for each in told)


def test_race_that_repeats_itself_needs_few_fits():
    """All configurations above 0.5 give the same model."""
    values = np.linspace(0.1, 0.99, 30)[np.random.default_rng(0).permutation(30)]
    own = make_search({"a": [*values]}, Capped(), n_iter=30).fit(X, y).cv_results_
    assert own["n_folds_evaluated"].mean() < 0.55 * N_FOLDS
    assert own["mean_test_score"].max() == pytest.approx(0.5, abs=0.03)


# -- surrogate, archive and resume -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["gp", "auto"])
def test_surrogate_trusts_scores_of_fewer_folds_less(name):
    theta = np.array([[0.1], [0.4], [0.6], [0.9]])
    z, number = np.array([0.2, 0.3, 0.9, 0.4]), np.array([False])
    certain = EncodedTask(theta, z, number)
    unsure = EncodedTask(theta, z, number, std_error=np.array([0, 0, 0.5, 0]))
    model = make_surrogate(name).fit([])
    (mean, std), (mean_unsure, std_unsure) = (
        model.posterior(task).predict(np.array([[0.6]])) for task in (certain, unsure)
    )
    assert std_unsure[0] > std[0] and mean_unsure[0] < mean[0]


def test_optimizer_is_told_of_standard_errors():
    told, plain = (
        TransferOptimizer({"a": uniform(0, 1)}, surrogate="gp", random_state=0) for _ in range(2)
    )
    for a in (0.1, 0.3, 0.5, 0.7, 0.9):
        told.tell({"a": a}, a, std_error=0.4 * (a == 0.9))
        plain.tell({"a": a}, a)
    assert told.to_task().trials[-1].std_error == 0.4
    assert told.predict([{"a": 0.9}])[0][1] > plain.predict([{"a": 0.9}])[0][1]


def test_archive_knows_which_scores_are_uncertain(tmp_path):
    search = make_search(archive=tmp_path).fit(X, y)
    task = Archive(tmp_path)[search.task_id_]
    stopped = search.cv_results_["n_folds_evaluated"] < N_FOLDS
    assert [trial.std_error > 0 for trial in task.trials] == stopped.tolist()
    np.testing.assert_array_equal(task.scores, search.cv_results_["mean_test_score"])
    assert task.best.params == {"a": 0.9}


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "interrupted"])
@pytest.mark.parametrize("space", [GRID, {"a": uniform(0, 1)}], ids=["grid", "range"])
def test_interrupted_race_is_resumed(tmp_path, monkeypatch, space, killed):
    monkeypatch.setattr("sktransfer.model_selection._evaluator.SYNC_SECONDS", 0)
    whole = make_search(space, archive=tmp_path / "whole").fit(X, y)
    n_fits, Leveled.n_fits = Leveled.n_fits, 0
    Leveled.max_fits = 18
    with pytest.MonkeyPatch.context() as patch:
        if killed:
            patch.setattr(Recorder, "finish", lambda self, **_: None)
        with pytest.raises(KeyboardInterrupt):
            make_search(space, archive=tmp_path).fit(X, y)
    Leveled.n_fits, Leveled.max_fits = 0, math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = make_search(space, archive=tmp_path, resume=True).fit(X, y)
    assert_same_results(resumed, whole)
    assert n_fits - 18 <= Leveled.n_fits < n_fits - 10


def test_search_without_racing_evaluates_what_a_race_stopped(tmp_path):
    """The space differs, so that the results of the race are reused, as far as they are whole."""
    raced = make_search(archive=tmp_path).fit(X, y)
    n_whole = int((raced.cv_results_["n_folds_evaluated"] == N_FOLDS).sum())
    Leveled.n_fits = 0
    wider = {"a": [*GRID["a"], 0.95]}
    search = make_search(wider, racing=False, n_iter=11, archive=tmp_path, resume=True).fit(X, y)
    assert np.isfinite(split_scores(search.cv_results_)).all()
    assert Leveled.n_fits == N_FOLDS * (11 - n_whole)


def test_progress_says_that_a_candidate_was_stopped(capsys):
    make_search({"a": [0.9, 0.1]}, n_iter=2, verbose=1).fit(X, y)
    assert "stopped after 1 of 5 folds" in capsys.readouterr().out
