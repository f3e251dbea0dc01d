"""The trials of damaged and disguised files, with few of each."""

import pytest

from benchmarks import damage


@pytest.mark.parametrize(
    "trial",
    [
        damage.mutate_bytes,
        damage.name_members,
        damage.repair_without_reading,
        damage.repair_cut_journals,
        damage.prune_elsewhere,
    ],
)
def test_nothing_goes_wrong(trial, tmp_path, monkeypatch):
    monkeypatch.setattr(damage, "N_MUTATIONS", 200)
    n, wrong = trial(tmp_path)
    assert n > 0 and wrong == 0


def test_failing_operations_fail_in_the_archive_only(tmp_path):
    fail = damage._fail_below(tmp_path / "past", len, OSError(5, "Input/output error"))
    assert fail("elsewhere") == 9
    with pytest.raises(OSError, match="Input"):
        fail(str(tmp_path / "past" / "tasks"))
