"""`archive_report`: one self-contained HTML page about an archive.

Everything that comes from a record is escaped, and the page has a policy that forbids it to load
anything. So records of strangers can neither run code in it nor send anything away.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

import numpy as np

from sktransfer import __version__
from sktransfer.archive import Archive, load_tasks
from sktransfer.inspection._data_sets import HANDCRAFTED, choose_encoder, find_data_sets, project
from sktransfer.inspection._report_style import SCRIPT, STYLE
from sktransfer.task import Task
from sktransfer.utils._svg import SvgChart

COLORS = {"classification": "#3B8FD1", "regression": "#1FA187"}
OTHER_COLOR = "#C2699A"
MAX_TEXT_LENGTH = 80
MAX_CATEGORIES = 4
SECONDS_OF_TWO_DAYS = 2 * 24 * 3600
COLUMNS = (
    ("created", ""),
    ("name", ""),
    ("estimator", ""),
    ("data", ""),
    ("rows", "number"),
    ("columns", "number"),
    ("trials", "number"),
    ("failed", "number"),
    ("metric", ""),
    ("best score", "number"),
    ("best configuration", ""),
    ("id", ""),
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def archive_report(archive: str | os.PathLike[str] | Archive, title: str | None = None) -> str:
    """A page about the searches of an archive: a table, a map of data sets, what worked.

    Parameters
    ----------
    archive : str, path or Archive
        Tasks of the starter archive are not included.
    title : str or None, default=None
        Title of the page. None names the archive.

    Returns
    -------
    str
        A complete HTML page. It needs no network and no other file.

    Examples
    --------
    >>> from sktransfer import Archive, Task
    >>> from sktransfer.inspection import archive_report
    >>> archive = Archive()
    >>> name = archive.append(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)]))
    >>> page = archive_report(archive, title="Our searches")
    >>> page.startswith("<!DOCTYPE html>"), "Our searches" in page
    (True, True)
    """
    opened = archive if isinstance(archive, Archive) else Archive(archive)
    tasks = list(load_tasks(opened))
    tasks.sort(key=lambda task: (task.created, task.id), reverse=True)
    heading = escape(title or f"Past searches in {opened.path}")
    groups = _by_estimator(tasks)
    sections = [
        f"<h1>{heading}</h1>",
        f'<p class="soft">{_summary(tasks)}</p>',
        f'<div class="charts">{_growth(tasks)}{_map(tasks)}</div>',
        _what_worked(groups),
        _task_table(tasks, list(groups)),
    ]
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{heading}</title><style>{STYLE}</style></head><body>"
        f'{"".join(sections)}<p class="soft">Made by sktransfer {escape(__version__)}.</p>'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _summary(tasks: Sequence[Task]) -> str:
    if not tasks:
        return "The archive has no searches yet."
    n_trials = sum(task.n_trials for task in tasks)
    n_estimators = len({_estimator(task) for task in tasks})
    first, last = tasks[-1].created[:10], tasks[0].created[:10]
    return escape(
        f"{_count(len(tasks), 'search', 'searches')}, {_count(n_trials, 'trial')}, "
        f"{_count(n_estimators, 'estimator')}, from {first} to {last}."
    )


# -- charts ---------------------------------------------------------------------------------------


def _growth(tasks: Sequence[Task]) -> str:
    """The number of searches over time."""
    times = sorted(time for task in tasks if (time := _timestamp(task.created)) is not None)
    if len(times) < 2:
        return ""
    chart = SvgChart(
        480, 260, (times[0], times[-1]), (0, len(times)), title="Number of searches over time"
    )
    chart.add_steps([(time, number) for number, time in enumerate(times, 1)])
    places = [times[0], (times[0] + times[-1]) / 2, times[-1]]
    pattern = "%Y-%m-%d" if times[-1] - times[0] > SECONDS_OF_TWO_DAYS else "%m-%d %H:%M"
    ticks = [(t, datetime.fromtimestamp(t, UTC).strftime(pattern)) for t in places]
    svg = chart.to_svg("time (UTC)", "searches", ticks)
    return f"<figure>{svg}<figcaption>Searches in the archive over time.</figcaption></figure>"


def _map(tasks: Sequence[Task]) -> str:
    """The data sets, with links to their searches."""
    sets = find_data_sets(tasks, lambda task: str((task.profile or {}).get("kind")))
    if len(sets) < 2:
        count = "one data set" if sets else "no data set"
        return f"<p>The archive knows {count}. A map needs at least two.</p>"
    profiles = [each.profile for each in sets]
    encoder, _ = choose_encoder(profiles, is_learned=False)
    places, _ = project(encoder.transform(profiles))
    numbers = {task.id: number for number, task in enumerate(tasks)}
    low, high = places.min(axis=0), places.max(axis=0)
    margin = 0.06 * (high - low)
    limits = np.stack([low - margin, high + margin], axis=1)
    chart = SvgChart(480, 260, tuple(limits[0]), tuple(limits[1]), title="Map of data sets")
    for each, (x, y) in zip(sets, places, strict=True):
        newest = min(numbers[task.id] for task in each.tasks)
        size = f"{each.profile.n_rows} rows, {each.profile.n_features} columns"
        text = f"{each.group}, {size}, {_count(len(each.tasks), 'search', 'searches')}"
        radius = 3 + min(4.0, math.log10(max(each.profile.n_rows, 10)) - 1)
        color = COLORS.get(each.group, OTHER_COLOR)
        chart.add_points([(x, y, text)], color, radius, link=f"#task-{newest}")
    svg = chart.to_svg("first component", "second component")
    kinds = " ".join(
        f'<span style="color:{COLORS.get(kind, OTHER_COLOR)}">●</span> {escape(kind)}'
        for kind in dict.fromkeys(each.group for each in sets)
    )
    caption = f"Data sets by their {HANDCRAFTED}; similar ones are close. {kinds}"
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


# -- what worked ----------------------------------------------------------------------------------


def _by_estimator(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """The searches of each estimator that had a success, most frequent first."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        if task.best is not None:
            groups.setdefault(_estimator(task), []).append(task)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def _what_worked(groups: dict[str, list[Task]]) -> str:
    """For each estimator, the values of its parameters in the best configurations."""
    parts = ["<h2>What worked</h2>"] if groups else []
    for number, (estimator, members) in enumerate(groups.items()):
        count = _count(len(members), "search", "searches")
        parts.append(
            f'<h3 id="estimator-{number}">{escape(estimator)} '
            f'<span class="soft">({count})</span></h3>{_parameter_table(members)}'
        )
    return "".join(parts)


def _parameter_table(tasks: Sequence[Task]) -> str:
    values: dict[str, list[Any]] = {}
    for task in tasks:
        best = task.best
        assert best is not None
        canonical = task.space.get("canonical") or {}
        for name, value in best.params.items():
            values.setdefault(str(canonical.get(name, name)), []).append(value)
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(_describe_values(found))}</td></tr>"
        for name, found in sorted(values.items())
    )
    head = "<tr><th>parameter</th><th>in the best configuration of each search</th></tr>"
    return f'<div class="scroll"><table>{head}{rows}</table></div>'


def _describe_values(values: Sequence[Any]) -> str:
    """The values of one parameter in the best configurations, in words.

    >>> _describe_values([1.0, 2.0, 3.0, 4.0, 5.0]), _describe_values(["rbf", "rbf", None])
    ('median 3, middle half from 2 to 4', 'rbf (2), None (1)')
    """
    is_number = [isinstance(v, (int, float)) and not isinstance(v, bool) for v in values]
    if all(is_number) and len(set(values)) > MAX_CATEGORIES:
        low, middle, high = np.percentile(np.array(values, dtype=float), [25, 50, 75])
        return f"median {middle:.4g}, middle half from {low:.4g} to {high:.4g}"
    counts = Counter(map(_text, values)).most_common()
    shown = ", ".join(f"{text} ({count})" for text, count in counts[:MAX_CATEGORIES])
    return shown + (f", {len(counts) - MAX_CATEGORIES} others" if counts[MAX_CATEGORIES:] else "")


# -- the table of searches ------------------------------------------------------------------------


def _task_table(tasks: Sequence[Task], estimators: Sequence[str]) -> str:
    head = "".join(
        f'<th class="{kind}"><button type="button">{name}</button></th>' for name, kind in COLUMNS
    )
    links = {name: f"#estimator-{number}" for number, name in enumerate(estimators)}
    rows = "".join(_task_row(number, task, links) for number, task in enumerate(tasks))
    return (
        '<h2>Searches</h2><p><input type="search" id="query" placeholder="Filter" '
        'aria-label="Filter the searches"> <span class="soft" id="shown"></span></p>'
        f'<div class="scroll"><table id="tasks"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _task_row(number: int, task: Task, links: dict[str, str]) -> str:
    profile, best = task.profile or {}, task.best
    estimator = _estimator(task)
    params = "" if best is None else ", ".join(f"{k}={_text(v)}" for k, v in best.params.items())
    n_failed = sum(trial.status != "ok" for trial in task.trials)
    state = "" if task.complete else " (incomplete)"
    cells = [
        (task.created[:16].replace("T", " "), task.created, "date"),
        (_text(task.name), task.name, "name"),
        (estimator, estimator, ""),
        (str(profile.get("kind") or "") + state, str(profile.get("kind") or ""), ""),
        _number_cell(profile.get("n_rows")),
        _number_cell(profile.get("n_features")),
        _number_cell(task.n_trials),
        _number_cell(n_failed),
        (task.metrics[0], task.metrics[0], ""),
        _number_cell(None if best is None else best.score),
        (params, params, "params"),
        (task.id, task.id, "id"),
    ]
    made = "".join(
        f'<td class="{kind}" data-sort="{escape(key[:MAX_TEXT_LENGTH])}">'
        f"{_linked(text, links)}</td>"
        for text, key, kind in cells
    )
    return f'<tr id="task-{number}">{made}</tr>'


def _linked(text: str, links: dict[str, str]) -> str:
    return f'<a href="{links[text]}">{escape(text)}</a>' if text in links else escape(text)


def _number_cell(value: Any) -> tuple[str, str, str]:
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return "", "", "number"
    return f"{value:.6g}" if isinstance(value, float) else str(value), repr(value), "number"


def _estimator(task: Task) -> str:
    return ", ".join(map(str, task.space.get("predictors") or ())) or "unknown"


def _text(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= MAX_TEXT_LENGTH else text[: MAX_TEXT_LENGTH - 1] + "…"


def _count(n: int, word: str, plural: str = "") -> str:
    return f"{n} {word if n == 1 else plural or word + 's'}"


def _timestamp(created: str) -> float | None:
    try:
        time = datetime.fromisoformat(created)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):  # a record that was edited by hand
        return None
