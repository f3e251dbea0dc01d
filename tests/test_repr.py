"""Short, useful texts for the main objects."""

import math

import pytest
from scipy.stats import loguniform, norm, randint, uniform
from sklearn.svm import SVC

from sktransfer import Archive, Space, Suggestion, Task, TransferOptimizer


@pytest.mark.parametrize(
    ("space", "text"),
    [
        ({"C": loguniform(1e-3, 1e3)}, "Space(C: 0.001 to 1000 (log))"),
        ({"n": randint(1, 9)}, "Space(n: 1 to 8 (integers); 8 configurations)"),
        ({"a": uniform(0, 2), "b": norm()}, "Space(a: 0 to 2, b: norm)"),
        ({"a": [1, 2, 3, 4, 5]}, "Space(a: 1 to 5 (5 values); 5 configurations)"),
        ({"k": ["rbf", None]}, "Space(k: 'rbf', None; 2 configurations)"),
        ([{"a": [1]}, {"b": [True]}], "Space(a: 1 | b: True; 2 configurations)"),
        ({"k": list("abcde")}, "Space(k: 'a', 'b', 'c', … (5 values); 5 configurations)"),
        ({}, "Space(1 configuration)"),
    ],
)
def test_space_shows_ranges(space, text):
    assert repr(Space.parse(space)) == text


def test_space_shortens_long_values():
    assert len(repr(Space.parse({"k": ["x" * 1000, "y" * 1000]}))) < 100


def test_task_is_one_line():
    trials = [({"C": 1}, 0.5), ({"C": 10}, 0.91234)]
    task = Task.from_trials({"C": [1, 10]}, trials, estimator=SVC(), id="a", metrics=["r2"])
    assert repr(task) == "Task('a', SVC, 2 trials, best r2 0.9123)"
    failed = Task.from_trials({"C": [1]}, [({"C": 1}, math.nan)], id="b", complete=False)
    assert repr(failed) == "Task('b', unknown estimator, 1 trial, incomplete)"


def test_task_of_an_archive_reads_no_file_for_its_text(tmp_path):
    archive = Archive(tmp_path)
    for number in range(20):  # from 16 on, there is an index
        archive.append(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.5)], id=f"t{number:02}"))
    archive.select()
    [first, *_] = archive.select().used
    assert repr(first) == "Task('t00', unknown estimator, 1 trial)"
    assert "trials" not in first.__dict__
    assert first.trials and repr(first) == "Task('t00', unknown estimator, 1 trial, best score 0.5)"


def test_optimizer_counts_tasks_and_trials():
    optimizer = TransferOptimizer({"C": [1, 10]}, surrogate="random")
    optimizer.tell({"C": 1}, math.nan)
    assert repr(optimizer) == (
        "TransferOptimizer(Space(C: 1, 10; 2 configurations), 0 past tasks, 1 trial)"
    )
    optimizer.tell({"C": 10}, 0.5)
    assert repr(optimizer).endswith("2 trials, best 0.5)")


def test_suggestion_shows_the_prediction_if_there_is_one():
    found = Suggestion({"C": 1}, 0.9, 0.1, (), "from 2 similar past tasks")
    assert repr(found) == "Suggestion({'C': 1}, predicted 0.9 ± 0.1, from 2 similar past tasks)"
    unknown = Suggestion({"C": 1}, math.nan, math.nan, (), "the defaults")
    assert repr(unknown) == "Suggestion({'C': 1}, the defaults)"
