"""Figures that the claims and the discussions quote are those of the pages."""

import re

import pytest

from benchmarks.papers.__main__ import EXPERIMENTS
from benchmarks.runner import RESULTS

FOLDER = RESULTS / "papers"
NUMBER = r"\d+\.\d+"
PAIR = re.compile(rf"({NUMBER}) ± ({NUMBER})")
LONE = re.compile(rf"(?<![\w.])({NUMBER})(?![\w.])")
PREFIXES = {
    "distBO": "distbo-",
    "DKLM": "dklm-",
    "Yogatama": "yogatama",
    "ABLR": "ablr",
    "Copula": "copula",
}
"""First word of a table of claims -> names of its experiments."""


def printed(names):
    """What the programs wrote on the pages, without the discussions written by hand."""
    pages = [(FOLDER / f"{name}.md").read_text() for name in names]
    return "\n".join(re.sub(r"(?s)## Discussion.*?\n!\[", "![", page, count=1) for page in pages)


def absent(text, page):
    """Figures with a decimal point that do not occur on the page, rounded as they are quoted."""
    pairs, lone = PAIR.findall(page), {float(each) for each in LONE.findall(page)}

    def equal(quoted, there):
        digits = len(quoted.partition(".")[2])
        return abs(float(there) - float(quoted)) < 0.501 * 10**-digits

    found = [
        f"{value} ± {half}"
        for value, half in PAIR.findall(text)
        if not any(equal(value, v) and equal(half, h) for v, h in pairs)
    ]
    rest = LONE.findall(PAIR.sub("", text))
    return found + [value for value in rest if not any(equal(value, each) for each in lone)]


def claims():
    """(paper, claim, verdict, our figures) of each row."""
    paper = ""
    for line in (FOLDER / "claims.md").read_text().partition("## What was tried")[0].splitlines():
        if line.startswith("**"):
            paper = line.split("**")[1].split()[0]
        elif paper and line.startswith("| ") and not line.startswith("| claim"):
            claim, verdict, *figures = (cell.strip() for cell in line.strip("|").split("|"))
            yield paper, claim, verdict, " ".join(figures)


def test_absent_figures_are_found():
    page = "| a | 0.123 ± 0.045 | -1.26 |"
    assert absent("−0.12 ± 0.05, then 1.3 and 2 of 3", page) == []
    assert absent("0.12 ± 0.06, then 1.2", page) == ["0.12 ± 0.06", "1.2"]


@pytest.mark.parametrize("paper", PREFIXES)
def test_claims_quote_figures_of_the_pages(paper):
    page = printed([name for name in EXPERIMENTS if name.startswith(PREFIXES[paper])])
    found = {claim: absent(figures, page) for name, claim, _, figures in claims() if name == paper}
    assert {claim: left for claim, left in found.items() if left} == {}


def test_claims_that_are_not_reproduced_refer_to_what_was_tried():
    tried = (FOLDER / "claims.md").read_text().partition("## What was tried")[2]
    notes = set(re.findall(r"(?m)^(\d+)\. \*\*", tried))
    assert notes == {str(number) for number in range(1, len(notes) + 1)}
    for _, claim, verdict, figures in claims():
        mentioned = set(
            re.findall(r"\d+", " ".join(re.findall(r"notes? [\d, and]+", figures + verdict)))
        )
        assert mentioned <= notes, claim
        if verdict.startswith(("not reproduced", "contradicted")):
            assert mentioned, claim
