"""One page with all results, made from the page of each experiment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.runner import format_page

CLAIMS = ("claims",)  # written by hand, on top of the page


def gather(folder: Path, names: Sequence[str]) -> Path:
    """Write ``FOLDER.md`` beside the folder from the ``NAME.md`` in it, and return its path.

    The claims of the papers come first, if ``claims.md`` exists. Headings move one level down.
    Links are relative to the new page: ``(copula.png)`` becomes ``(papers/copula.png)``, and
    ``(../runs/...)`` becomes ``(runs/...)``.
    """
    page = folder.parent / f"{folder.name}.md"
    there = [name for name in names if (folder / f"{name}.md").exists()]
    lines = ["# Experiments of the papers", ""]
    lines += [
        "Collected by `python -m benchmarks.papers page` from the page of each experiment.",
        "",
    ]
    left = [f"`{name}`" for name in names if name not in there]
    if left:
        lines += [f"Not run yet: {', '.join(left)}.", ""]
    for name in [*CLAIMS, *there] if (folder / f"{CLAIMS[0]}.md").exists() else there:
        text = (folder / f"{name}.md").read_text().strip()
        text = re.sub(r"^#", "##", text, flags=re.MULTILINE)
        text = re.sub(r"\]\(([\w-]+\.\w+)\)", rf"]({folder.name}/\1)", text)
        lines += [text.replace("](../", "]("), ""]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(format_page(lines))
    return page
