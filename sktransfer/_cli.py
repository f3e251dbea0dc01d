"""``sktransfer archive ...``, ``report`` and ``train``: maintain, show and learn from an archive.

Exit codes:

* 0: success.
* 1: `verify` found problems, or `merge` or `import` refused a record.
* 2: the command cannot run, for example because of an unknown id. One line on stderr says why.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from sktransfer import __version__
from sktransfer.archive import Archive, ImportReport, is_remote
from sktransfer.exceptions import ArchiveWarning
from sktransfer.utils._progress_line import show_progress

EXIT_SUCCESS, EXIT_PROBLEMS, EXIT_USAGE_ERROR = 0, 1, 2
PRUNE_RULES = ("older_than", "keep_newest", "max_records", "origin")
EXPORT_PARTS = ("samples", "names", "times")


class Output(NamedTuple):
    """What a command prints, and its exit code."""

    data: object  # printed with --json
    lines: Sequence[str]  # printed without it
    exit_code: int = EXIT_SUCCESS


Command = Callable[[Archive, argparse.Namespace], Output]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Examples
    --------
    >>> main(["archive", "ls"])
    The archive is empty.
    0
    """
    options = _make_parser().parse_args(arguments)
    try:
        # Progress is not part of the result, which another program may read.
        with warnings.catch_warnings(), show_progress(sys.stderr):
            warnings.simplefilter("always")
            warnings.showwarning = _print_warning
            archive = Archive(options.archive)
            if options.run not in (_merge, _import, _add, _path) and options.archive != "auto":
                _warn_if_missing(options.archive)
            output = options.run(archive, options)
        lines = output.lines
        if options.json:
            lines = [json.dumps(_to_json(output.data), allow_nan=False)]
        _print_output("\n".join(map(_escape_unprintable, lines)))
    except (OSError, KeyError, ValueError, TypeError, ImportError) as error:
        print(f"error: {_escape_unprintable(_describe_error(error))}", file=sys.stderr)
        return EXIT_USAGE_ERROR
    return output.exit_code


def _describe_error(error: Exception) -> str:
    """The text of an error, without what helps only programmers.

    >>> _describe_error(FileNotFoundError(2, "No such file", "a.csv"))
    'No such file: a.csv'
    """
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {error.filename}"
    # str() of a KeyError is the repr of its argument.
    return str(error.args[0] if isinstance(error, KeyError) and error.args else error)


def _warn_if_missing(path: str) -> None:
    """Warn of a missing directory, so that a mistyped path does not look like an empty archive."""
    if not is_remote(path) and not os.path.exists(os.path.expanduser(path)):
        warnings.warn(f"There is no archive at {path} yet.", ArchiveWarning, stacklevel=2)


def _print_output(text: str) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        # Characters that the terminal cannot show are escaped, so that the rest is still printed.
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:  # the reader, such as `head`, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _escape_unprintable(line: str) -> str:
    """Escape control characters: a record of another user must not clear the screen or add lines.

    >>> _escape_unprintable("SVC\\x1b[2J")
    'SVC\\\\x1b[2J'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one line, without the source line that Python adds."""
    print(f"warning: {_escape_unprintable(str(message))}", file=sys.stderr)


def _make_parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--archive",
        default="auto",
        metavar="PATH",
        help="directory or URL of the archive; default: the user's own archive",
    )
    common.add_argument("--json", action="store_true", help="print the result as one line of JSON")
    parser = argparse.ArgumentParser(prog="sktransfer", description="Maintain and show an archive.")
    parser.add_argument("--version", action="version", version=f"sktransfer {__version__}")
    nouns = parser.add_subparsers(required=True, metavar="command")
    commands = nouns.add_parser("archive", help="the archive of past searches").add_subparsers(
        required=True, metavar="command"
    )

    def add(name: str, run: Command, help: str, **positional: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help, description=help, parents=[common])
        command.set_defaults(run=run)
        for argument, text in positional.items():
            command.add_argument(argument, metavar=argument.upper(), help=text)
        return command

    _add_record_commands(add)
    _add_archive_commands(add)
    help = "train the pretrained models further with the searches of an archive"
    train = nouns.add_parser("train", help=help, description=help, parents=[common])
    train.set_defaults(run=_train)
    train.add_argument("--estimator", metavar="CLASS", help="only searches of this class, as SVC")
    text = "write a page about the archive: table, map of data sets, what worked"
    _add_report_options(nouns.add_parser("report", help=text, description=text, parents=[common]))
    return parser


def _add_record_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    ls = add("ls", _ls, "list the records")
    ls.add_argument("--name", metavar="TEXT", help="only searches with this text in their name")
    ls.add_argument("--estimator", metavar="TEXT", help="only estimators with this in their name")
    add("path", _path, "print the directory or URL of the archive")
    rm = add("rm", _rm, "remove records")
    rm.add_argument("ids", metavar="ID", nargs="+", help="id of a record")
    new = add("add", _add, "add a table of trials", file="a CSV file: parameters and a score")
    new.add_argument("--estimator", metavar="CLASS", help="such as sklearn.svm.SVC")
    new.add_argument("--score", metavar="COLUMN", help="column of the score, to be maximized")
    new.add_argument("--metric", metavar="NAME", help="name of the score")
    new.add_argument("--name", metavar="TEXT", default="", help="what you call the search")
    add("show", _show, "show one record", id="id of the record")


def _add_archive_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    verify = add("verify", _verify, "read every file and list the problems")
    verify.add_argument(
        "--repair", action="store_true", help="move bad files to the folder 'damaged'"
    )
    add("merge", _merge, "add the records of another archive", src="its directory or URL")
    export = add("export", _export, "write all records to one file", file="a new ZIP file")
    export.add_argument("--overwrite", action="store_true", help="replace an existing file")
    export.add_argument("--samples", action="store_true", help="include samples of the data")
    for part in EXPORT_PARTS[1:]:
        export.add_argument(
            f"--no-{part}", dest=part, action="store_false", help=f"omit the {part}"
        )
    receive = add("import", _import, "add the records of an exported file", file="the file")
    for command in (export, receive):
        # Not the key itself, which other users of the machine could see in the list of processes.
        command.add_argument("--key-file", metavar="FILE", help="file with the key both sides know")
    add("stats", _stats, "count records, trials, estimators and formats")
    prune = add("prune", _prune, "remove old or surplus records")
    prune.add_argument(
        "--older-than", type=float, metavar="DAYS", help="remove records older than this"
    )
    prune.add_argument(
        "--keep-newest", type=int, metavar="N", help="keep the N newest per estimator and data set"
    )
    prune.add_argument("--max-records", type=int, metavar="N", help="keep the N newest in total")
    prune.add_argument("--origin", metavar="NAME", help="remove the records imported from there")
    prune.add_argument("--dry-run", action="store_true", help="list the records, but keep them")


def _add_report_options(report: argparse.ArgumentParser) -> None:
    report.set_defaults(run=_report)
    report.add_argument("--out", default="report.html", metavar="FILE", help="the page to write")
    report.add_argument("--title", metavar="TEXT", help="title of the page")


# -- commands ---------------------------------------------------------------------------------


def _ls(archive: Archive, options: argparse.Namespace) -> Output:
    rows = [
        row
        for row in archive.summaries()
        if (options.name or "").lower() in row["name"].lower()
        and (options.estimator or "").lower() in (row["estimator"] or "").lower()
    ]
    lines = [
        f"{row['id']}  {row['name'] or '-'}  {row['estimator'] or '-'}  {_format_size(row)}  "
        f"{row['metric']}  {row['n_trials']} trials  "
        + ("none succeeded" if row["best"] is None else f"best {row['best']:.6g}")
        + ("" if row["complete"] else "  interrupted")
        for row in rows
    ]
    is_filtered = options.name is not None or options.estimator is not None
    nothing = "No record matches." if is_filtered else "The archive is empty."
    return Output(rows, lines or [nothing])


def _format_size(row: dict[str, Any]) -> str:
    sizes = ("?" if row[name] is None else str(row[name]) for name in ("n_rows", "n_features"))
    return " × ".join(sizes)


def _path(archive: Archive, options: argparse.Namespace) -> Output:
    return Output(str(archive.path), [str(archive.path)])


def _rm(archive: Archive, options: argparse.Namespace) -> Output:
    for id in options.ids:
        archive.remove(id)
    return Output({"removed": options.ids}, [f"{len(options.ids)} removed"])


def _add(archive: Archive, options: argparse.Namespace) -> Output:
    table = {"score": options.score, "metric": options.metric}
    if options.estimator is not None:
        module, _, name = options.estimator.rpartition(".")
        try:
            table["estimator"] = getattr(importlib.import_module(module), name)()
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(f"There is no estimator {options.estimator!r} ({error}).") from None
    id = archive.add(Path(options.file), name=options.name, **table)
    return Output({"id": id}, [id])


def _show(archive: Archive, options: argparse.Namespace) -> Output:
    task = archive[options.id]
    best = None if task.best is None else asdict(task.best)
    shown: dict[str, Any] = {
        "id": task.id,
        "name": task.name or None,
        "created": task.created,
        "format": task.format,
        "complete": task.complete,
        "estimator": task.space["predictors"],
        "metrics": task.metrics,
        "parameters": sorted(task.space["canonical"].values()),
        "n_trials": task.n_trials,
        "n_failed": sum(trial.status != "ok" for trial in task.trials),
        "best": best,
        "data": {
            name: (task.profile or {}).get(name)
            for name in ("kind", "n_rows", "n_features", "n_classes")
        },
        "versions": task.versions,
    }
    lines = [f"{name:<11} {_format_value(value)}" for name, value in shown.items()]
    return Output({**shown, "trials": [asdict(trial) for trial in task.trials]}, lines)


def _verify(archive: Archive, options: argparse.Namespace) -> Output:
    findings = archive.verify(repair=options.repair)
    lines = [str(finding) for finding in findings] or ["No problems found."]
    exit_code = EXIT_PROBLEMS if findings else EXIT_SUCCESS
    return Output([asdict(finding) for finding in findings], lines, exit_code)


def _merge(archive: Archive, options: argparse.Namespace) -> Output:
    return _import_output(archive.merge(options.src))


def _import(archive: Archive, options: argparse.Namespace) -> Output:
    return _import_output(archive.import_(options.file, key=_read_key(options)))


def _read_key(options: argparse.Namespace) -> str | None:
    if options.key_file is None:
        return None
    with open(options.key_file, encoding="utf-8") as file:
        return file.read().strip()


def _import_output(report: ImportReport) -> Output:
    n_added, n_known, n_refused = map(len, (report.added, report.known, report.refused))
    lines = [f"{n_added} added, {n_known} known, {n_refused} refused", *report.refused]
    return Output(asdict(report), lines, EXIT_PROBLEMS if report.refused else EXIT_SUCCESS)


def _export(archive: Archive, options: argparse.Namespace) -> Output:
    parts = {part: getattr(options, part) for part in EXPORT_PARTS}
    n_records = archive.export(
        options.file, key=_read_key(options), overwrite=options.overwrite, **parts
    )
    data = {"records": n_records, "file": options.file}
    return Output(data, [f"{n_records} records in {options.file}"])


def _stats(archive: Archive, options: argparse.Namespace) -> Output:
    estimators: Counter[str] = Counter()
    formats: Counter[str] = Counter()
    n_trials = 0
    dates: list[str] = []
    for task in archive:
        estimators[", ".join(task.space["predictors"]) or "-"] += 1
        formats[str(task.format)] += 1
        n_trials += task.n_trials
        dates.append(task.created)
    counts = {
        "records": estimators.total(),
        "files": len(archive),
        "trials": n_trials,
        "estimators": dict(estimators.most_common()),
        "formats": dict(formats),
        "oldest": min(dates, default=None),
        "newest": max(dates, default=None),
    }
    return Output(counts, [f"{name:<11} {_format_value(value)}" for name, value in counts.items()])


def _prune(archive: Archive, options: argparse.Namespace) -> Output:
    rules = {name: getattr(options, name) for name in PRUNE_RULES}
    if all(value is None for value in rules.values()):
        raise ValueError(
            "Pass at least one of --older-than, --keep-newest, --max-records, --origin."
        )
    removed = archive.prune(**rules, dry_run=options.dry_run)
    action = "would be removed" if options.dry_run else "removed"
    data = {"removed": removed, "dry_run": options.dry_run}
    return Output(data, [*removed, f"{len(removed)} {action}"])


def _train(archive: Archive, options: argparse.Namespace) -> Output:
    from sktransfer.model_selection._continued_training import (
        continue_training,
        format_report,
        report_to_json,
    )

    reports = continue_training(archive, options.estimator)
    exit_code = EXIT_SUCCESS if reports else EXIT_PROBLEMS
    return Output(report_to_json(reports), format_report(reports), exit_code)


def _report(archive: Archive, options: argparse.Namespace) -> Output:
    from sktransfer.inspection import archive_report

    page = archive_report(archive, options.title)
    with open(options.out, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(page)
    data = {"file": options.out, "bytes": os.path.getsize(options.out)}
    return Output(data, [f"The report is in {options.out}"])


# -- formatting -------------------------------------------------------------------------------


def _format_value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_format_value(item)}" for key, item in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_format_value, value)) or "-"
    return "-" if value is None else str(value)


def _to_json(value: object) -> object:
    """Replace NaN and infinities, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
