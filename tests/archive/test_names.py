"""Names of searches: stored, shown and left out of exports."""

import zipfile

import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from sktransfer import Archive, Task, TransferOptimizer, TransferSearchCV

IRIS, WINE = load_iris(return_X_y=True), load_wine(return_X_y=True)
SPACE = {"C": loguniform(1e-2, 1e2)}


def search(archive, **params):
    params = {"n_iter": 3, "cv": 2, "random_state": 0, "surrogate": "warm-start"} | params
    return TransferSearchCV(SVC(), SPACE, archive=archive, **params)


def test_name_of_a_search_is_shown_by_the_next_one(tmp_path, capsys):
    first = search(tmp_path, name="churn 2026-11").fit(*IRIS)
    assert Archive(tmp_path)[first.task_id_].name == "churn 2026-11"
    second = search(tmp_path, verbose=1).fit(*WINE)
    label = f"{first.task_id_} (churn 2026-11)"
    [source] = second.source_tasks_
    assert source["name"] == "churn 2026-11" and source["n_used"] >= 1
    assert second.cv_results_["origin"][0] == f"task {label}"
    assert f"Learning from 1 past search, most from {label}." in capsys.readouterr().out
    assert "Most similar: churn 2026-11 (similarity" in second.explain()
    suggestion = second.suggest(WINE[0][::2] * 2 + 1, WINE[1][::2])[0]
    assert "churn 2026-11" in suggestion.names
    assert len(suggestion.names) == len(suggestion.sources)


def test_search_without_a_name_is_named_by_its_id(tmp_path):
    first = search(tmp_path).fit(*IRIS)
    second = search(tmp_path).fit(*WINE)
    assert second.cv_results_["origin"][0] == f"task {first.task_id_}"
    assert second.source_tasks_[0]["name"] == ""


def test_name_survives_index_and_journal(tmp_path):
    archive = Archive(tmp_path)
    for number in range(20):  # enough for an index
        task = Task.from_trials(SPACE, [({"C": 1.0}, 0.5)], id=f"t{number}", name=f"n{number}")
        archive.append(task)
    archive.select()
    names = {task.id: task.name for task in archive.select().used}
    assert names["t7"] == "n7"
    journal = archive.journals.start(Task.from_trials(SPACE, [], id="killed", name="mine"))
    journal.add(Task.from_trials(SPACE, [({"C": 1.0}, 0.5)]).trials[0], [])
    journal.sync()
    assert archive["killed"].name == "mine"


def test_added_search_and_optimizer_have_names(tmp_path):
    archive = Archive(tmp_path)
    fitted = GridSearchCV(SVC(), {"C": [1, 10]}).fit(*IRIS)
    assert archive[archive.add(fitted, *IRIS, name="old grid")].name == "old grid"
    assert archive[archive.add({"C": [1], "score": [0.5]}, name="table")].name == "table"
    optimizer = TransferOptimizer(SPACE)
    optimizer.tell({"C": 1.0}, 0.5)
    assert optimizer.to_task(name="asked").name == "asked"


@pytest.mark.parametrize("names", [True, False])
def test_export_leaves_names_out(tmp_path, names):
    archive = Archive(tmp_path / "a")
    archive.append(Task.from_trials({"C": [1]}, [({"C": 1}, 0.5)], id="one", name="secret plan"))
    archive.export(tmp_path / "a.zip", names=names)
    with zipfile.ZipFile(tmp_path / "a.zip") as file:
        content = file.read("tasks/one.joblib")
    assert (b"secret plan" in content) is names
    other = Archive(tmp_path / "b")
    other.import_(tmp_path / "a.zip")
    assert other["one"].name == ("secret plan" if names else "")


def test_export_does_not_replace_a_file(tmp_path):
    archive = Archive(tmp_path / "a")
    archive.append(Task.from_trials({"C": [1]}, [({"C": 1}, 0.5)]))
    (tmp_path / "a.zip").write_text("mine")
    expected = r"The file exists\. Pass overwrite=True to replace it"
    with pytest.raises(FileExistsError, match=expected):
        archive.export(tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_text() == "mine"
    assert archive.export(tmp_path / "a.zip", overwrite=True) == 1


def test_name_must_be_text(tmp_path):
    with pytest.raises(ValueError, match="'name' parameter"):
        search(tmp_path, name=3).fit(*IRIS)
