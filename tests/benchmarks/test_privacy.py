"""The attacks find everything in plain hashes, and nothing in what is stored or shared."""

import numpy as np
import pytest

from benchmarks import leaks, privacy


def test_guesses_find_plain_hashes_only(tmp_path):
    guesses = privacy.product(range(20), range(30))
    rows = guesses[::7]
    y = np.arange(len(rows)) % 2
    plain, export, folder = privacy.views(tmp_path, rows, y, ["ordered_fingerprint"])
    assert privacy.guess_rows(plain, guesses) == len(rows) == len(folder)
    assert privacy.guess_rows(export, guesses) == privacy.guess_rows(folder, guesses) == 0


def test_common_rows_and_labels_are_found_in_plain_hashes_only():
    assert privacy.attack_common_rows().endswith("| 200 | 0 | 0 |")
    assert privacy.attack_labels().endswith("| 1 | 0 | 0 |")


def test_inversion_of_a_tiny_sketch_finds_rows():
    """Otherwise the attack would prove nothing."""
    X = np.linspace(-1, 2, 10)[:, None] ** 3
    y = np.arange(10) % 2
    known = privacy.profile(X, y).sketch
    found = privacy.invert_sketch(known, y, 10, 1)
    assert privacy.count_recovered(found, privacy.standardize(X)) >= 5


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("KFold(5)", "caught"),
        ("KFold(5, shuffle=True), StandardScaler in each fold", "caught"),
        ("KFold(2)", "**not caught**"),
        ("TimeSeriesSplit(3)", "honest"),
    ],
)
def test_judge_says_which_loops_are_caught(name, answer):
    assert leaks.judge(dict(leaks.hand_written())[name]) == answer
