"""The attacks find everything in plain hashes, and nothing in what is stored or shared."""

import numpy as np
import pytest

from benchmarks import leaks, privacy


def test_guesses_find_plain_hashes_only(tmp_path):
    guesses = privacy.product(range(20), range(30))
    table = privacy.Table(guesses[::7], [lambda: guesses[:300], lambda: guesses[300:]], 600)
    y = np.arange(len(table.rows)) % 2
    seen = privacy.views(tmp_path, table.rows, y, ["ordered_fingerprint"])
    assert len(seen[2]) == len(table.rows)
    assert privacy.guess_rows(seen, table) == [len(table.rows), 0, 0]


def test_common_rows_labels_and_members_are_found_in_plain_hashes_only():
    assert privacy.attack_common_rows().endswith("| 200 | 0 | 0 |")
    assert privacy.attack_labels().endswith("| 500 of 500 | 0 of 500 | 0 of 500 |")
    found = privacy.attack_memberships().split(" | ")
    assert found[1].startswith("200 of 200") and found[2].startswith("0 of 200 (others: 0)")
    assert found[3].startswith("0 of 200 (others: 0)")


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
