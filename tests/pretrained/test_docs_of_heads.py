"""docs/pretrained.md lists the heads of the shipped models."""

import re
from pathlib import Path

import pytest

from sktransfer.pretrained import load_model

PAGE = Path(__file__).parents[2] / "docs" / "pretrained.md"


def heads_of_page(kind):
    """Estimators in the row of a kind of the table "estimators with a head"."""
    table = PAGE.read_text(encoding="utf-8").split("| kind | estimators with a head |")[1]
    [row] = re.findall(rf"^\| {kind} \| ([^|]*)\|", table, re.MULTILINE)
    return re.findall(r"`(\w+)`", row)


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_page_lists_the_heads_of_the_shipped_model(kind):
    listed = heads_of_page(kind)
    assert sorted(listed) == sorted(load_model(kind).owners)
    assert len(set(listed)) == len(listed)
