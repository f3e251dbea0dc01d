"""The command line: ``python -m sktransfer archive ...``."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import sktransfer
from sktransfer import _cli as cli
from sktransfer import profile
from sktransfer.archive import Archive
from sktransfer.task import Task

ROOT = Path(__file__).parents[1]


@pytest.fixture
def archive(tmp_path):
    archive = Archive(tmp_path / "past")
    for id in ("one", "two"):
        trials = [({"C": 1.0}, 0.875), ({"C": 10.0}, float("nan"))]
        archive.append(
            Task.from_trials({"C": [1.0, 10.0]}, trials, id=id, created="2025-01-02T03:04:05+00:00")
        )
    return archive


@pytest.fixture
def run(archive, capsys):
    """Run a command on `archive` and return its exit code, stdout and stderr."""

    def run(*arguments, on=archive.path):
        code = cli.main(["archive", arguments[0], "--archive", str(on), *map(str, arguments[1:])])
        return code, *capsys.readouterr()

    return run


def run_in_process(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "sktransfer", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_program_prints_results_and_one_line_errors(archive):
    done = run_in_process("archive", "ls", "--archive", archive.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["one", "two"]
    assert "best 0.875" in done.stdout
    done = run_in_process("archive", "show", "three", "--archive", archive.path)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr.startswith("error: There is no task 'three'") and "Traceback" not in done.stderr
    )
    done = run_in_process("archive", "unknown-command")
    assert done.returncode == 2 and "invalid choice" in done.stderr


def test_ls_prints_records_as_json(run):
    code, out, _ = run("ls", "--json")
    assert code == 0
    assert json.loads(out)[0] == {
        "id": "one",
        "name": "",
        "created": "2025-01-02T03:04:05+00:00",
        "estimator": None,
        "n_rows": None,
        "n_features": None,
        "metric": "score",
        "n_trials": 2,
        "best": 0.875,
        "complete": True,
    }


def test_show_prints_one_record(run):
    code, out, _ = run("show", "one")
    assert code == 0 and "n_failed    1" in out and "C: 1.0" in out
    shown = json.loads(run("show", "one", "--json")[1])
    assert shown["trials"][1]["score"] is None and shown["parameters"] == ["C"]


def test_verify_reports_and_repairs_bad_files(run, archive):
    assert run("verify") == (0, "No problems found.\n", "")
    bad = archive.path / "tasks" / "bad.joblib"
    bad.write_bytes(b"nonsense")
    code, out, _ = run("verify")
    assert code == 1 and out.startswith(f"{bad}: it is not") and bad.exists()
    (finding,) = json.loads(run("verify", "--repair", "--json")[1])
    assert Path(finding["moved"]).read_bytes() == b"nonsense"
    assert run("verify")[0] == 0


def test_ls_warns_of_bad_file_in_one_line(run, archive):
    (archive.path / "tasks" / "bad.joblib").write_bytes(b"nonsense")
    code, out, err = run("ls")
    assert code == 0 and len(out.splitlines()) == 2
    assert err.startswith("warning: Skipped a file") and len(err.splitlines()) == 1


def test_merge_export_and_import_count_records(run, archive, tmp_path):
    file, other = tmp_path / "all.zip", tmp_path / "other"
    assert run("export", file, "--no-names")[0] == 0
    assert run("import", file, on=other)[1] == "2 added, 0 known, 0 refused\n"
    assert json.loads(run("merge", other, "--json")[1]) == {
        "added": [],
        "known": ["one", "two"],
        "refused": [],
    }
    (archive.path / "tasks" / "bad.joblib").write_bytes(b"nonsense")
    code, out, err = run("merge", archive.path, on=other)
    assert code == 1 and "1 refused" in out and "bad.joblib" in err


def test_export_passes_options_to_archive(run, monkeypatch, tmp_path):
    options = {}
    monkeypatch.setattr(Archive, "export", lambda self, file, **parts: options.update(parts) or 0)
    run("export", tmp_path / "a.zip", "--samples", "--no-times")
    parts = {"samples": True, "names": True, "times": False}
    assert options == parts | {"key": None, "overwrite": False}
    (tmp_path / "secret").write_text("between us\n")
    run("export", tmp_path / "a.zip", "--key-file", tmp_path / "secret")
    assert options["key"] == "between us"


def test_stats_counts_records_trials_and_formats(run):
    counts = json.loads(run("stats", "--json")[1])
    assert (counts["records"], counts["trials"], counts["formats"]) == (2, 4, {"1": 2})
    assert "records     2" in run("stats")[1]


def test_prune_lists_or_removes_records(run, archive):
    code, out, _ = run("prune", "--max-records", 1, "--dry-run")
    assert (code, out) == (0, "one\n1 would be removed\n") and len(archive) == 2
    assert json.loads(run("prune", "--older-than", 30, "--json")[1])["removed"] == ["one", "two"]
    assert len(archive) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "../one"), "There is no task"),
        (("merge", "nowhere-at-all"), "There is no archive to merge from"),
        (("import", "nowhere.zip"), "nowhere.zip"),
        (("import", __file__), "not an exported archive"),
        (("prune",), "Pass at least one of --older-than, --keep-newest, --max-records, --origin."),
        (("prune", "--max-records", "-1"), "max_records must be"),
        (("export", os.curdir), "is a directory"),
    ],
)
def test_usage_error_is_one_line_and_changes_nothing(run, archive, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and message in err and len(err.splitlines()) == 1
    assert len(archive) == 2


def test_file_as_archive_is_usage_error(run, tmp_path):
    (tmp_path / "file").write_text("x")
    for command in ("ls", "stats", "verify"):
        code, _, err = run(command, on=tmp_path / "file")
        assert code == 2 and "An archive is a directory, but this is a file" in err


def test_missing_archive_is_warned_of_and_not_created(run, tmp_path):
    warning = f"warning: There is no archive at {tmp_path / 'new'} yet.\n"
    assert run("ls", on=tmp_path / "new") == (0, "The archive is empty.\n", warning)
    assert not (tmp_path / "new").exists()


def test_control_characters_of_records_are_escaped(run, tmp_path):
    task = Task.from_trials({"C": [1]}, [({"C": 1}, 0.9)], id="a")
    Archive(tmp_path).append(replace(task, name="\x1b[2J2020\nfake  2020  SVC  3 trials  best 1"))
    code, out, _ = run("ls", on=tmp_path)
    assert code == 0 and "\x1b" not in out and out.count("\n") == 1
    assert "\\x1b[2J2020\\nfake" in out


def test_characters_outside_terminal_encoding_are_escaped(archive):
    archive.append(Task.from_trials({"C": [1]}, [({"C": 1}, 0.5)], id="three", metrics=["Größe"]))
    command = [
        sys.executable,
        "-m",
        "sktransfer",
        "archive",
        "show",
        "three",
        "--archive",
        str(archive.path),
    ]
    settings = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=settings, cwd=ROOT)
    assert done.returncode == 0 and r"Gr\xf6\xdfe" in done.stdout


def test_prune_accepts_age_before_first_date(run):
    code, out, _ = run("prune", "--older-than", "999999")
    assert code == 0 and "Traceback" not in out


# -- names, filters, and records one by one --------------------------------------------------------


@pytest.fixture
def named(archive):
    """An archive with one more search, which has a name, data and an estimator."""
    X, y = load_iris(return_X_y=True)
    trials = [({"C": 1.0}, 0.875), ({"C": 10.0}, 0.5)]
    task = Task.from_trials(
        {"C": [1.0, 10.0]},
        trials,
        profile(X, y),
        estimator=SVC(),
        id="three",
        name="churn 2026-11",
        metrics=("accuracy",),
        complete=False,
    )
    archive.append(task)
    return archive


def test_ls_shows_name_size_metric_and_interruption(named, run):
    _, out, _ = run("ls")
    lines = dict(line.split("  ", 1) for line in out.splitlines())
    assert lines["one"] == "-  -  ? × ?  score  2 trials  best 0.875"
    expected = "churn 2026-11  SVC  150 × 4  accuracy  2 trials  best 0.875  interrupted"
    assert lines["three"] == expected
    rows = json.loads(run("ls", "--json")[1])
    assert [row["name"] for row in rows] == ["", "churn 2026-11", ""]
    assert [row["complete"] for row in rows] == [True, False, True]


@pytest.mark.parametrize("filter", [["--name", "CHURN"], ["--estimator", "svc"]])
def test_ls_filters(named, run, filter):
    code, out, _ = run("ls", *filter)
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == ["three"]
    assert run("ls", filter[0], "nothing")[1] == "No record matches.\n"


def test_show_has_the_name(named, run):
    assert "name        churn 2026-11\n" in run("show", "three")[1]


def test_rm_removes_records(archive, run):
    assert run("rm", "one", "two") == (0, "2 removed\n", "")
    assert len(archive) == 0
    code, _, err = run("rm", "one")
    assert code == 2 and err.startswith("error: There is no task 'one'")


def test_path_is_the_directory(archive, run, capsys):
    assert run("path") == (0, f"{archive.path}\n", "")
    assert cli.main(["archive", "path"]) == 0
    assert capsys.readouterr().out == f"{Archive().path}\n"


def test_add_reads_a_csv_file(archive, run, tmp_path):
    file = tmp_path / "trials.csv"
    file.write_text("C,kernel,auc\n1,rbf,0.9\n0.1,poly,\n")
    options = ["--estimator", "sklearn.svm.SVC", "--score", "auc", "--name", "by hand"]
    code, out, _ = run("add", file, *options, "--metric", "roc_auc")
    assert code == 0
    task = archive[out.strip()]
    assert task.name == "by hand" and task.metrics == ("roc_auc",)
    assert [trial.params for trial in task.trials] == [
        {"C": 1, "kernel": "rbf"},
        {"C": 0.1, "kernel": "poly"},
    ]
    assert [trial.status for trial in task.trials] == ["ok", "failed"]
    assert task.space["canonical"] == {"C": "SVC.C", "kernel": "SVC.kernel"}
    code, _, err = run("add", file, "--estimator", "sklearn.svm.Nothing", "--score", "auc")
    assert code == 2 and err.startswith("error: There is no estimator 'sklearn.svm.Nothing'")


def test_export_replaces_a_file_only_if_told(archive, run, tmp_path):
    file = tmp_path / "a.zip"
    file.write_text("mine")
    code, _, err = run("export", file)
    assert code == 2 and "The file exists. Pass overwrite=True to replace it" in err
    assert file.read_text() == "mine"
    assert run("export", file, "--overwrite")[0] == 0
    assert file.read_bytes()[:2] == b"PK"


def test_version_is_printed(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"sktransfer {sktransfer.__version__}\n"


def test_console_script_is_declared():
    text = (ROOT / "setup.cfg").read_text()
    assert "console_scripts =\n    sktransfer = sktransfer._cli:main\n" in text
