"""Journals: each candidate is on disk, and a damaged line costs that line only."""

import errno
import json
import os
import random
import subprocess
import sys
import textwrap
import tracemalloc
import warnings
from dataclasses import replace

import pytest

from sktransfer.archive import Archive, NewerFormatError, RecordError, _journal
from sktransfer.archive._journal import read_journal
from sktransfer.dataset import profile
from sktransfer.exceptions import ArchiveWarning
from sktransfer.task import Task, Trial

N = 6
TRIALS = [Trial.make({"C": float(i)}, 0.5 + i / 7, std=0.1, fit_time=0.01 * i) for i in range(N)]
FOLDS = [[[0.1, 0.2, 10, None, i / 3, None]] for i in range(N)]


def start_journal(archive, id="killed", n=N, **options):
    """Write a journal of `n` trials, as a killed search leaves it."""
    options = {"resume": {"problem": {}}} | options
    journal = archive.journals.start(Task.from_trials({"C": [0.0, 10.0]}, [], id=id, **options))
    for trial, folds in zip(TRIALS[:n], FOLDS[:n], strict=True):
        journal.add(trial, folds)
        journal.sync()
    return journal


def mark_as_dead(path):
    """Rewrite a journal as if a dead process had written it."""
    first, second, *lines = [line for line in path.read_bytes().split(b"\n") if line]
    assert first == second
    header = json.loads(first.partition(b" ")[2])
    header["writer"]["pid"] = 2**22 + 1  # larger than any on Linux
    path.write_bytes(
        _journal._make_line(header) * 2 + b"".join(b"\n" + line + b"\n" for line in lines)
    )


@pytest.fixture
def killed(archive):
    path = start_journal(archive).path
    mark_as_dead(path)
    return path


def test_journal_appears_with_its_header(archive, monkeypatch):
    """Otherwise a reader could take a running search for a damaged file."""
    sizes, replace_file, link = [], os.replace, os.link

    def watch(function):
        def called(source, target):
            assert not os.path.exists(target)
            sizes.append(os.path.getsize(source))
            return function(source, target)

        return called

    monkeypatch.setattr(os, "replace", watch(replace_file))
    monkeypatch.setattr(os, "link", watch(link))
    journal = archive.journals.start(Task.from_trials({"C": [0.0, 10.0]}, [], id="begun"))
    journal.sync()
    assert sizes == [journal.path.stat().st_size] and sizes[0] > 100
    assert os.listdir(journal.path.parent) == ["begun.jsonl"]


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ({}, False),
        ({"trials": tuple(TRIALS[: N - 1])}, True),
        ({"origin": "imported from a.zip"}, True),
    ],
    ids=["same trials", "fewer trials", "another origin"],
)
def test_next_reader_removes_journal_of_recorded_search(archive, killed, change, stays):
    """The process was killed after it had written the record."""
    record = replace(read_journal(killed)[0], complete=True, resume=None, **change)
    archive.append(record)
    for reader in (Archive(archive.path, readonly=True), archive):
        assert killed.exists()
        assert [task.id for task in reader] == ["killed"]
    assert killed.exists() is stays


def test_reader_keeps_journal_of_running_search(archive):
    journal = start_journal(archive)
    archive.append(replace(read_journal(journal.path)[0], complete=True, resume=None))
    assert len(list(archive)) == 1 and journal.path.exists()


def test_read_journal_returns_trials_and_folds(archive):
    data = archive.open_key().seal(profile([[1.0], [2.0], [3.0]]))
    task, running = read_journal(start_journal(archive, profile=data).path)
    assert running
    assert list(task.trials) == TRIALS
    assert task.resume["folds"] == FOLDS
    assert not task.complete
    assert task.profile["n_rows"] == 3


def test_journal_writes_nothing_before_first_candidate(archive):
    start_journal(archive, n=0)
    assert not archive.path.exists()


def test_archive_includes_killed_search(archive, killed, make_task):
    archive.append(make_task(id="after"))
    archive.append(make_task(id="zero"))
    assert [task.id for task in archive] == ["after", "killed", "zero"]
    assert [task.id for task in archive.select().used] == ["after", "killed", "zero"]
    assert len(archive) == 2  # records


def test_archive_leaves_out_running_search(archive):
    start_journal(archive)
    assert list(archive) == []
    assert [task.id for task in archive.journals.tasks()] == ["killed"]


def test_archive_prefers_record_to_journal(archive, killed):
    archive.append(Task.from_trials({"C": [0.0, 10.0]}, TRIALS[:3], id="killed"))
    assert [len(task.trials) for task in archive] == [3]


@pytest.mark.parametrize(
    ("change", "running"),
    [
        ({}, True),
        ({"host": "elsewhere"}, False),
        ({"pid": 2**22 + 1}, False),
        ({"pid": -1}, False),
        ({"pid": "1"}, False),
        ({"started": "another boot/1"}, False),
    ],
)
def test_is_running_compares_process(change, running):
    writer = _journal._describe_process(os.getpid()) | change
    assert _journal._is_running(writer) is running
    assert not _journal._is_running(None)


def test_archive_includes_search_after_its_process_ends(archive):
    script = """
        import sys
        from sktransfer import Archive
        from sktransfer.task import Task, Trial
        task = Task.from_trials({"C": [1, 2]}, [], id="other")
        journal = Archive(sys.argv[1]).journals.start(task)
        journal.add(Trial.make({"C": 1}, 0.5), [])
        journal.sync()
        print("written", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(archive.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"written\n"
        if os.name == "posix":
            assert list(archive) == []
        process.kill()
        process.wait()
        assert [task.id for task in archive] == ["other"]


def count_trials(path, originals):
    """Count the trials that are read. Assert that they are originals, in order."""
    try:
        task, _ = read_journal(path)
    except (RecordError, FileNotFoundError):  # an empty file counts as missing
        return None
    assert all(trial in originals for trial in task.trials)
    assert [trial.params["C"] for trial in task.trials] == sorted(
        trial.params["C"] for trial in task.trials
    )
    return len(task.trials)


def test_truncated_journal_keeps_complete_lines(killed):
    data = killed.read_bytes()
    ends = [i for i, byte in enumerate(data) if byte == 10][1::2]
    assert len(ends) == N + 2
    for length in range(len(data)):
        killed.write_bytes(data[:length])
        whole = sum(end <= length for end in ends)  # the newline itself may be missing
        assert count_trials(killed, TRIALS) == (max(0, whole - 2) if whole else None)


def test_damaged_byte_costs_one_line(killed):
    data, generator = killed.read_bytes(), random.Random(0)
    trials_begin = data.index(b'{"n":')
    for _ in range(2000):
        position = generator.randrange(len(data))
        byte = generator.choice([b for b in range(256) if b != data[position]])
        killed.write_bytes(data[:position] + bytes([byte]) + data[position + 1 :])
        left = count_trials(killed, TRIALS)
        assert left is not None and left >= (N if position < trials_begin - 20 else N - 1)


def test_heavy_damage_gives_valid_trials_or_error(killed):
    data, generator = killed.read_bytes(), random.Random(1)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(generator.randrange(1, 40)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        killed.write_bytes(bytes(damaged))
        count_trials(killed, TRIALS)


@pytest.mark.parametrize(
    ("payloads", "message"),
    [
        ([{"n": 0}], "header is damaged"),
        ([{"journal": 1}], "no task"),
        ([{"journal": 1, "task": {"format": 1}}], "'id' is missing"),
        ([{"journal": 9, "task": {}}], "format 9"),
        ([[]], "header is damaged"),
    ],
)
def test_read_journal_refuses_other_lines(archive, killed, payloads, message):
    killed.write_bytes(b"".join(map(_journal._make_line, payloads)))
    with pytest.raises(RecordError, match=message):
        read_journal(killed)
    with pytest.warns(ArchiveWarning, match=r"Skipped .*killed\.jsonl"):
        assert list(archive) == []


def test_read_journal_refuses_newer_format(killed):
    killed.write_bytes(_journal._make_line({"journal": 2, "task": {}}))
    with pytest.raises(NewerFormatError):
        read_journal(killed)


@pytest.mark.parametrize(
    "text", [b"[" * 10**5, b'{"n":' + b"1" * 10**5 + b"}", b"nonsense", b"\xff\xfe"]
)
def test_read_journal_ignores_hostile_lines(killed, text):
    line = _journal._checksum(text) + b" " + text + b"\n"
    killed.write_bytes(line + killed.read_bytes())
    assert count_trials(killed, TRIALS) == N


def test_read_journal_refuses_large_files(killed, monkeypatch):
    text = b"[" + b"[]," * _journal.MAX_VALUES + b"[]]"
    killed.write_bytes(_journal._checksum(text) + b" " + text + b"\n")
    with pytest.raises(RecordError, match="values"):
        read_journal(killed)
    monkeypatch.setattr(_journal, "MAX_BYTES", 1000)
    with pytest.raises(RecordError, match="larger"):
        read_journal(killed)


@pytest.mark.parametrize(
    "text",
    [
        b'{"n":"' + b"x" * (_journal.MAX_BYTES - 100) + b'"}',
        b'{"n":[' + b"{}," * (_journal.MAX_VALUES // 2 - 10) + b"{}]}",
        b'{"n":[' + b"1e9," * (_journal.MAX_VALUES - 10) + b"1]}",
    ],
    ids=["one text", "dicts", "numbers"],
)
def test_read_journal_stays_within_memory_bound(killed, text):
    killed.write_bytes(_journal._checksum(text) + b" " + text + b"\n")
    tracemalloc.start()
    with pytest.raises(RecordError, match="header"):
        read_journal(killed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 2**20


def test_journals_are_not_read_or_written_through_links(archive, killed, tmp_path):
    """A link may lead out of the archive."""
    elsewhere = killed.rename(tmp_path / "elsewhere.jsonl")
    killed.symlink_to(elsewhere)
    with pytest.raises(RecordError, match="regular"):
        read_journal(killed)
    killed.unlink()
    killed.parent.rmdir()
    (tmp_path / "outside").mkdir()
    killed.parent.symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="link"):
        start_journal(archive)
    assert list((tmp_path / "outside").iterdir()) == []


def test_killed_search_can_be_merged_exported_and_pruned(archive, killed, tmp_path):
    assert len(archive["killed"].trials) == N
    other = Archive(tmp_path / "other")
    assert other.merge(archive).added == ("killed",)
    assert other.merge(archive).known == ("killed",)
    assert list(other["killed"].trials) == TRIALS and not other["killed"].complete
    assert killed.exists()
    assert archive.export(tmp_path / "file.zip") == 1
    assert archive.prune(max_records=0) == ["killed"]
    assert not killed.exists() and list(archive) == []
    with pytest.raises(KeyError):
        archive.remove("killed")


def test_remove_deletes_journal_with_record(archive, killed):
    archive.append(archive["killed"])
    archive.remove("killed")
    assert list(archive) == []


def test_remove_keeps_running_search(archive):
    path = start_journal(archive).path
    with pytest.raises(KeyError):
        archive.remove("killed")
    assert path.exists()


def test_read_journal_refuses_directory(archive, killed):
    killed.unlink()
    killed.mkdir()
    with pytest.raises(RecordError, match="regular"):
        read_journal(killed)


def test_journals_ignore_names_that_are_no_ids(archive, killed):
    (killed.parent / "..x.jsonl").write_bytes(b"")
    (killed.parent / "a b.jsonl").write_bytes(b"")
    (killed.parent / "notes.txt").write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [task.id for task in archive] == ["killed"]


def test_read_journal_refuses_other_name(killed):
    other = killed.with_name("other.jsonl")
    killed.rename(other)
    with pytest.raises(RecordError, match="not the one of its name"):
        read_journal(other)


def test_sync_does_not_recreate_removed_journal(archive):
    journal = start_journal(archive)
    journal.path.unlink()
    journal.add(TRIALS[0], FOLDS[0])
    with pytest.raises(FileNotFoundError):
        journal.sync()


def test_full_disk_keeps_earlier_trials(archive, monkeypatch):
    journal = start_journal(archive, n=2)

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    journal.add(TRIALS[2], FOLDS[2])
    with pytest.raises(OSError, match="space"):
        journal.sync()
    assert len(read_journal(journal.path)[0].trials) >= 2


def test_discard_deletes_journal_of_killed_search_only(archive, killed):
    running = start_journal(archive, id="running").path
    for id in ("killed", "running", "never"):
        archive.journals.discard(id)
    assert not killed.exists()
    assert running.exists()


def test_readonly_journals_refuse_changes(archive, killed):
    with pytest.raises(PermissionError):
        Archive(archive.path, readonly=True).journals.start(Task.from_trials({"C": [1, 2]}, []))
    with pytest.raises(PermissionError):
        Archive(archive.path, readonly=True).journals.discard("killed")
    assert [task.id for task in Archive(archive.path, readonly=True)] == ["killed"]
