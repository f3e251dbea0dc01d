"""`explain`: in a few lines, what a search learned from and where its candidates came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from sktransfer.space import Space
from sktransfer.space._membership import find_edges

N_NAMED = 3  # past tasks and candidates that are named one by one


def explain_search(
    results: Mapping[str, Any],
    best_index: int | None,
    source_tasks: Sequence[Mapping[str, Any]],
    n_other_tasks: int,
) -> str:
    """Five lines on a fitted search: the past, the most similar of it, the candidates, the best.

    Parameters
    ----------
    results : dict
        ``cv_results_``.
    best_index : int or None
    source_tasks : list of dict
    n_other_tasks : int
    """
    used = [row for row in source_tasks if row["excluded"] is None]
    excluded = [row for row in source_tasks if row["excluded"] is not None]
    origins = [str(origin) for origin in results["origin"]]
    return "\n".join(
        [
            _describe_past(used, excluded, n_other_tasks),
            _describe_similar(used),
            _describe_first(origins),
            _describe_all(origins),
            _describe_best(origins, results, best_index),
        ]
    )


def _describe_past(used: Sequence, excluded: Sequence[Mapping], n_other_tasks: int) -> str:
    parts = [f"{len(used)} used"]
    if excluded:
        reasons = Counter(row["excluded"] for row in excluded).most_common(2)
        listed = "; ".join(f"{n}: {reason}" for reason, n in reasons)
        parts.append(f"{len(excluded)} excluded ({listed})")
    parts.append(f"{n_other_tasks} of other estimators")
    return f"Past searches: {', '.join(parts)}."


def _describe_similar(used: Sequence[Mapping[str, Any]]) -> str:
    compared = [row for row in used if row["similarity"]]
    if not compared:
        return "Most similar: none."
    named = (
        f"{row.get('name') or row['id']} (similarity {row['similarity']:.2f}, "
        f"weight now {row['weight']:.2f})"
        for row in compared[:N_NAMED]
    )
    return f"Most similar: {', '.join(named)}."


def _describe_first(origins: Sequence[str]) -> str:
    named = (f"{n}. {origin}" for n, origin in enumerate(islice(origins, N_NAMED), 1))
    return f"First candidates: {', '.join(named)}."


def _describe_all(origins: Sequence[str]) -> str:
    kinds = Counter(
        "settings of past tasks" if origin.startswith("task ") else origin for origin in origins
    )
    listed = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    count = f"All {len(origins)} candidates" if len(origins) > 1 else "The only candidate"
    return f"{count}: {listed}."


def _describe_best(origins: Sequence[str], results: Mapping, best_index: int | None) -> str:
    if best_index is None:
        return "Best: not determined, because refit is False and there are several metrics."
    place = f"Best: candidate {best_index + 1}, {origins[best_index]}"
    mean, std = results["predicted_mean"][best_index], results["predicted_std"][best_index]
    return f"{place}." if mean != mean else f"{place}, predicted {mean:.4g} ± {std:.2g}."


def print_edges(space: Space, best_params: dict[str, Any], *, is_recorded: bool) -> None:
    """Print whether the best setting is at an edge of the space."""
    if edges := find_edges(space, best_params):
        again = " and run again with resume=True. Known trials are not repeated."
        print(
            f"The best setting is at an edge of the space: {'; '.join(edges)}. To look beyond, "
            f"widen the range{again if is_recorded else '.'}"
        )
