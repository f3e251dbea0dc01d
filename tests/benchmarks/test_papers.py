"""Shared parts of the experiments of the papers, on synthetic rows and small tables."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import uniform

from benchmarks.papers import (
    _copula_tables,
    _copula_time,
    _distbo,
    _ensemble,
    _stream,
    _suites,
    ablr_quadratics,
    distbo_protein,
    dklm_landmarks,
    yogatama,
)
from benchmarks.papers.__main__ import EXPERIMENTS, arguments, experiment_of, main
from benchmarks.papers._compare import (
    best_so_far,
    critical_difference,
    mean_over,
    not_apart,
    ranks,
    without_levels,
)
from benchmarks.papers._experiment import (
    Experiment,
    conduct,
    half_width,
    interval,
    packed_runs,
    round_values,
)
from benchmarks.papers._page import gather
from benchmarks.papers._replay import expected_best, replay_search, with_seed
from benchmarks.papers._starter_tables import data_name
from benchmarks.papers._times import add_time, write_times
from benchmarks.runner import (
    RESULTS,
    format_page,
    read_rows,
    read_runs,
    run_all,
    take_over,
    write_runs,
)
from sktransfer import Space, profile
from sktransfer.encoders import DistributionEncoder
from sktransfer.surrogates import DistGP

# -- numbers ---------------------------------------------------------------------------------------


def test_expected_best_is_the_mean_over_all_draws():
    loss = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])
    by_hand = [np.mean([min(draw) for draw in combinations(loss, k)]) for k in range(1, 7)]
    np.testing.assert_allclose(expected_best(loss, 6), by_hand)


def test_best_so_far_uses_common_cells_only():
    rows = [
        {"method": "a", "seed": 0, "loss": [3.0, 1.0, 2.0]},
        {"method": "b", "seed": 0, "loss": [2.0, 5.0]},
        {"method": "a", "seed": 1, "loss": [0.0, 0.0]},
    ]
    best = best_so_far(rows, ("seed",), "loss", lower=True)
    assert best["a"].tolist() == [[-3.0, -1.0]]
    assert best["b"].tolist() == [[-2.0, -2.0]]


def test_ranks_start_at_one_and_average_ties():
    best = {
        "a": np.array([[0.3, 0.9]]),
        "b": np.array([[0.1 + 0.2, 0.1]]),
        "c": np.array([[0.1, 0.5]]),
    }
    found = ranks(best)  # 0.1 + 0.2 equals 0.3 except for the last digit
    assert {m: r.tolist() for m, r in found.items()} == {
        "a": [[1.5, 1]],
        "b": [[1.5, 3]],
        "c": [[3, 2]],
    }


def test_without_levels_keeps_means_and_differences():
    best = {"a": np.array([[1.0, 2.0], [11.0, 12.0]]), "b": np.array([[3.0, 2.0], [13.0, 14.0]])}
    found = without_levels(best)
    for method, values in best.items():
        np.testing.assert_allclose(found[method].mean(axis=0), values.mean(axis=0))
    np.testing.assert_allclose(found["a"] - found["b"], best["a"] - best["b"])
    np.testing.assert_allclose(found["a"][:, 0], [6.0, 6.0])  # the cells differed by 10 for both


def test_intervals_contain_the_mean_as_often_as_they_say():
    drawn = np.random.default_rng(0).normal(size=(5, 20_000))
    assert np.mean(np.abs(drawn.mean(axis=0)) <= half_width(drawn)) == pytest.approx(0.95, abs=0.01)
    assert interval(np.array([1.0, 3.0]), digits=1, sign="+") == "+2.0 ± 12.7"
    assert interval(np.array([1.0])) == "1.000"


def test_mean_over_averages_each_group():
    values = np.array([[1.0], [3.0], [10.0]])
    assert mean_over(values, ["x", "x", "y"]).tolist() == [[2.0], [10.0]]


@pytest.mark.parametrize(
    ("methods", "cells", "expected"), [(4, 14, 1.25), (5, 30, 1.11), (2, 24, 0.40)]
)
def test_critical_difference_matches_demsar(methods, cells, expected):
    assert critical_difference(methods, cells) == pytest.approx(expected, abs=0.005)


def test_not_apart_returns_largest_groups_only():
    found = not_apart({"d": 4.0, "a": 1.0, "b": 1.5, "c": 2.2}, 1.0)
    assert found == [["a", "b"], ["b", "c"]]
    assert not_apart({"a": 1.0, "b": 2.0}, 0.5) == []


# -- stored runs -----------------------------------------------------------------------------------


def test_run_all_resumes_after_truncated_line(tmp_path):
    store, done = tmp_path / "runs.jsonl", []

    def run(number):
        done.append(number)
        return {"square": number**2}

    keys = [(1,), (2,), (3,)]
    first = run_all(store, ("number",), keys, run)
    text = store.read_text()
    store.write_text(text[: text.rindex("square")])  # within the last line
    done.clear()
    assert (
        run_all(store, ("number",), keys, run)
        == first
        == [{"number": n, "square": n * n} for n in (1, 2, 3)]
    )
    assert done == [3]
    done.clear()
    assert run_all(store, ("number",), keys, run) == first
    assert done == []


def test_run_all_reads_store_and_packed_runs(tmp_path):
    packed, store = tmp_path / "runs" / "runs.jsonl.gz", tmp_path / "work" / "runs.jsonl"
    write_runs([{"number": 1, "square": 1}, {"number": 2, "square": 0}], packed)
    take_over(store, ("number",), [{"number": 2, "square": 4}])
    found = run_all(
        store, ("number",), [(1,), (2,), (3,)], lambda n: {"square": n * n}, packed=packed
    )
    assert [row["square"] for row in found] == [1, 4, 9]
    assert list(read_rows(store, ("number",))) == [(2,), (3,)]


def test_packed_runs_round_trip_and_are_reproducible(tmp_path):
    rows = [
        {"task": "m4-Hourly", "seed": 3, "loss": [0.5, -0.25], "wall": 1.5},
        {"task": "a b", "seed": 0, "loss": [1e-06, 2.0], "correlation": -0.5},
    ]
    first, second = tmp_path / "first.jsonl.gz", tmp_path / "second.jsonl.gz"
    for file in (first, second):
        write_runs(rows, file)
    assert list(read_runs(first)) == rows
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[4:8] == bytes(4)  # no modification time
    assert list(read_runs(tmp_path / "absent.jsonl.gz")) == []


def test_format_page_wraps_text_and_keeps_tables():
    row, text = "| " + "cell " * 40 + "|", "word " * 40
    lines = format_page(["# Title", "", text, "* " + text, row]).splitlines()
    assert row in lines
    assert all(len(line) <= 100 for line in lines if line != row)
    assert [line[:6] for line in lines if line != row] == [
        "# Titl",
        "",
        "word w",
        "word w",
        "* word",
        "  word",
        "  word",
    ]


def tiny(calls: list) -> Experiment:
    def run(method, seed, folder):
        calls.append((method, seed))
        return {"score": [0.1 * seed, 0.5], "wall": 60.0}

    return Experiment(
        title="Tiny",
        about="Nothing.",
        seeds=7,
        fields=("method", "seed"),
        keys=lambda seeds, quick, folder: [("a", seed) for seed in range(seeds)],
        run=run,
        tables=lambda rows: [f"## Best {max(row['score'][1] for row in rows)}"],
        figure=lambda rows, file: file.write_bytes(b"png"),
    )


def test_conduct_writes_results_and_repeats_no_run(tmp_path):
    calls: list = []
    for _ in range(2):
        conduct("tiny", tiny(calls), tmp_path, tmp_path / "work", tmp_path / "out", 2, True, 1)
    assert calls == [("a", 0), ("a", 1)]
    page = (tmp_path / "out" / "tiny.md").read_text()
    assert "2 runs, 2 minutes" in page and "7 seeds" in page and "## Best 0.5" in page
    packed = packed_runs(tmp_path / "out", "tiny")
    assert packed == tmp_path / "runs" / "out" / "tiny.jsonl.gz"
    assert [row["seed"] for row in read_runs(packed)] == [0, 1]
    assert "(../runs/out/tiny.jsonl.gz)" in page


def test_conduct_resumes_from_packed_runs(tmp_path):
    calls: list = []
    out = tmp_path / "out"
    conduct("tiny", tiny(calls), tmp_path, tmp_path / "work", out, 2, False, 1)
    written = list(read_runs(packed_runs(out, "tiny")))
    conduct("tiny", tiny(calls), tmp_path, tmp_path / "elsewhere", out, 3, False, 1)
    assert calls == [("a", 0), ("a", 1), ("a", 2)]
    assert list(read_runs(packed_runs(out, "tiny")))[:2] == written
    # Packed runs that are not requested are kept.
    conduct("tiny", tiny(calls), tmp_path, tmp_path / "a third place", out, 1, False, 1)
    assert len(calls) == 3
    assert [row["seed"] for row in read_runs(packed_runs(out, "tiny"))] == [0, 1, 2]
    assert "1 runs" in (out / "tiny.md").read_text()


def test_round_values_keeps_six_digits():
    row = {"task": "a", "seed": 3, "loss": [1 / 3, 2.0], "wall": 1.23456789}
    assert round_values(row) == {"task": "a", "seed": 3, "loss": [0.333333, 2.0], "wall": 1.23457}
    assert round_values(round_values(row)) == round_values(row)


def test_take_over_adds_each_run_once(tmp_path):
    store = tmp_path / "work" / "runs.jsonl"
    take_over(store, ("number",), [{"number": 1, "square": 1}])
    with store.open("a") as file:
        file.write('{"number": 2, "squ')  # truncated
    take_over(store, ("number",), [{"number": 1, "square": 7}, {"number": 3, "square": 9}])
    assert list(read_rows(store, ("number",)).values()) == [
        {"number": 1, "square": 1},
        {"number": 3, "square": 9},
    ]


def test_conduct_done_reports_finished_runs_only(tmp_path):
    calls: list = []
    place = (tmp_path, tmp_path / "work", tmp_path / "out")
    conduct("tiny", tiny(calls), *place, 2, False, 1)
    (tmp_path / "out" / "tiny-notes.md").write_text("All is well.")
    conduct("tiny", tiny(calls), *place, 5, False, 1, done=True)
    assert len(calls) == 2
    page = (tmp_path / "out" / "tiny.md").read_text()
    assert "2 of 5 runs" in page
    assert "## Discussion\n\nAll is well." in page


def test_gather_collects_pages_and_adapts_links(tmp_path):
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "tiny.md").write_text(
        "# Tiny\n\n![Tiny](tiny.png)\n\n[runs](../runs/papers/tiny.jsonl.gz)\n\n## Table\n"
    )
    page = gather(tmp_path / "papers", ["tiny", "absent"]).read_text()
    assert "## Tiny" in page and "### Table" in page
    assert "(papers/tiny.png)" in page and "(runs/papers/tiny.jsonl.gz)" in page
    assert "Not run yet: `absent`" in page


# -- the program -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment_is_complete(name):
    experiment = experiment_of(name)
    assert (experiment.run is None) != (experiment.rows is None)
    assert experiment.title and experiment.about and experiment.seeds > 0
    if "classification" in experiment.needs:
        return  # the keys depend on the data
    for quick in (True, False):
        keys = experiment.keys(2, quick, Path())
        assert len(set(keys)) == len(keys) > 0
        assert {len(key) for key in keys} == {len(experiment.fields)}
    assert len(experiment.keys(1, True, Path())) <= len(experiment.keys(1, False, Path()))


def test_main_names_missing_data(tmp_path):
    options = [
        "--data",
        str(tmp_path / "nowhere"),
        "--work",
        str(tmp_path),
        "--out",
        str(tmp_path / "out"),
    ]
    with pytest.raises(SystemExit, match=r"tables/deepar.*nowhere.*--data"):
        main(["dklm-tables", *options])
    (tmp_path / "nowhere" / "tables" / "deepar").mkdir(parents=True)
    with pytest.raises(SystemExit, match=r"tables/fcnet") as raised:
        main(["dklm-tables", *options])
    assert "deepar" not in str(raised.value)


def test_times_of_experiments_add_up_in_a_section(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nText.\n")
    for name, seconds in [("a", 60.0), ("b", 30.0), ("a", 90.0)]:
        add_time(tmp_path, True, name, seconds)
    add_time(tmp_path, False, "a", 1e5)
    write_times(page, tmp_path, True, ["b", "a", "absent"])
    text = page.read_text()
    assert text.startswith("# Page\n\nText.\n\n## Times\n") and "3 minutes in total" in text
    assert text.index("| `b` | 30 |") < text.index("| `a` | 150 |") and "absent" not in text


def test_quick_results_are_written_to_the_work_folder(tmp_path):
    out = arguments(["all", "--quick", "--work", str(tmp_path)]).out
    assert tmp_path in out.parents and tmp_path in packed_runs(out, "copula").parents
    assert arguments(["all"]).out == RESULTS / "papers"


# -- a search on a table ---------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A suite of two tasks in one hyperparameter."""
    place = tmp_path / "tables" / "tiny"
    place.mkdir(parents=True)
    axis = {"type": "float", "low": 0.0, "high": 1.0, "log": False}
    facts = {
        "hyperparameters": {"x": axis},
        "metrics": {"error": {"direction": "min"}},
        "tasks": ["a", "b"],
    }
    (place / "space.json").write_text(json.dumps(facts))
    x = np.linspace(0, 1, 21)
    for task, optimum in (("a", 0.3), ("b", 0.35)):
        pd.DataFrame({"x": x, "error": (x - optimum) ** 2}).to_csv(
            place / f"{task}.csv.gz", index=False
        )
    return tmp_path


def test_replay_search_draws_each_row_once(folder):
    runs = {
        (method, seed): replay_search(
            "tiny", "a", method, folder, seed=seed, n_trials=12, n_past=10, n_initial=3
        )
        for method, seed in [("gp", 0), ("random", 0), ("random", 1)]
    }
    table = (np.linspace(0, 1, 21) - 0.3) ** 2
    for run in runs.values():
        assert len(run["loss"]) == 12
        # Rows on both sides of 0.3 have equal losses, so some losses occur twice in the table.
        found, counts = np.unique(np.round(run["loss"], 9), return_counts=True)
        assert all(
            n <= np.isclose(table, loss).sum() for loss, n in zip(found, counts, strict=True)
        )
    assert (
        runs["gp", 0]["loss"][:3] == runs["random", 0]["loss"][:3] != runs["random", 1]["loss"][:3]
    )
    assert min(runs["gp", 0]["loss"]) == pytest.approx(0.0, abs=1e-9)
    assert _suites.scale("tiny", "a", folder) == pytest.approx(
        {"lowest": 0.0, "median": np.median(table)}
    )


# -- tables and figures ----------------------------------------------------------------------------


def suite_rows():
    """Two suites; "good" is always better than "bad", "local" was run on one suite only."""
    rows = []
    for name, task in (("s", "a"), ("s", "b"), ("t", "c")):
        for method, loss in {"good": [0.5, 0.1], "bad": [0.9, 0.9], "local": [0.6, 0.6]}.items():
            if method != "local" or name == "s":
                rows += [
                    {"suite": name, "task": task, "method": method, "seed": seed, "loss": loss}
                    | {"lowest": 0.1, "median": 0.5, "learning": 1.0, "proposing": 0.5}
                    for seed in range(2)
                ]
    return rows


def test_comparison_averages_seeds_of_each_task():
    found = _suites.Comparison(_suites.rows_of_common_methods(suite_rows()))
    assert found.tasks == [("s", "a"), ("s", "b"), ("t", "c")]
    np.testing.assert_allclose(found.regret["good"], [[1.0, 0.0]] * 3)
    assert found.last(2) == {"good": 1.0, "bad": 2.0}
    assert found.difference == critical_difference(2, 3)


def test_suite_tables_and_figure_are_made(tmp_path):
    text = "\n".join(_suites.tables(suite_rows(), [1, 2]))
    assert "## all suites: 3 tasks" in text and "## s: 2 tasks" in text
    assert "| good | 1 | 0 |" in text
    assert text.count("| local |") == 3  # regret and rank in its own suite, and the seconds
    pytest.importorskip("matplotlib")
    _suites.figure(suite_rows(), tmp_path / "suites.png")
    assert (tmp_path / "suites.png").stat().st_size > 1000


def test_tables_in_two_keep_all_seeds_of_main_methods(tmp_path):
    rows = [row for row in suite_rows() if row["method"] != "bad" or row["seed"] < 1]
    main, everyone = _suites.split_slow_methods(rows, ["bad"], 1)
    assert {row["method"] for row in main} == {"good", "local"}
    assert {row["seed"] for row in main} == {0, 1} and {row["seed"] for row in everyone} == {0}
    text = "\n".join(_suites.tables_in_two(rows, ["bad"], 1, [1, 2]))
    first, second = text.split("## All methods, 1 seed")
    assert "### s: 2 tasks" in first and "| bad |" not in first and "| bad | 2 | 2 |" in second
    assert "## All methods" not in "\n".join(_suites.tables_in_two(rows, [], 1, [1, 2]))
    pytest.importorskip("matplotlib")
    _suites.figure_in_two(rows, ["bad"], 1, tmp_path / "suites.png")
    assert (tmp_path / "suites.png").stat().st_size > 1000


def test_distbo_tables_and_figure_are_made(tmp_path):
    rows = [
        {
            "method": "dist-gp",
            "seed": 0,
            "score": [0.9, 0.8],
            "similar": [0.9, 0.95],
            "others": [0.1, 0.2],
        },
        {"method": "gp", "seed": 0, "score": [0.2, 0.6]},
    ]
    text = "\n".join(_distbo.tables(rows))
    assert "| dist-gp | 0.9 | 0.9 |" in text
    assert "| gp | 0.700 |" in text  # gain of dist-gp
    assert "| dist-gp, similar | 0.9 | 0.95 |" in text
    pytest.importorskip("matplotlib")
    _distbo.figure(rows, tmp_path / "distbo.png")
    assert (tmp_path / "distbo.png").stat().st_size > 1000


def test_protein_reports_complete_seeds_only():
    keys = [
        (e, p, m, s)
        for s in (0, 1)
        for e in ("svm", "forest")
        for p in ("x", "y")
        for m in ("a", "b", "c")
    ]
    runs = {(m, e, p, s) for e, p, m, s in keys if m != "c" and (e == "svm" or s == 0)}
    shown = distbo_protein.complete(keys, runs)
    assert {(e, s) for e, _, _, s in shown} == {("svm", 0), ("svm", 1), ("forest", 0)}
    assert {m for _, _, m, _ in shown} == {"a", "b"}
    assert len(shown) == 3 * 2 * 2


def test_copula_tables_show_improvement_and_published_figures():
    common = {"suite": "fcnet", "task": "slice_localization", "seed": 0, "seconds": [1.0, 1.0]}
    rows = [
        common | {"method": "random", "loss": [4.0, 2.0], "random": [4.0, 2.0]},
        common | {"method": "CGP", "loss": [1.0, 3.0], "prior_error": 0.5},
        common | {"method": "gp", "loss": [4.0, 1.0]},
    ]
    assert _copula_tables.improvements(rows, "slice_localization", "CGP").tolist() == [[75.0, 50.0]]
    text = "\n".join(_copula_tables.tables(rows))
    assert (
        "| fcnet | slice_localization | 1 | 0.0 | 62.5 | 25.0 | 58.7 | 53.3 | 21.4 | 1.8 |" in text
    )
    assert "CGP, 1 tasks of fcnet, deepar: at or above the published figure on 1" in text
    assert "more than 20 % on 0 (none); ahead of gp on 1." in text
    assert "| fcnet | slice_localization | 0.5 |" in text


def test_copula_methods_are_compared_over_time_with_all_baselines():
    common = {"suite": "fcnet", "task": "slice_localization", "seed": 0}
    losses = {
        "random": [4.0, 4.0, 4.0],
        "CGP score+time": [4.0, 1.0, 1.0],
        "CRS score+time": [4.0, 3.0, 3.0],
        "CGP": [4.0, 2.0, 2.0],
        "gp": [4.0, 3.5, 3.5],
        "box": [4.0, 2.9, 2.9],
        "GP": [4.0, 0.5, 0.5],
    }
    rows = [common | {"method": m, "loss": v, "seconds": [1.0] * 3} for m, v in losses.items()]
    assert _copula_time.over_time(rows, "slice_localization", "CGP score+time") == 37.5
    early = _copula_time.over_time(rows, "slice_localization", "CGP score+time", "0 s")
    assert early == pytest.approx(75 / 3, abs=0.5)  # 1 of 3 seconds
    text = " ".join(_copula_time.time_tables(rows, [("fcnet", "slice_localization")]))
    lead = "`CGP score+time` is above `CGP` on 1, `gp` on 1, `box` on 1, and above all baselines on"
    assert f"{lead} 1 of 1 tasks" in text
    assert "`CRS score+time` is above `gp` on 1, `box` on 0, and above all baselines on 0" in text
    assert "`CGP score+time` is above `CGP` on 1, `GP` on 0, and above all baselines on 0" in text
    assert "| fcnet | slowest | 33 % |" in text


def test_yogatama_tables_show_ranks_and_time():
    rows = [
        {"method": "random", "order": 0, "dev": [0.5, 0.5], "test": [0.9, 0.5], "cpu": [1.0, 1.0]},
        {"method": "gp", "order": 0, "dev": [0.6, 0.5], "test": [0.7, 0.4], "cpu": [1.0, 3.0]},
    ]
    rows.append(
        rows[0] | {"order": 1}
    )  # an order that the other method has not seen: it does not count
    text = "\n".join(yogatama.tables(rows))
    assert "2 data sets, 1 order" in text
    assert "| random | 1.75 | 1.00 | 3.93 | 3.89 |" in text
    assert "| gp | 4 | 4 |" in text  # total seconds, and their ratio to the first half


# -- data sets in turn, quadratics, landmark features ----------------------------------------------


def rings(n, seed):
    """Three classes along the first column, which every classifier of the ensemble can tell."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((n, 4)), np.arange(n) % 3
    X[:, 0] = (y + 0.8 * rng.random(n)) / 3
    X[:, 1] = np.where(y == 1, 0.9, 0.1)
    return X, y


@pytest.mark.parametrize("name", _ensemble.CLASSIFIERS)
def test_each_classifier_of_the_ensemble_learns(name):
    X, y = rings(90, 0)
    other, truth = rings(60, 1)
    [params] = Space.parse(_ensemble.SPACE).sample(1, np.random.default_rng(3))
    params |= {f"weight_{each}": float(each == name) for each in _ensemble.CLASSIFIERS}
    params |= {"logistic_l1": 0.01, "logistic_l2": 0.01, "svm_l2": 0.1, "svm_max_iter": 2000}
    params |= {"svm_degree": 3, "logistic_max_iter": 20}
    [votes] = _ensemble.ensemble_votes(params, X, y, [other], 3)
    assert np.mean(votes == truth) > 0.6  # chance is a third


def test_ensemble_space_is_that_of_table_4():
    assert len(_ensemble.SPACE) == 30
    assert sum(name.startswith("weight_") for name in _ensemble.SPACE) == 7


def test_methods_learn_from_their_own_earlier_data_sets():
    """The best setting is the same for all: later data sets start with it."""

    def arrival(number):
        def scores(params):
            return 1 - abs(params["x"] - 0.3), 0.5 + 0.1 * number

        return _stream.Arrival(f"{number}", profile(np.eye(12)[:, :3], [0, 1] * 6), scores)

    space = {"x": uniform(0, 1)}
    row = _stream.tune_in_turn("surface MKL", 0, [arrival(n) for n in range(4)], space, 3)
    assert row["dev"][-1] > 0.95 and row["test"] == pytest.approx([0.5, 0.6, 0.7, 0.8])
    assert len(row["cpu"]) == 4 and min(row["cpu"]) > 0


def test_largest_complete_size_is_reported():
    rows = [{"method": m, "sets": n} for n in (2, 4) for m in "ab"] + [{"method": "a", "sets": 9}]
    assert _stream.largest_size(rows) == [{"method": m, "sets": 4} for m in "ab"]


def test_minimum_of_quadratics():
    grid = np.linspace(-ablr_quadratics.HALF_WIDTH, ablr_quadratics.HALF_WIDTH, 21)
    points = [{"x0": a, "x1": b, "x2": c} for a in grid for b in grid for c in grid]
    for function in (
        ablr_quadratics.Quadratic(2.0, 3.0, 1.0),
        ablr_quadratics.Quadratic(0.1, 9, 2),
    ):
        assert min(map(function, points)) == pytest.approx(function.minimum)
    tasks = ablr_quadratics.past_tasks(3, 0)
    assert len(tasks) == ablr_quadratics.N_TASKS - 1 and "3" not in [task.id for task in tasks]


def test_landmark_features_of_separate_groups_are_recognized():
    rng = np.random.default_rng(0)
    owner = [0] * 30 + [1] * 30
    apart = rng.standard_normal((60, 3)) + 10 * np.array(owner)[:, None]
    assert dklm_landmarks.share_of_own_task(apart, owner) == 1.0
    assert dklm_landmarks.share_of_own_task(rng.standard_normal((60, 3)), owner) < 0.8


def test_seed_is_that_of_surrogate_and_encoder():
    seeded = with_seed(DistGP(DistributionEncoder()), 7)
    assert (seeded.random_state, seeded.encoder.random_state) == (7, 7)
    assert with_seed("random", 7).get_params() == {}


def test_starter_tables_are_named_by_their_data():
    assert data_name("starter-SVC-kr-vs-k-zero-one_vs_draw-scaled-c631312d", "SVC") == (
        "kr-vs-k-zero-one_vs_draw"
    )
