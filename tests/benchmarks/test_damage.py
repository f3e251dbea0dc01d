"""The trials of damaged and disguised files, with few of each."""

import pickle

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


def test_no_trap_is_run_by_the_archive_but_each_by_pickle(tmp_path, monkeypatch):
    monkeypatch.setattr(damage, "DISGUISED", 5)
    n, wrong = damage.disguise_files(tmp_path)
    assert n >= 50 and wrong == 0
    for number, trap in enumerate(damage.make_traps(tmp_path / "marker")):
        pickle.loads(pickle.dumps(trap))
        [made] = tmp_path.glob("marker*")
        made.rename(tmp_path / f"made-{number}")
