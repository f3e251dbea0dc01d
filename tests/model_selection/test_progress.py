"""The progress of a search: one live line, or plain lines."""

import re

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from sktransfer import Archive, Task, TransferSearchCV
from sktransfer.model_selection._progress import Progress
from sktransfer.model_selection._results import Candidate
from sktransfer.surrogates import DKLM
from sktransfer.task import Trial
from sktransfer.utils import _progress_line

X, y = load_iris(return_X_y=True)
SPACE = {"C": loguniform(1e-2, 1e2)}


@pytest.fixture
def every_line(monkeypatch):
    """Print a line for every candidate, however fast."""
    monkeypatch.setattr(_progress_line, "SECONDS_PER_LINE", 0.0)


def fit(verbose, space=SPACE, **changes):
    settings = {"n_iter": 5, "cv": 2, "archive": None, "random_state": 0} | changes
    return TransferSearchCV(SVC(), space, verbose=verbose, **settings).fit(X, y)


def candidate(score):
    return Candidate({"C": 1}, [], Trial.make({"C": 1}, score), "score", True)


def test_verbose_search_prints_one_line_per_candidate(capsys, every_line):
    search = fit(1, surrogate="random")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [f"[{k}/5]" for k in range(1, 6)]
    scores = search.cv_results_["mean_test_score"]
    shown = [float(re.search(r"score ([\d.]+)", line)[1]) for line in lines]
    best = [float(re.search(r"best ([\d.]+)", line)[1]) for line in lines]
    np.testing.assert_allclose(shown, scores, rtol=1e-3)
    np.testing.assert_allclose(best, np.maximum.accumulate(scores), rtol=1e-3)
    assert all(re.search(r"\d+ s left, [\d.e-]+ s each", line) for line in lines)
    assert f"(candidate {search.best_index_ + 1}, random)" in lines[-1]


def test_silent_search_prints_nothing(capsys):
    fit(0)
    assert capsys.readouterr().out == ""


def test_verbose_is_unchanged_after_the_search():
    assert fit(1).verbose == 1


def test_fast_candidates_share_a_line(capsys):
    fit(1, surrogate="random")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[1/5]") and lines[-1].startswith("[5/5]")
    assert len(lines) < 5


def test_grid_keeps_the_message_of_scikit_learn(capsys, every_line):
    fit(1, {"C": [1, 10, 100]})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Fitting 2 folds for each of 3 candidates, totalling 6 fits"
    assert [line.split()[0] for line in lines[1:]] == ["[1/3]", "[2/3]", "[3/3]"]


def test_past_tasks_are_counted_once_before_the_first_candidate(tmp_path, capsys, every_line):
    archive = Archive(tmp_path)
    trials = [({"C": 10.0**k}, -abs(k - 1.0)) for k in range(-2, 3)]
    archive.append(Task.from_trials(SPACE, trials, estimator=SVC(), id="past"))
    fit(1, archive=archive)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("Learning from 1 past search and the pretrained model")
    assert not any("past search" in line for line in lines if line.startswith("["))


def test_failed_candidates_are_named(capsys, every_line):
    progress = Progress(1, 3)
    progress.begin_batch(["model", "task abc-0123456789", "random"])
    for score in (float("nan"), 0.5, 0.4):
        progress.add(candidate(score))
    progress.close()
    first, second, third = capsys.readouterr().out.splitlines()
    assert "score failed, " in first and "best" not in first
    assert "best 0.5 (candidate 2, past task abc-0123456789)" in second
    assert "score 0.4, best 0.5 (candidate 2" in third


def test_interrupted_search_closes_its_line(capsys):
    class Interrupts(SVC):
        def fit(self, X, y):
            if self.C > 1:
                raise KeyboardInterrupt
            return super().fit(X, y)

    space = {"C": loguniform(0.5, 2)}
    search = TransferSearchCV(
        Interrupts(), space, n_iter=20, cv=2, verbose=1, archive=None, random_state=0
    )
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert search.verbose == 1
    assert capsys.readouterr().out.endswith("\n")


def test_training_of_the_surrogate_is_shown(tmp_path, capsys, every_line, monkeypatch):
    monkeypatch.setattr(_progress_line, "SECONDS_BEFORE_LINE", 0.0)
    archive = Archive(tmp_path)
    for number in range(3):
        trials = [({"C": 10.0**k}, -abs(k - number)) for k in range(-2, 3)]
        archive.append(Task.from_trials(SPACE, trials, estimator=SVC(), id=f"past-{number}"))
    fit(0, archive=archive, surrogate=DKLM(steps=2), n_iter=1)
    assert capsys.readouterr().out == ""
    fit(1, archive=archive, surrogate=DKLM(steps=3), n_iter=1)
    lines = [line for line in capsys.readouterr().out.splitlines() if "Training" in line]
    assert lines[-1] == "[3/3] Training the surrogate, 0 s left"
