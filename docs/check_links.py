"""Check the internal links of the built site: python docs/check_links.py docs/_build/html

Every link to a page, a file, a picture or a heading of the site must resolve. Links to other sites
are counted, but not opened.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places in it that a link can lead to.

    Parameters
    ----------
    path : Path
        The HTML file.
    """

    def __init__(self, path: Path):
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.anchors = {"", "top"}  # both lead to the top of every page
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def find_broken_links(root: Path) -> tuple[list[str], int, int]:
    """Broken links as "page: link", and the numbers of internal and external links."""
    root = root.resolve()
    pages = {path: Page(path) for path in sorted(root.rglob("*.html"))}
    broken, n_internal, n_external = [], 0, 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                n_external += 1
                continue
            n_internal += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            is_known = target.is_file() and target.is_relative_to(root)
            anchors = pages[target].anchors if target in pages else {parts.fragment}
            if not is_known or unquote(parts.fragment) not in anchors:
                broken.append(f"{path.relative_to(root)}: {link}")
    return broken, n_internal, n_external


if __name__ == "__main__":
    broken, n_internal, n_external = find_broken_links(Path(sys.argv[1]))
    print(*broken, sep="\n", end="\n" * bool(broken))
    print(f"{n_internal} internal links, {len(broken)} broken; {n_external} external links")
    sys.exit(bool(broken))
