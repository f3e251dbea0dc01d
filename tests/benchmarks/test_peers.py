"""The hand-built peers of the comparison, and its tables."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification

pytest.importorskip("pandas")

from benchmarks.peer_methods import Listed, Problem, best_first, nearest, portfolio, shuffled
from benchmarks.peer_report import claims, regrets, stacked
from benchmarks.peers import FIELDS, take_over_peers
from benchmarks.runner import read_rows, write_runs
from sktransfer import Space, Task, profile

SPACE = {"x": [0.0, 0.25, 0.5, 0.75, 1.0]}


def task(best: float, data=None, id: str = "") -> Task:
    """A search on the whole space whose best value is `best`."""
    trials = [({"x": x}, -abs(x - best)) for x in SPACE["x"]]
    return Task.from_trials(SPACE, trials, data, id=id)


def data_of(n_rows: int):
    return profile(*make_classification(n_rows, random_state=0))


def problem(data, past: list[Task]) -> Problem:
    return Problem(SPACE, Space.parse(SPACE), data, past, seed=0)


@pytest.fixture
def past() -> list[Task]:
    return [task(0.25, data_of(60)), task(1.0, data_of(100)), task(1.0, data_of(1000))]


def test_best_first_omits_failures():
    trials = [({"x": 0.0}, 0.1), ({"x": 0.5}, float("nan")), ({"x": 1.0}, 0.9)]
    assert best_first(Task.from_trials(SPACE, trials)) == [{"x": 1.0}, {"x": 0.0}]


def test_nearest_starts_with_best_setting_of_most_similar_task(past):
    found = list(nearest(problem(data_of(60), past)))
    assert found[0] == {"x": 0.25}
    assert next(nearest(problem(data_of(1000), past))) == {"x": 1.0}
    assert len(found) == 15


def test_portfolio_starts_with_best_setting_of_most_tasks(past):
    found = list(portfolio(problem(data_of(60), past)))
    assert found[0]["x"] == 1.0
    others = [params["x"] for params in found if params["x"] != 1.0]
    assert others[0] == 0.25


def test_listed_skips_repetitions_and_continues_at_random(past):
    found = iter([{"x": 1.0}, {"x": 1.0}, {"x": 0.5}])
    search = Listed(found, problem(data_of(60), past))
    assert [search.ask()["x"] for _ in range(2)] == [1.0, 0.5]
    assert search.ask()["x"] in SPACE["x"]


def test_shuffled_reassigns_scores_to_configurations(past):
    moved = shuffled(past[0], 0)
    assert sorted(moved.scores) == sorted(past[0].scores)
    assert [t.params for t in moved.trials] == [t.params for t in past[0].trials]
    assert list(moved.scores) != list(past[0].scores)


def rows_of(method: str, *scores: list[float], data: str = "a") -> list[dict]:
    return [
        {"estimator": "svc", "data": data, "method": method, "seed": seed, "scores": own}
        for seed, own in enumerate(scores)
    ]


def test_regrets_are_zero_at_best_and_one_at_random_median():
    rows = rows_of("random search", [0.5, 0.6, 0.7]) + rows_of(
        "optuna TPE", [0.6, 0.8], [float("nan"), 0.6]
    )
    table = regrets(rows)
    np.testing.assert_allclose(stacked(table, "optuna TPE")[0], [[(1.0 + 1.5) / 2, 0.5]])
    np.testing.assert_allclose(stacked(table, "random search")[0][0], [1.0, 2 / 3, 0.5])


def test_regrets_omit_targets_with_equal_configurations():
    rows = rows_of("random search", [0.5, 0.5]) + rows_of(
        "random search", [0.1, 0.2, 0.3], data="b"
    )
    rows += rows_of("random search", [0.1, 0.5, 0.5, 0.502], data="next to nothing")
    assert list(regrets(rows)["random search"]) == [("svc", "b")]


def test_claims_list_trials_where_search_is_behind():
    random = list(np.linspace(0, 1, 101))
    ours, theirs = [0.5] * 10 + [1.0] * 20, [0.2] * 9 + [0.6] + [0.9] * 20
    rows = rows_of("random search", random) + rows_of("sktransfer, as installed", ours)
    rows += rows_of("optuna TPE", theirs)
    text = "\n".join(claims(regrets(rows)))
    assert "ahead of optuna TPE at every number of trials | | | no, behind at 10; " in text
    assert "; beyond the noise at 10 |" in text
    assert (
        "trial 1 as good as random search's 10th | 1.000, 0.165 | +0.835 (+0.835 to +0.835) | no |"
        in text
    )


def test_claims_distinguish_noise_from_difference():
    rows = []
    for number in range(8):
        data = f"data {number}"
        # Ahead on half of the data sets, behind by a little more on the others.
        ours = 0.9 if number < 4 else 0.5
        rows += rows_of("random search", list(np.linspace(0, 1, 101)), data=data)
        rows += rows_of("sktransfer, as installed", [ours] * 30, data=data)
        rows += rows_of("portfolio of 30 past", [0.72] * 30, data=data)
    text = "\n".join(claims(regrets(rows)))
    assert "better than portfolio of 30 past's 20th | 0.600, 0.560 |" in text
    assert "| no, within the noise |" in text
    assert "beyond the noise at none of them" in text


def test_take_over_peers_copies_independent_methods_only(tmp_path):
    keys = [("svc", "iris", "optuna TPE", 0), ("svc", "iris", "sktransfer, as installed", 0)]
    kept, store = tmp_path / "report.jsonl.gz", tmp_path / "work" / "runs.jsonl"
    rows = [dict(zip(FIELDS, key, strict=True), scores=[0.5]) for key in keys]
    write_runs(rows, kept)
    for _ in range(2):
        take_over_peers(kept, store)
    assert list(read_rows(store, FIELDS)) == keys[:1]
    assert len(store.read_text().splitlines()) == 1
