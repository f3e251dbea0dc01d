"""What is known of a data set: its kind, sizes, meta-features, and a fingerprint of its rows.

``profile(X, y)`` looks at whatever GridSearchCV accepts and never fails there: each part (the target, the
table, each group of meta-features, the fingerprint) is tried on its own, and what could not be seen is left
out and said in ``notes``. Notes name the kind of an error, never its message, which may quote the data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from sktransfer.dataset import _fingerprint as fp
from sktransfer.dataset import _meta_features as mf
from sktransfer.dataset._column_shapes import fingerprints
from sktransfer.dataset._sketch import sketch
from sktransfer.utils._threads import single_threaded

MAX_CLASS_RATIOS = 50
MAX_SAMPLE_COLUMNS = 200
MIN_LANDMARK_ROWS = 6
IDENTIFYING = 0.995  # see `DatasetProfile.needs_order`
SAME_SHAPES = 0.5  # see `DatasetProfile.overlap`
T = TypeVar("T")
_no_hashes = partial(np.empty, 0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class DatasetProfile:
    """What `profile` found out about a data set.

    Parameters
    ----------
    kind : {"classification", "regression", "multilabel", "multioutput", "unsupervised"}
    n_rows : int
    n_features : int or None
        None if X has no columns: text, objects, a precomputed kernel.
    n_classes : int or None
        None unless the kind is "classification".
    class_ratios : tuple of float
        Shares of the classes, largest first, at most 50; empty unless the kind is "classification".
    meta_features : dict of str to float
        Finite numbers; what is not known is absent.
    fingerprint : array of uint64
        The smallest hashes of the distinct rows, sorted, at most 1024. Blind to the order of rows and
        columns, and to the container. A hash cannot be turned back into its row, but somebody who
        guesses a whole row can check the guess.
    n_distinct : int
        Number of distinct hashes the fingerprint was taken from.
    ordered_fingerprint, n_ordered : array of uint64, int
        The same with every cell tied to the place of its column. Rows of small whole numbers, such as
        word counts, resemble each other once the order of columns is ignored: `overlap` then uses these.
    column_fingerprint : array of uint64
        Hashes of the shapes of columns, blind to their units (see `_column_shapes`).
    enclosing : tuple of DatasetProfile
        Fingerprints of the data that these were taken from, if they are a part of a cross-validation:
        its other parts are none of these rows, and must not be learned from either.
    notes : tuple of str
        What could not be seen, in plain sentences.
    sketch : dict or None
        Means of fixed random features, from which encoders learn (see `_sketch`); None where X has no
        columns that vary, or hardly any rows.
    sample : dict or None
        With ``keep="sample"``, up to 1000 rows: "X", a complete float array of at most 200 columns, and
        "y", floats or codes, or None. None by default: no row is kept.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sktransfer.dataset._profile import profile
    >>> iris = profile(*load_iris(return_X_y=True))
    >>> iris.kind, iris.n_rows, iris.n_features, iris.n_classes
    ('classification', 150, 4, 3)
    """

    kind: str
    n_rows: int
    n_features: int | None = None
    n_classes: int | None = None
    class_ratios: tuple[float, ...] = ()
    meta_features: dict[str, float] = field(default_factory=dict, repr=False)
    fingerprint: np.ndarray = field(default_factory=_no_hashes, repr=False)
    n_distinct: int = 0
    ordered_fingerprint: np.ndarray = field(default_factory=_no_hashes, repr=False)
    n_ordered: int = 0
    column_fingerprint: np.ndarray = field(default_factory=_no_hashes, repr=False)
    enclosing: tuple[DatasetProfile, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    sketch: dict[str, Any] | None = field(default=None, repr=False)
    sample: dict[str, Any] | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as plain data: numbers, strings, None, lists and dicts.

        Examples
        --------
        >>> profile([[1.0], [2.0]]).to_dict()["n_rows"]
        2
        """
        return {item.name: _plain(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DatasetProfile:
        """Build a profile from what `to_dict` returned; keys that are unknown or absent do no harm.

        Examples
        --------
        >>> DatasetProfile.from_dict({"kind": "regression", "n_rows": 10, "color": "red"}).n_rows
        10
        """
        known = {item.name: data[item.name] for item in fields(cls) if item.name in data}
        for name in ("fingerprint", "ordered_fingerprint", "column_fingerprint"):
            if name in known:
                known[name] = np.array(known[name], dtype=np.uint64)
        for name in ("class_ratios", "notes"):
            known[name] = tuple(known.get(name, ()))
        known["enclosing"] = tuple(cls.from_dict(part) for part in known.get("enclosing", ()))
        known["meta_features"] = {k: float(v) for k, v in known.get("meta_features", {}).items()}
        if known.get("sample") is not None:
            parts = known["sample"].items()
            known["sample"] = {name: None if part is None else np.array(part, float) for name, part in parts}
        return cls(**known)

    def overlap(self, other: DatasetProfile) -> float:
        """Estimate which share of the smaller data set's distinct rows is also in the other.

        The data that either was taken from count as well; the largest share is returned. Exact if both
        have at most 1024 distinct rows. Otherwise the error shrinks with the number of the smaller set's
        rows that both sketches cover: a thousand rows out of a million go unseen. All rows are taken to be
        common if there are as many of them and at least half of the columns have the same shapes: then
        they were rescaled, or columns were left out.

        Examples
        --------
        >>> a, b = profile([[1.0, 2.0], [3.0, 4.0]]), profile([[4.0, 3.0], [5.0, 6.0], [7.0, 8.0]])
        >>> a.overlap(b)
        0.5
        """
        ours, theirs = (self, *self.enclosing), (other, *other.enclosing)
        return max(one._own_overlap(two) for one in ours for two in theirs)

    def _own_overlap(self, other: DatasetProfile) -> float:
        ours, theirs = self.column_fingerprint, other.column_fingerprint
        alike = fp.sketch_overlap(ours, len(ours), theirs, len(theirs))
        if self.n_rows == other.n_rows and alike >= SAME_SHAPES:
            return 1.0
        ordered = len(self.ordered_fingerprint) and len(other.ordered_fingerprint)
        if ordered and (self.needs_order or other.needs_order):
            return fp.sketch_overlap(
                self.ordered_fingerprint, self.n_ordered, other.ordered_fingerprint, other.n_ordered
            )
        return fp.sketch_overlap(self.fingerprint, self.n_distinct, other.fingerprint, other.n_distinct)

    def _same_rows(self, other: DatasetProfile) -> bool:
        return self.n_distinct == other.n_distinct and np.array_equal(self.fingerprint, other.fingerprint)

    @property
    def needs_order(self) -> bool:
        """Whether rows become alike without the order of columns; strangers would, about twice as often."""
        return self.n_distinct < IDENTIFYING * self.n_ordered


def profile(X: Any, y: Any = None, *, keep: str = "sketch", enclosing: Sequence[Any] = ()) -> DatasetProfile:
    """Describe a data set by its kind, sizes, meta-features and a fingerprint of its rows.

    Parameters
    ----------
    X, y : anything GridSearchCV accepts
    keep : {"sketch", "sample"}
        "sample" also keeps up to 1000 rows, for the encoders that learn from rows.
    enclosing : sequence of X
        Data that X was taken from, as in cross-validation.

    Returns
    -------
    DatasetProfile

    Examples
    --------
    >>> from sktransfer.dataset._profile import profile
    >>> text = profile(["to be", "or not"], ["a", "b"])
    >>> text.n_features, text.notes[0]
    (None, 'X is text: only its number of rows and the lengths of its texts are known.')
    """
    check_keep(keep)
    with warnings.catch_warnings(), np.errstate(all="ignore"), single_threaded:
        warnings.simplefilter("ignore")
        found = _look(X, y, keep)
        around = (_rows_only(data) for data in enclosing if data is not X)
        return replace(found, enclosing=tuple(p for p in around if not p._same_rows(found)))


def check_keep(keep: Any) -> None:
    """Raise a ValueError if `keep` is not what `profile` takes."""
    if keep not in ("sketch", "sample"):
        raise ValueError(f"keep must be 'sketch' or 'sample', got {keep!r}")


def _read(look: _Attempts, X: Any) -> fp.Table:
    table = (
        look("read X", lambda: fp.read_table(X))
        or look("count the rows of X", lambda: fp.Table("unknown", len(X)))
        or fp.Table("unknown", 0)
    )
    if look("see whether X is a kernel", lambda: fp.looks_like_kernel(table)):
        table = replace(table, is_kernel=True, n_columns=None)
    return table


def _rows_only(X: Any) -> DatasetProfile:
    """Nothing but the fingerprint."""
    look = _Attempts()
    table = _read(look, X)
    hashes = look("take a fingerprint of the rows", lambda: fingerprints(table)) or {}
    return DatasetProfile("unsupervised", table.n_rows, **hashes)


def _look(X: Any, y: Any, keep: str) -> DatasetProfile:
    look = _Attempts()
    table = _read(look, X)
    rows = mf.choose(table.n_rows, mf.MAX_ROWS)
    target = look("read y", lambda: mf.read_target(y, rows)) or mf.Target()
    look.notes += _remarks(table, target)
    hashes = look("take a fingerprint of the rows", lambda: fingerprints(table)) or {}
    features, drawn = _meta_features(look, table, rows, target)
    sample = look("keep a sample", lambda: _sample(table, rows, target)) if keep == "sample" else None
    ratios = target.ratios if target.kind == "classification" else None
    return DatasetProfile(
        kind=target.kind,
        n_rows=table.n_rows,
        n_features=table.n_columns,
        n_classes=None if ratios is None else len(ratios),
        class_ratios=() if ratios is None else tuple(map(float, ratios[:MAX_CLASS_RATIOS])),
        meta_features={name: value for name, value in features.items() if np.isfinite(value)},
        notes=tuple(look.notes),
        sketch=drawn,
        sample=sample,
        **hashes,
    )


class _Attempts:
    """Calls what may fail, and notes what did."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def __call__(self, what: str, how: Callable[[], T]) -> T | None:
        try:
            return how()
        except Exception as error:  # whatever the user's container raises must not cost the search
            self.notes.append(f"Could not {what} ({type(error).__name__}).")
            return None


def _remarks(table: fp.Table, target: mf.Target) -> list[str]:
    """Say what cannot be seen although nothing failed."""
    remarks = []
    if table.is_kernel:
        remarks.append("X looks like a precomputed kernel: its columns are not described.")
    elif table.form == "items" and any(isinstance(item, str) for item in table.data[: mf.MAX_ROWS]):
        remarks.append("X is text: only its number of rows and the lengths of its texts are known.")
    elif table.form == "items":
        remarks.append("X is a list of objects: only its number of rows is known.")
    elif table.form == "unknown":
        remarks.append("X cannot be read as a table: only its number of rows is known.")
    elif table.form == "dense" and table.data.ndim > 2:
        remarks.append(f"X has {table.data.ndim} dimensions: each row is flattened.")
    if target.n_outputs > 1:
        remarks.append(f"y has {target.n_outputs} outputs: meta-features only describe the first.")
    if target.values is not None and not np.isfinite(target.values[:, 0]).all():
        remarks.append("y has missing values: rows without a target are left out.")
    return remarks


def _meta_features(
    look: _Attempts, table: fp.Table, rows: np.ndarray, target: mf.Target
) -> tuple[dict[str, float], dict[str, Any] | None]:
    """The meta-features and the sketch, which look at the same numbers."""
    found: dict[str, float] = {}

    def add(what: str, group: Callable[[], dict[str, float]]) -> None:
        found.update(look(f"describe {what}", group) or {})

    add("the sizes", lambda: mf.sizes(table, target))
    add("y", lambda: mf.target_statistics(target))
    if table.form == "items":
        add("the texts", lambda: mf.text_lengths(table.data, rows))
    if not table.n_columns:
        return found, None
    view = look("read X as numbers", lambda: mf.numeric_view(table, rows, mf.MAX_COLUMNS))
    if view is None:
        return found, None
    add("the cells", partial(mf.cell_shares, *view))
    scaled = look("standardize X", partial(mf.standardize, view[0]))
    if scaled is None:
        return found, None
    Z, std = scaled
    add("the columns", lambda: mf.column_shape(Z))
    add("the pairs of columns", lambda: mf.column_pairs(Z, std))
    add("the principal components", lambda: mf.principal_components(Z))
    classes = target.ratios is not None
    drawn = look("draw a sketch", lambda: sketch(Z, target.values, classes))
    return found | _landmarks(look, Z, target), drawn


def _landmarks(look: _Attempts, Z: np.ndarray, target: mf.Target) -> dict[str, float]:
    if target.values is None:
        return {}
    labeled, classes = np.isfinite(target.values[:, 0]), target.ratios is not None
    t = target.values[labeled, 0]
    Z, t = Z[labeled], t if classes else mf.to_unit_interval(t)
    if len(t) < MIN_LANDMARK_ROWS or not Z.shape[1] or np.ptp(t) == 0:
        look.notes.append("There are too few rows, or X or y does not vary: there are no landmark scores.")
        return {}
    models = look("import the landmarks", lambda: mf.landmark_models(classes)) or {}
    data = look("hold rows out", lambda: mf.HeldOut.of(Z, t, classes))
    if data is None:
        return {}
    judged = {
        name: look(f"score the landmark {name!r}", partial(mf.landmark, model, data, classes))
        for name, model in models.items()
    }
    return {f"landmark_{name}": score for name, score in judged.items() if score is not None}


def _sample(table: fp.Table, rows: np.ndarray, target: mf.Target) -> dict[str, Any] | None:
    if not table.n_columns:
        return None
    X = mf.complete(mf.numeric_view(table, rows, MAX_SAMPLE_COLUMNS)[0])
    if target.values is None:
        return {"X": X, "y": None}
    labeled = np.isfinite(target.values).all(axis=1)
    y = target.values[labeled]
    return {"X": X[labeled], "y": y[:, 0] if target.n_outputs == 1 else y}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, DatasetProfile):
        return value.to_dict()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
