"""The code of the documentation runs."""

import os
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ["index", "getting_started", "user_guide", "inspection", "extending"]


def code_of(page):
    return re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
def test_code_of_a_page_runs(name, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.delenv("SKTRANSFER_STARTER")  # a user has the starter archive
    monkeypatch.chdir(tmp_path)
    blocks = code_of((DOCS / f"{name}.md").read_text(encoding="utf-8"))
    assert blocks
    namespace = {}
    for block in blocks:
        exec(compile(block, f"{name}.md", "exec"), namespace)
    pictures = re.findall(r"savefig\(\"(.*?)\"\)", "".join(blocks))
    assert all((tmp_path / picture).stat().st_size > 1000 for picture in pictures)
    assert pictures or name not in {"getting_started", "inspection"}
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


def test_gallery_has_twelve_examples():
    assert len(GALLERY) >= 12
