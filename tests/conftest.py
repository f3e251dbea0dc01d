"""What holds for every test: an archive of its own, and one torch thread."""

import os
import sys
import tempfile

import pytest

PLUGIN = "sktransfer-isolation"


class Isolation:
    """A plugin rather than fixtures of this file, so that the doctests in `sktransfer/` have it too."""

    @pytest.fixture(autouse=True)
    def own_archive(self, tmp_path, monkeypatch):
        """Point ``archive="auto"`` at a new folder, for this process and those it starts.

        It is empty: the starter archive is left out as well, but where a test is about it.
        """
        path = tmp_path / "archive"
        monkeypatch.setenv("SKTRANSFER_ARCHIVE", str(path))
        monkeypatch.setenv("SKTRANSFER_STARTER", "none")
        return path

    @pytest.fixture(autouse=True)
    def one_torch_thread(self):
        """Keep the workers from competing for cores, without importing torch where no test did."""
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)


def pytest_configure(config):
    if config.pluginmanager.has_plugin(PLUGIN):
        return
    config.pluginmanager.register(Isolation(), PLUGIN)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for subprocesses, and a torch imported later
    if not hasattr(config, "workerinput"):  # an xdist worker inherits the variable
        # Outside a test (collection, fixtures of a wider scope) the user's archive is out of reach as well.
        folder = tempfile.TemporaryDirectory(prefix="sktransfer-archive-", ignore_cleanup_errors=True)
        os.environ["SKTRANSFER_ARCHIVE"] = folder.name
        os.environ["SKTRANSFER_STARTER"] = "none"
        config.add_cleanup(folder.cleanup)
