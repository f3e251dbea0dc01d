"""The key of an archive: made once, private, and needed to compare rows or resume a search."""

import multiprocessing
import os
import stat
import sys

import numpy as np
import pytest

from sktransfer.archive import Archive, ArchiveKey, RecordError
from sktransfer.archive._key import HASHES, has_open_hashes
from sktransfer.dataset import DatasetProfile, profile
from sktransfer.exceptions import ArchiveWarning

X = np.random.default_rng(0).integers(0, 5, size=(50, 3)).astype(float)
posix = pytest.mark.skipif(os.name != "posix", reason="file modes")


def every_hash(data):
    parts = [data, *data.enclosing]
    return np.concatenate([getattr(part, name) for part in parts for name in HASHES])


def test_seal_changes_every_hash_and_unseal_restores_it():
    key = ArchiveKey(bytes(32))
    data = profile(X, enclosing=[np.vstack([X, X + 10])])
    sealed = key.seal(data)
    assert len(data.enclosing) == 1 and len(every_hash(data)) > 100
    assert not np.isin(every_hash(sealed), every_hash(data)).any()
    for name in HASHES:
        np.testing.assert_array_equal(getattr(key.unseal(sealed), name), getattr(data, name))
    assert key.seal(sealed) is sealed
    assert has_open_hashes(data.to_dict()) and not has_open_hashes(sealed.to_dict())


def test_sealed_hashes_are_sorted():
    """Their order in the table must not show."""
    sealed = ArchiveKey(bytes(32)).seal(profile(X))
    assert (np.diff(sealed.fingerprint.astype(float)) >= 0).all()


def test_all_rows_are_in_no_plain_profile():
    assert len(profile(X).row_hashes) == len(X)
    assert "row_hashes" not in profile(X).to_dict()


@posix
def test_first_record_makes_private_key(archive, make_task):
    archive.append(make_task())
    assert not (archive.path / "key").exists()  # it has no data profile
    archive.append(make_task(profile=profile(X)))
    mode = stat.S_IMODE((archive.path / "key").stat().st_mode)
    assert mode == 0o600
    before = (archive.path / "key").read_bytes()
    archive.append(make_task(profile=profile(X + 1)))
    assert (archive.path / "key").read_bytes() == before


def test_two_archives_have_different_keys(archive, make_task, tmp_path):
    other = Archive(tmp_path / "other")
    sealed = []
    for each in (archive, other):
        id = each.append(make_task(profile=profile(X)))
        sealed.append(every_hash(DatasetProfile.from_dict(each[id].profile)))
    assert not np.isin(*sealed).any()


def _open_key(path, queue, barrier):
    barrier.wait()
    queue.put(Archive(path).open_key().secret)


@pytest.mark.skipif(sys.platform != "linux", reason="starts processes by fork")
def test_processes_that_start_at_once_get_the_same_key(tmp_path):
    context = multiprocessing.get_context("fork")
    queue, barrier = context.Queue(), context.Barrier(6)
    workers = [context.Process(target=_open_key, args=(tmp_path, queue, barrier)) for _ in range(6)]
    for worker in workers:
        worker.start()
    secrets = {queue.get(timeout=30) for _ in workers}
    for worker in workers:
        worker.join()
    assert len(secrets) == 1


def test_without_its_key_rows_cannot_be_compared(archive, make_task):
    archive.append(make_task(profile=profile(X)))
    assert len(archive.select(profile=profile(X)).excluded) == 1
    (archive.path / "key").unlink()
    selection = Archive(archive.path).select(profile=profile(X))
    assert list(selection.overlap.values()) == ["unknown"] and not selection.excluded


def test_invalid_key_is_reported_and_kept(archive, make_task):
    archive.append(make_task(profile=profile(X)))
    (archive.path / "key").write_bytes(b"nonsense")
    with pytest.raises(RecordError, match="it is not the key of an archive"):
        archive.append(make_task(profile=profile(X)))
    with pytest.warns(ArchiveWarning, match="key of the archive cannot be read"):
        assert len(archive.select(profile=profile(X)).used) == 1
    assert (archive.path / "key").read_bytes() == b"nonsense"


def test_sign_depends_on_the_key():
    keys = [ArchiveKey(bytes([n]) * 32) for n in range(2)]
    assert keys[0].sign("a") == keys[0].sign("a") != keys[1].sign("a")
    assert keys[0].sign(None) is None
    assert keys[0].id != keys[1].id and bytes(32).hex() not in repr(keys[0])


@pytest.mark.parametrize("passphrase", ["", b"", None, 5])
def test_passphrase_must_be_text(passphrase):
    with pytest.raises(TypeError, match="key must be a text"):
        ArchiveKey.from_passphrase(passphrase, bytes(16))
