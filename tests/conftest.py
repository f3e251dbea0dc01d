"""Isolation of every test: its own empty archive, and one torch thread."""

import os
import sys
import tempfile

import pytest

PLUGIN = "sktransfer-isolation"


class Isolation:
    """Fixtures of every test. As a plugin, they also apply to the doctests in `sktransfer/`."""

    @pytest.fixture(autouse=True)
    def own_archive(self, tmp_path, monkeypatch):
        """Point ``archive="auto"`` at a new folder, for this process and its child processes.

        The folder is empty. The starter archive is turned off too. Tests of it turn it on again.
        """
        path = tmp_path / "archive"
        monkeypatch.setenv("SKTRANSFER_ARCHIVE", str(path))
        monkeypatch.setenv("SKTRANSFER_STARTER", "none")
        return path

    @pytest.fixture(autouse=True)
    def one_torch_thread(self):
        """Keep test workers from competing for cores. Torch is not imported for this."""
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)


def pytest_configure(config):
    if config.pluginmanager.has_plugin(PLUGIN):
        return
    config.pluginmanager.register(Isolation(), PLUGIN)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for subprocesses, and a torch imported later
    if not hasattr(config, "workerinput"):  # an xdist worker inherits the variables
        # Protects the user's archive outside a test: at collection and in fixtures of wider scope.
        folder = tempfile.TemporaryDirectory(
            prefix="sktransfer-archive-", ignore_cleanup_errors=True
        )
        os.environ["SKTRANSFER_ARCHIVE"] = folder.name
        os.environ["SKTRANSFER_STARTER"] = "none"
        config.add_cleanup(folder.cleanup)
