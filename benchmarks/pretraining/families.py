"""Which real data sets may be used for pretraining.

Classification families are split by `benchmarks.first_trial.split_families`. Pretraining uses the
families of the split "development" only. Results are reported on the other families.

The regression sets had no split. They get one here by the same rule, except for four sets that are
related to sets used elsewhere: they go to the side of their relative.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from benchmarks.evaluations import families
from benchmarks.first_trial import split_families

RELATED = {  # regression set -> classification family made from the same source
    "wine": "winequality",
    "solar": "flare-F",
    "breastcancer": "wdbc",
}
REPORTED_ELSEWHERE = {"parkinsons"}  # the distBO problem is measured on the same recordings

Source = tuple[str, str]
"""(task, name of the data set)."""


def regression_sets(folder: Path) -> list[str]:
    """Names of the regression sets, sorted."""
    return sorted(
        path.name.removesuffix(".csv.gz") for path in (folder / "regression").glob("*.gz")
    )


def split_regression(folder: Path) -> dict[str, set[str]]:
    """Split -> names of its regression sets."""
    names = regression_sets(folder)
    free = {name: name for name in names if name not in RELATED and name not in REPORTED_ELSEWHERE}
    classification = split_families(families(folder))
    sides = {side: {str(name) for name in split} for side, split in split_families(free).items()}
    for name in set(names) - set(free):
        family = RELATED.get(name)
        side = "development" if family in classification["development"] else "report"
        sides[side].add(name)
    return sides


@lru_cache(maxsize=4)
def development_families(folder: Path) -> dict[str, tuple[Source, ...]]:
    """Family -> its data sets, classification and regression, of the development split."""
    family = families(folder)
    members: dict[str, list[Source]] = {}
    allowed = split_families(family)["development"]
    for name in sorted(family):
        if family[name] in allowed:
            members.setdefault(family[name], []).append(("classification", name))
    for name in sorted(split_regression(folder)["development"]):
        members.setdefault(RELATED.get(name, name), []).append(("regression", name))
    return {name: tuple(members[name]) for name in sorted(members)}
