"""Lines about the progress of long work."""

import io
import sys

import pytest

from sktransfer.utils import _progress_line
from sktransfer.utils._progress_line import progress_line, show_progress, track


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def every_step(monkeypatch):
    """Show every step, however fast."""
    monkeypatch.setattr(_progress_line, "SECONDS_BEFORE_LINE", 0.0)
    monkeypatch.setattr(_progress_line, "SECONDS_PER_LINE", 0.0)


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ((), "TqdmLine"),
        (("tqdm.auto",), "RichLine"),
        (("tqdm.auto", "rich.progress"), "PlainLines"),
    ],
)
def test_line_depends_on_what_is_installed(monkeypatch, missing, expected):
    if "tqdm.auto" not in missing:
        pytest.importorskip("tqdm")
    elif "rich.progress" not in missing:
        pytest.importorskip("rich")
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    line = _progress_line.make_line(4)
    assert type(line).__name__ == expected
    line.show(3, "score 0.5, best [0.5]")
    line.close()
    assert "score 0.5, best [0.5]" in terminal.getvalue()
    assert "3/4" in terminal.getvalue()


def test_plain_lines_are_used_without_a_terminal_or_with_many_messages(monkeypatch):
    assert type(_progress_line.make_line(4)).__name__ == "PlainLines"
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert type(_progress_line.make_line(4, is_live=False)).__name__ == "PlainLines"


def test_progress_is_shown_in_the_block_that_asks_for_it(every_step):
    with show_progress(stream := io.StringIO()):
        assert list(track([3, 4], "Adding")) == [3, 4]
    assert stream.getvalue() == "[1/2] Adding, 0 s left\n[2/2] Adding, 0 s left\n"


def test_nothing_is_shown_outside_of_such_a_block(every_step, capsys):
    assert list(track([3, 4], "Adding")) == [3, 4]
    with show_progress(None), progress_line(1, "Adding") as advance:
        advance()
    assert capsys.readouterr() == ("", "")


def test_none_leaves_it_to_the_caller(every_step):
    with show_progress(stream := io.StringIO()), show_progress(None):
        assert list(track([3], "Adding")) == [3]
    assert stream.getvalue() == "[1/1] Adding, 0 s left\n"


def test_quick_work_shows_nothing():
    with show_progress(stream := io.StringIO()):
        assert list(track(range(3), "Adding")) == [0, 1, 2]
    assert stream.getvalue() == ""


def test_unknown_number_of_steps(every_step):
    with show_progress(stream := io.StringIO()):
        assert list(track(iter("ab"), "Reading")) == ["a", "b"]
    assert stream.getvalue() == "[1] Reading\n[2] Reading\n"


@pytest.mark.parametrize("total", [0, 4])
@pytest.mark.parametrize("missing", [(), ("tqdm.auto",)], ids=["tqdm", "rich"])
def test_live_lines_with_and_without_a_total(monkeypatch, every_step, missing, total):
    pytest.importorskip("rich" if missing else "tqdm")
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    with show_progress(terminal := Terminal()), progress_line(total, "Reading") as advance:
        advance()
    assert "Reading" in terminal.getvalue()
    assert ("1/4" in terminal.getvalue()) == bool(total)


def test_line_is_closed_after_an_error(every_step):
    def stop():
        for item in track([1, 2], "Adding"):
            if item == 2:
                raise KeyboardInterrupt

    with show_progress(terminal := Terminal()), pytest.raises(KeyboardInterrupt):
        stop()
    assert terminal.getvalue().endswith("\n")
