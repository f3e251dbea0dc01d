"""`TransferOptimizer`: best trial, direction, repr, and past tasks that do not fit."""

import math
import re
from pathlib import Path

import pytest
from scipy.stats import loguniform, uniform

from sktransfer import Task, TransferOptimizer
from sktransfer.exceptions import TransferWarning

SPACE = {"a": uniform(0, 1), "kind": ["x", "y"]}


def loss(params):
    return (params["a"] - 0.3) ** 2 + 0.2 * (params["kind"] == "x")


def run(direction, n=12, tasks=(), sign=1):
    optimizer = TransferOptimizer(SPACE, tasks, direction=direction, random_state=0)
    asked = []
    for _ in range(n):
        [params] = optimizer.ask()
        asked.append(params)
        optimizer.tell(params, sign * loss(params))
    return optimizer, asked


def test_best_trial_is_known_and_none_before_a_success():
    optimizer = TransferOptimizer(SPACE, random_state=0)
    assert optimizer.best_params is None and optimizer.best_score is None
    optimizer.tell({"a": 0.1, "kind": "x"}, math.nan)
    assert optimizer.best_params is None and optimizer.best_score is None
    for a, score in [(0.2, 0.5), (0.3, 0.9), (0.4, 0.7)]:
        optimizer.tell({"a": a, "kind": "y"}, score)
    assert optimizer.best_params == {"a": 0.3, "kind": "y"}
    assert optimizer.best_score == 0.9


def test_minimizing_a_loss_is_maximizing_its_negative():
    minimized, asked = run("minimize")
    maximized, same = run("maximize", sign=-1)
    assert asked == same
    assert minimized.best_score == -maximized.best_score == min(map(loss, asked))
    assert minimized.best_params == maximized.best_params
    assert minimized.best_score < 0.05


def test_predictions_have_the_sign_of_the_scores():
    optimizer, _ = run("minimize")
    (bad, std), (good, _) = optimizer.predict([{"a": 0.9, "kind": "x"}, {"a": 0.3, "kind": "y"}])
    assert bad > good + 0.05 and std > 0
    mirrored, _ = run("maximize", sign=-1)
    assert optimizer.propose()[0].mean == -mirrored.propose()[0].mean


def test_record_of_a_loss_is_to_be_maximized():
    optimizer = TransferOptimizer(SPACE, metric="loss", direction="minimize", random_state=0)
    optimizer.tell({"a": 0.5, "kind": "x"}, 2.0)
    task = optimizer.to_task()
    assert task.metrics == ("neg_loss",) and task.best.score == -2.0


def test_minimizing_learns_from_past_losses():
    past = run("minimize", n=10)[0].to_task()
    optimizer = TransferOptimizer(SPACE, [past], direction="minimize", random_state=1)
    [params] = optimizer.ask()
    assert loss(params) < 0.05
    [suggested] = optimizer.suggest()
    assert loss(suggested.params) < 0.05 and suggested.mean > -0.1


def test_unknown_direction_is_refused():
    with pytest.raises(ValueError, match="direction must be 'maximize' or 'minimize', got 'min'"):
        TransferOptimizer(SPACE, direction="min")


def test_repr_shows_space_tasks_trials_and_best():
    optimizer, _ = run("minimize", n=1)
    expected = "TransferOptimizer(Space(a: 0 to 1, kind: 'x', 'y'), 0 past tasks, 1 trial, best "
    assert repr(optimizer).startswith(expected)
    past = optimizer.to_task()
    assert repr(TransferOptimizer(SPACE, [past])) == (
        "TransferOptimizer(Space(a: 0 to 1, kind: 'x', 'y'), 1 past task, 0 trials)"
    )


def test_past_task_without_a_common_parameter_gives_a_warning():
    same = Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)])
    other = Task.from_trials({"svc__C": [1, 10]}, [({"svc__C": 1}, 0.9)])
    with pytest.warns(TransferWarning) as caught:
        TransferOptimizer({"C": loguniform(1e-3, 1e3)}, [same, other])
    assert [str(each.message) for each in caught] == [
        "1 of 2 past tasks have no parameter in common with the space. They have svc__C, the space "
        "has C. Nothing is learned from them."
    ]
    assert caught[0].filename == __file__


def test_past_task_that_is_no_task_says_how_to_make_one():
    with pytest.raises(
        TypeError, match=r"got {'C': 1} \(dict\)\. Make them with Task\.from_trials"
    ):
        TransferOptimizer({"C": [1, 2]}, [{"C": 1}])


def test_single_past_task_says_to_pass_a_list():
    past = TransferOptimizer({"C": [1, 2]}).to_task()
    with pytest.raises(TypeError, match=r"got a single one: pass \[task\]\.$"):
        TransferOptimizer({"C": [1, 2]}, tasks=past)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_score_that_is_a_text_is_refused(direction):
    optimizer = TransferOptimizer({"C": [1, 2]}, direction=direction)
    with pytest.raises(TypeError, match=r"^score must be a number, got 'a'\. NaN means"):
        optimizer.tell({"C": 1}, "a")


def test_example_of_the_documentation_runs():
    page = Path(__file__).parents[2] / "docs" / "parameters.md"
    text = page.read_text(encoding="utf-8")
    [example] = [
        block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "tasks=past" in block
    ]
    names = {}
    exec(example, names)
    assert names["optimizer"].best_score > 0.9 and len(names["past"]) == 2
