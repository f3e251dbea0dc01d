"""One page of all results, from the page of each experiment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path


def gather(folder: Path, names: Sequence[str]) -> Path:
    """Write ``FOLDER.md`` beside the folder, of the ``NAME.md`` in it; headings go one level down.

    Links to files beside a page, such as ``(copula.png)``, are made to lead into the folder.
    """
    page = folder.parent / f"{folder.name}.md"
    there = [name for name in names if (folder / f"{name}.md").exists()]
    lines = ["# The papers' own experiments", ""]
    lines += [
        "Gathered by `python -m benchmarks.papers page` from the page of each experiment.",
        "",
    ]
    left = [f"`{name}`" for name in names if name not in there]
    if left:
        lines += [f"Not run yet: {', '.join(left)}.", ""]
    for name in there:
        text = (folder / f"{name}.md").read_text().strip()
        text = re.sub(r"^#", "##", text, flags=re.MULTILINE)
        lines += [re.sub(rf"\(({re.escape(name)}\.\w+)\)", rf"({folder.name}/\1)", text), ""]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(lines))
    return page
