"""Suites of tasks whose configurations were evaluated in advance: spaces, configurations, metrics.

A suite is read from ``tables/<suite>/`` of the data folder: ``space.json`` and one CSV file per
task.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import loguniform, randint, uniform

from sktransfer import Task
from sktransfer.space import Space

TIME_METRICS = ("time", "train_time")  # possible names of the fit time


@dataclass(frozen=True)
class Table:
    """One task: its configurations, their losses and fit times, (n,) each, and its data profile."""

    name: str
    params: list[dict[str, Any]]
    loss: np.ndarray
    seconds: np.ndarray | None = None
    profile: Any = None

    def task(self, space: Space, rows: np.ndarray) -> Task:
        """Return the record of some rows, as if they were the trials of a search."""
        trials = [
            {
                "params": self.params[row],
                "score": -float(self.loss[row]),
                "fit_time": np.nan if self.seconds is None else float(self.seconds[row]),
            }
            for row in rows
        ]
        return Task.from_trials(space, trials, self.profile, id=self.name)


@dataclass(frozen=True)
class Suite:
    """Tasks that share a space."""

    name: str
    space: Space
    tables: dict[str, Table]


def load_suite(name: str, folder: Path) -> Suite:
    """Load a suite by the name of its folder; the first metric is the loss."""
    place = folder / "tables" / name
    if not (place / "space.json").is_file():
        raise SystemExit(
            f"{place} holds no suite of tables. Pass the data folder with --data or set "
            "SKTRANSFER_DATA."
        )
    facts = json.loads((place / "space.json").read_text())
    space = Space.parse({key: _axis(about) for key, about in facts["hyperparameters"].items()})
    loss, about = next(iter(facts["metrics"].items()))
    sign = 1.0 if about["direction"] == "min" else -1.0
    time = next((metric for metric in facts["metrics"] if metric in TIME_METRICS), None)
    tables = {}
    for task in facts["tasks"]:
        frame = pd.read_csv(place / f"{task}.csv.gz")
        params = frame[list(facts["hyperparameters"])].to_dict("records")
        seconds = None if time is None else frame[time].to_numpy(float)
        tables[task] = Table(task, params, sign * frame[loss].to_numpy(float), seconds)
    return Suite(name, space, tables)


def _axis(about: dict[str, Any]) -> Any:
    """Convert a hyperparameter of `space.json` to a list or a distribution."""
    if about["type"] == "categorical":
        return about["choices"]
    if "values" in about:
        return about["values"]
    low, high = about["low"], about["high"]
    if about["log"]:
        return loguniform(low, high)
    return randint(low, high + 1) if about["type"] == "int" else uniform(low, high - low)
