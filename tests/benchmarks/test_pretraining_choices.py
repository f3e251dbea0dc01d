"""The page that compares ways to train the pretrained models."""

import pytest

from benchmarks.pretraining.choose import _difference
from benchmarks.pretraining.scaling import draw_scaling


def row(variant, kind="classification", regret=0.5):
    cells = [
        {"cell": ["svc", data], "first": [regret, regret, regret + k / 10], "unexplained": 0.4}
        for k, data in enumerate("abc")
    ]
    return {"kind": kind, "variant": variant, "split": "report", "cells": cells}


@pytest.mark.parametrize(("regret", "expected"), [(0.7, "+0.200 ± 0.000"), (0.4, "-0.100 ± 0.000")])
def test_difference_is_that_of_the_lower_confidence_bound_in_families(regret, expected):
    family = {"a": "one", "b": "one", "c": "another"}
    assert _difference(row("larger", regret=regret), row("base"), family) == expected


def test_scaling_is_drawn_if_enough_numbers_of_data_sets_were_run(tmp_path):
    file, variants = tmp_path / "scaling.png", ["125 data sets", "250 data sets", "base"]
    kinds = "classification", "regression"
    assert not draw_scaling([row("base", kind) for kind in kinds], file)
    assert not file.exists()
    assert draw_scaling([row(v, kind) for v in variants for kind in kinds], file)
    assert file.stat().st_size > 1000
