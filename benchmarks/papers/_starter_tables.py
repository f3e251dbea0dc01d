"""The starter archive as suites of tables: the stored trials of a classifier on each data set.

The suite of a classifier has one data set of each family, so that no two share rows. Its loss is
the negative balanced accuracy. The archive holds no hash of a row, so a hash of the name identifies
a data set.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import numpy as np

from benchmarks.evaluations import families
from benchmarks.starter_spaces import specs
from benchmarks.tables import Suite, Table
from sktransfer.archive._starter import Starter, starter_folder
from sktransfer.dataset import DatasetProfile
from sktransfer.space import Space
from sktransfer.task import Task

PREFIX = "starter-"


def starter_suite(name: str, folder: Path) -> Suite:
    """Return the suite of a classifier, such as "starter-SVC"."""
    estimator, family_of = name.removeprefix(PREFIX), families(folder)
    spec, tables, seen = specs("classification")[estimator], {}, set()
    for task in Starter(starter_folder()).tasks(estimator, scaled=True):
        data = data_name(task.id, estimator)
        if family_of.get(data) not in {None, *seen}:
            seen.add(family_of[data])
            tables[data] = _table(data, task)
    return Suite(name, Space.parse([spec.space, *spec.further]), tables)


def data_name(id: str, estimator: str) -> str:
    """Return the data set of a task of the starter archive.

    >>> data_name("starter-SVC-wine-scaled-c631312d", "SVC")
    'wine'
    """
    return re.sub(r"-(scaled|bare)-\w+$", "", id.removeprefix(f"{PREFIX}{estimator}-"))


def _table(data: str, task: Task) -> Table:
    trials = [trial for trial in task.trials if trial.status == "ok"]
    params = [{key.split("__")[-1]: v for key, v in trial.params.items()} for trial in trials]
    loss = np.array([-trial.score for trial in trials])
    known = DatasetProfile.from_dict(task.profile or {})
    named = np.array([zlib.crc32(data.encode())], dtype=np.uint64)
    return Table(
        data,
        params,
        loss,
        profile=DatasetProfile(
            known.kind,
            known.n_rows,
            known.n_features,
            known.n_classes,
            known.class_ratios,
            known.meta_features,
            fingerprint=named,
            n_distinct=1,
        ),
    )
