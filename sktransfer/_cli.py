"""``python -m sktransfer archive ...``: look after an archive from the command line.

Exit codes: 0, all is well; 1, `verify` found something, or not every record could be taken; 2, a mistake of
the user, such as an unknown id, said in one line.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sktransfer.archive import Archive, is_remote

OK, FOUND, MISTAKE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code.

    Examples
    --------
    >>> main(["archive", "ls"])
    The archive is empty.
    0
    """
    options = _parser().parse_args(arguments)
    try:
        # A warning is one line too, not a line of somebody's source.
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = _show_warning
            archive = Archive(options.archive)
            if options.run not in (_merge, _import) and options.archive != "auto":
                _say_if_missing(options.archive)
            result, lines, code = options.run(archive, options)
        if options.json:
            lines = [json.dumps(_jsonable(result), allow_nan=False)]
        _say("\n".join(map(_printable, lines)))
    except (OSError, KeyError, ValueError, TypeError, ImportError) as error:
        # The text of a KeyError is its repr.
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        print(f"error: {_printable(str(text))}", file=sys.stderr)
        return MISTAKE
    return code


def _say_if_missing(path: str) -> None:
    """A mistyped path must not look like an empty archive."""
    if not is_remote(path) and not os.path.exists(os.path.expanduser(path)):
        warnings.warn(f"There is no archive at {path} yet.", stacklevel=2)


def _say(text: str) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        # What the terminal has no letters for must not hide the rest.
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _printable(line: str) -> str:
    """A record may be a stranger's: nothing in it is to clear the screen, or to make up a line.

    >>> _printable("SVC\\x1b[2J")
    'SVC\\\\x1b[2J'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"warning: {_printable(str(message))}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--archive",
        default="auto",
        metavar="PATH",
        help="directory or address; default: the user's own archive",
    )
    common.add_argument("--json", action="store_true", help="print one line of JSON")
    parser = argparse.ArgumentParser(prog="python -m sktransfer", description="Look after an archive.")
    nouns = parser.add_subparsers(required=True, metavar="archive")
    commands = nouns.add_parser("archive", help="the archive of past tunings").add_subparsers(
        required=True, metavar="command"
    )

    def command(name: str, run: Any, help: str, **positional: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help, parents=[common])
        made.set_defaults(run=run)
        for argument, text in positional.items():
            made.add_argument(argument, metavar=argument.upper(), help=text)
        return made

    command("ls", _ls, "list the records")
    command("show", _show, "show one record", id="its id")
    verify = command("verify", _verify, "read every file and list what is wrong")
    verify.add_argument("--repair", action="store_true", help="move bad files to the folder 'damaged'")
    command("merge", _merge, "take in the records of another archive", src="its directory or address")
    export = command("export", _export, "write all records to one file", file="a new ZIP file")
    export.add_argument("--samples", action="store_true", help="with samples of the data")
    for part in ("fingerprints", "names", "times"):
        export.add_argument(f"--no-{part}", dest=part, action="store_false", help=f"without {part}")
    command("import", _import, "take in the records of an exported file", file="the file")
    command("stats", _stats, "count what is there")
    prune = command("prune", _prune, "remove records that are old or too many")
    prune.add_argument("--older-than", type=float, metavar="DAYS")
    prune.add_argument("--keep-newest", type=int, metavar="N", help="per estimator and data set")
    prune.add_argument("--max-records", type=int, metavar="N")
    prune.add_argument("--dry-run", action="store_true", help="only say what would go")
    return parser


# -- commands: what --json prints, the lines that are printed without it, and the exit code -----------


def _ls(archive: Archive, options: argparse.Namespace) -> tuple[Any, list[str], int]:
    rows = [
        {
            "id": task.id,
            "created": task.created,
            "estimator": ", ".join(task.space["predictors"]) or None,
            "n_trials": task.n_trials,
            "best": None if task.best is None else task.best.score,
        }
        for task in archive
    ]
    lines = [
        f"{row['id']}  {row['created']}  {row['estimator'] or '-'}  {row['n_trials']} trials  "
        + ("none succeeded" if row["best"] is None else f"best {row['best']:.6g}")
        for row in rows
    ]
    return rows, lines or ["The archive is empty."], OK


def _show(archive: Archive, options: argparse.Namespace) -> tuple[Any, list[str], int]:
    task = archive[options.id]
    best = None if task.best is None else asdict(task.best)
    shown: dict[str, Any] = {
        "id": task.id,
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
            name: (task.profile or {}).get(name) for name in ("kind", "n_rows", "n_features", "n_classes")
        },
        "versions": task.versions,
    }
    lines = [f"{name:<11} {_text(value)}" for name, value in shown.items()]
    return {**shown, "trials": [asdict(trial) for trial in task.trials]}, lines, OK


def _verify(archive: Archive, options: argparse.Namespace) -> tuple[Any, list[str], int]:
    findings = archive.verify(repair=options.repair)
    lines = [str(finding) for finding in findings] or ["Every file is sound."]
    return [asdict(finding) for finding in findings], lines, FOUND if findings else OK


def _merge(archive: Archive, options: argparse.Namespace) -> tuple[Any, list[str], int]:
    return _received(archive.merge(options.src))


def _import(archive: Archive, options: argparse.Namespace) -> tuple[Any, list[str], int]:
    return _received(archive.import_(options.file))


def _received(received: Any) -> tuple[Any, list[str], int]:
    lines = [f"{len(received.added)} added, {len(received.known)} known, {len(received.refused)} refused"]
    return asdict(received), lines + list(received.refused), FOUND if received.refused else OK


def _export(archive: Archive, options: argparse.Namespace) -> tuple[Any, list[str], int]:
    parts = {part: getattr(options, part) for part in ("samples", "fingerprints", "names", "times")}
    n_records = archive.export(options.file, **parts)
    return {"records": n_records, "file": options.file}, [f"{n_records} records in {options.file}"], OK


def _stats(archive: Archive, options: argparse.Namespace) -> tuple[Any, list[str], int]:
    estimators: Counter[str] = Counter()
    formats: Counter[str] = Counter()
    n_trials, dates = 0, []
    for task in archive:
        estimators[", ".join(task.space["predictors"]) or "-"] += 1
        formats[str(task.format)] += 1
        n_trials += task.n_trials
        dates.append(task.created)
    counted = {
        "records": estimators.total(),
        "files": len(archive),
        "trials": n_trials,
        "estimators": dict(estimators.most_common()),
        "formats": dict(formats),
        "oldest": min(dates, default=None),
        "newest": max(dates, default=None),
    }
    return counted, [f"{name:<11} {_text(value)}" for name, value in counted.items()], OK


def _prune(archive: Archive, options: argparse.Namespace) -> tuple[Any, list[str], int]:
    rules = {name: getattr(options, name) for name in ("older_than", "keep_newest", "max_records", "dry_run")}
    if all(rules[name] is None for name in ("older_than", "keep_newest", "max_records")):
        raise ValueError("Say what may go: --older-than, --keep-newest or --max-records.")
    gone = archive.prune(**rules)
    said = "would go" if options.dry_run else "removed"
    return {"removed": gone, "dry_run": options.dry_run}, [*gone, f"{len(gone)} {said}"], OK


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_text(item)}" for key, item in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value)) or "-"
    return "-" if value is None else str(value)


def _jsonable(value: Any) -> Any:
    """With null for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
