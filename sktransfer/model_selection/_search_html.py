"""The HTML of a fitted search in a notebook: its best configuration, its history, its past tasks.

It is plain HTML and SVG: no script, nothing from the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from sktransfer.model_selection._sklearn_compat import BaseSearchCV
from sktransfer.task import short_task_name
from sktransfer.utils._svg import SvgChart

MAX_TEXT_LENGTH = 60
MAX_PAST_TASKS = 5
# Of medium brightness, to be seen on a light and on a dark page.
COLORS = {"past search": "#E06C1F", "model": "#3B8FD1"}
OTHER_COLOR = "#1FA187"
STYLE = (
    "<style>.sktransfer-search{font-family:sans-serif;font-size:13px;margin:0 0 .6em}"
    ".sktransfer-search .row{display:flex;flex-wrap:wrap;gap:1.6em;align-items:flex-start}"
    ".sktransfer-search table{border-collapse:collapse;margin:.3em 0}"
    ".sktransfer-search th,.sktransfer-search td{text-align:left;padding:.1em .8em .1em 0;"
    "font-weight:normal;font-size:13px;background:none;border:none}"
    ".sktransfer-search th{opacity:.7}</style>"
)


def search_html(search: BaseSearchCV) -> str:
    """A summary of a fitted search as HTML; empty if it is not fitted."""
    if not hasattr(search, "source_tasks_"):
        return ""
    columns = [key for key in search.cv_results_ if key.startswith("mean_test_")]
    tuned = f"mean_test_{search.refit}"
    column = tuned if tuned in columns else columns[0]
    scores = np.asarray(search.cv_results_[column], dtype=float)
    parts = [_best(search, scores), _history(scores, search.cv_results_["origin"])]
    return (
        f'{STYLE}<div class="sktransfer-search"><div class="row">{"".join(parts)}</div>'
        f"{_past_tasks(search.source_tasks_)}</div>"
    )


def _best(search: BaseSearchCV, scores: np.ndarray) -> str:
    rows = [("candidates", f"{len(search.cv_results_['params'])}")]
    if hasattr(search, "best_score_"):
        rows.insert(0, ("best score", f"{search.best_score_:.6g}"))
    elif np.isfinite(scores).any():
        rows.insert(0, ("best score", f"{np.nanmax(scores):.6g}"))
    params = getattr(search, "best_params_", {})
    rows += [(name, _shorten(value)) for name, value in params.items()]
    return f"<div><b>TransferSearchCV</b>{_table([], rows)}</div>"


def _history(scores: np.ndarray, origins: Sequence[str]) -> str:
    """The score of each trial and the best so far, as SVG."""
    ok = np.flatnonzero(np.isfinite(scores))
    if not len(ok):
        return ""
    best = np.maximum.accumulate(scores[ok])
    low, high = float(np.quantile(scores[ok], 0.1)), float(best[-1])
    low = min(low, float(best[0]))
    margin = 0.08 * (high - low)
    chart = SvgChart(
        360, 170, (1, len(scores)), (low - margin, high + margin), title="Scores of the candidates"
    )
    chart.add_steps([(float(i + 1), float(score)) for i, score in zip(ok, best, strict=True)])
    groups = ["past search" if str(each).startswith("task ") else str(each) for each in origins]
    for i in map(int, ok):
        text = f"candidate {i + 1}: {scores[i]:.6g} ({origins[i]})"
        color = COLORS.get(groups[i], OTHER_COLOR)
        chart.add_points([(i + 1, float(scores[i]), text)], color)
    n = len(scores)
    ticks = [(k, str(k)) for k in sorted({1, (n + 1) // 2, n})]
    legend = " ".join(
        f'<span style="color:{COLORS.get(group, OTHER_COLOR)}">●</span> {escape(group)}'
        for group in dict.fromkeys(groups)
    )
    return f"<div>{chart.to_svg('candidate', 'score', ticks)}<div>{legend}</div></div>"


def _past_tasks(rows: Sequence[dict[str, Any]]) -> str:
    used = [row for row in rows if row["excluded"] is None]
    n_excluded = len(rows) - len(used)
    excluded = f", {n_excluded} excluded" if n_excluded else ""
    if not used:
        return f"<div>No past search was used{excluded}.</div>"
    used = sorted(used, key=lambda row: (-(row["similarity"] or 0), -row["n_used"]))
    shown = used[:MAX_PAST_TASKS]
    head = ["past search", "trials", "similarity", "settings tried"]
    cells = [
        (
            _cut(short_task_name(row["id"], row["name"])),
            str(row["n_trials"]),
            "unknown" if row["similarity"] is None else f"{row['similarity']:.3g}",
            str(row["n_used"]),
        )
        for row in shown
    ]
    summary = f"{len(used)} past search{'es' * (len(used) > 1)} used{excluded}"
    return f"<details><summary>{summary}</summary>{_table(head, cells)}</details>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = ""
    for row in rows:
        first, *others = (escape(cell) for cell in row)
        body += f"<tr><th>{first}</th>" + "".join(f"<td>{cell}</td>" for cell in others) + "</tr>"
    return f"<table>{f'<tr>{top}</tr>' if top else ''}{body}</table>"


def _shorten(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return _cut(" ".join(text.split()))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT_LENGTH else text[: MAX_TEXT_LENGTH - 1] + "…"
