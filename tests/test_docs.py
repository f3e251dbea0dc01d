"""The code of the documentation runs, and its links resolve."""

import os
import re
import runpy
from pathlib import Path

import pytest
import sklearn
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.fixes import parse_version

from sktransfer import Archive, Task, TransferSearchCV
from sktransfer.surrogates import GP

DOCS = Path(__file__).parents[1] / "docs"
COMPLETE = ["index", "getting_started", "user_guide", "parameters", "inspection", "extending"]
COMPLETE += ["racing", "parallel"]
"""Pages whose code runs as it is. The code of the others uses names that a reader knows."""


def code_of(page):
    return re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def code_blocks(path):
    return code_of(path.read_text(encoding="utf-8"))


def known_names(folder):
    """What a reader has: data, an estimator, a space, and files to import."""
    X, y = load_iris(return_X_y=True)
    space = {"C": loguniform(1e-2, 1e2)}
    other, task = Archive(folder / "other"), Task.from_trials({"C": [1, 2]}, [({"C": 1}, 0.9)])
    other.append(task)
    other.export(folder / "from-you.zip")
    (folder / "trials.csv").write_text("C,score\n1.0,0.9\n10.0,0.8\n")
    archive = Archive()
    return {
        "X": X,
        "y": y,
        "SVC": SVC,
        "make_pipeline": make_pipeline,
        "StandardScaler": StandardScaler,
        "TransferSearchCV": TransferSearchCV,
        "space": space,
        "archive": archive,
        "task_or_id": archive.append(task),
        "fitted_grid_search": GridSearchCV(SVC(), {"C": [1, 10]}).fit(X, y),
        "MySurrogate": GP,
    }


PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize(
    "path", [path for path in PAGES if code_blocks(path)], ids=lambda p: p.stem
)
def test_code_of_a_page_runs(path, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    if path.stem == "parameters" and parse_version(sklearn.__version__) < parse_version("1.9"):
        pytest.skip("callbacks need scikit-learn 1.9")
    monkeypatch.delenv("SKTRANSFER_STARTER")  # a user has the starter archive
    monkeypatch.chdir(tmp_path)
    namespace = {} if path.stem in COMPLETE else known_names(tmp_path)
    blocks = code_blocks(path)
    for block in blocks:
        exec(compile(block, path.name, "exec"), namespace)
    pictures = re.findall(r"savefig\(\"(.*?)\"\)", "".join(blocks))
    assert all((tmp_path / picture).stat().st_size > 1000 for picture in pictures)
    assert pictures or path.stem not in {"getting_started", "inspection"}
    if path.stem == "parameters":  # the callback ended the search
        assert len(namespace["search"].cv_results_["params"]) < 6
    import matplotlib.pyplot as plt

    plt.close("all")


WRITTEN = [path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts]


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_links_to_other_pages_resolve(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    documents = re.findall(r"\{doc\}`([^`]+)`", text)
    assert [link for link in links if not (path.parent / link).exists()] == []
    known = {os.path.splitext(each.name)[0] for each in DOCS.glob("*.md")} | {"gallery/index"}
    assert set(documents) <= known


GALLERY = sorted((DOCS.parent / "examples" / "gallery").glob("plot_*.py"))


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.name)
def test_example_has_a_title_and_a_picture(path):
    code = path.read_text(encoding="utf-8")
    compile(code, path.name, "exec")
    _, title, line, *_ = code.splitlines()
    assert line == "=" * len(title)
    assert "Display.from_" in code or "plt.subplots" in code


def test_no_page_has_a_name_of_sphinx():
    assert not {"search", "genindex", "modindex"} & {path.stem for path in DOCS.glob("*.md")}


def test_gallery_has_twelve_examples():
    assert len(GALLERY) >= 12


def test_figure_of_the_readme_shows_the_reported_results():
    pytest.importorskip("matplotlib")
    program = runpy.run_path(str(DOCS.parent / "examples" / "readme_pictures.py"))
    page = (DOCS / "results" / "first_trials.md").read_text(encoding="utf-8")
    for section in ("Classification", "Regression"):
        trials, means = program["read_regrets"](page, section)
        assert trials[0] == 1 and set(program["SEARCHES"]) <= means.keys()
        assert all(len(means[search]) == len(trials) for search in program["SEARCHES"])


def test_link_checker_finds_broken_pages_and_headings(tmp_path):
    program = runpy.run_path(str(DOCS / "check_links.py"))
    links = ["b.html", "b.html#part", "#top", "https://example.org", "c.html", "b.html#no", "../a"]
    (tmp_path / "a.html").write_text("".join(f'<a href="{link}">x</a>' for link in links))
    (tmp_path / "b.html").write_text('<h2 id="part">Part</h2><img src="missing.png">')
    broken, n_internal, n_external = program["find_broken_links"](tmp_path)
    assert broken == ["a.html: c.html", "a.html: b.html#no", "a.html: ../a", "b.html: missing.png"]
    assert (n_internal, n_external) == (7, 1)
