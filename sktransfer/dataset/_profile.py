"""`profile` describes a data set by its kind, sizes, meta-features and a fingerprint of its rows.

``profile(X, y)`` takes whatever GridSearchCV accepts and never fails on it. Each part (the table,
the target, each group of meta-features, the fingerprint) is computed on its own. A part that fails
is left out and mentioned in ``notes``. Notes contain the type of an error, never its message,
which may quote the data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from sklearn import config_context

from sktransfer.dataset import _meta_features as mf
from sktransfer.dataset._fingerprint import digest_rows, estimate_overlap, fingerprint_table
from sktransfer.dataset._patterns import fingerprint_patterns
from sktransfer.dataset._response_curves import curves_of_table
from sktransfer.dataset._row_features import numbers_of_rows
from sktransfer.dataset._scales import measure_scales
from sktransfer.dataset._sketch import sketch
from sktransfer.dataset._table import (
    MatrixLike,
    Table,
    Target,
    TargetLike,
    choose_indices,
    is_kernel_matrix,
    read_numbers,
    read_table,
    read_target,
)
from sktransfer.dataset._target_kind import TARGET_KINDS
from sktransfer.utils._threads import single_threaded

MAX_CLASS_RATIOS = 50
MAX_ENCLOSING = 8  # loops around loops: more are not known
MAX_SAMPLE_COLUMNS = 200
MIN_LANDMARK_ROWS = 6
MIN_DISTINCT_SHARE = 0.995  # see `DatasetProfile.needs_column_order`
MIN_SHARED_SHAPES = 0.5  # see `DatasetProfile.overlap`
MIN_SHARED_PATTERNS, MIN_SHARE_OF_PATTERNS = 4, 0.01  # fewer may agree by chance
MAX_CHANCE_SHARE = 0.001
HASH_FIELDS = (
    "fingerprint",
    "ordered_fingerprint",
    "column_fingerprint",
    "pattern_fingerprint",
    "target_fingerprint",
    "row_digest",
)
"""Fields of a profile that hold hashes. All but the last are sets."""
T = TypeVar("T")
_no_hashes = partial(np.empty, 0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class DatasetProfile:
    """Description of a data set, made by `profile`.

    Parameters
    ----------
    kind : {"classification", "regression", "multilabel", "multioutput", "unsupervised"}
    n_rows : int
    n_features : int or None
        None if X has no columns: text, objects, a precomputed kernel.
    n_classes : int or None
        None unless the kind is "classification".
    class_ratios : tuple of float
        Shares of the classes, largest first, at most 50. Empty unless the kind is "classification".
    meta_features : dict of str to float
        Finite numbers. Features that are not known are absent.
    fingerprint : array of uint64
        The smallest hashes of the distinct rows, sorted, at most 16384. They depend neither on the
        order of rows and columns nor on the container. A hash does not reveal its row, but anyone
        who guesses a whole row can check the guess. So an archive seals them before it writes them.
    n_distinct : int
        Number of distinct hashes from which the fingerprint was taken.
    ordered_fingerprint, n_ordered : array of uint64, int
        The same for hashes that depend on the order of columns. Rows of small whole numbers, such
        as word counts, are often equal up to the order of columns. `overlap` then uses these.
    column_fingerprint : array of uint64
        Hashes of the shapes of columns, independent of their units (see `_fingerprint`).
    pattern_fingerprint, n_patterns : array of uint64, int
        The smallest hashes of patterns of neighboring rows, and the number of patterns. They do not
        depend on the units of columns and are the same in a part of the rows (see `_patterns`).
    target_fingerprint, n_target_patterns : array of uint64, int
        The same for a regression target.
    row_digest : array of uint64, shape (2,)
        Digest of all rows, whatever their order. Empty if the rows are unknown.
    row_hashes : array of uint64, shape (n_rows,)
        Hashes of all rows in their order. They are kept in memory only (see `contains`).
    key : str
        Id of the key with which an archive sealed all these hashes; empty if they are not sealed.
        Sealed hashes can be compared only with those that were sealed with the same key.
    enclosing : tuple of DatasetProfile
        Fingerprints of the data from which these were taken, if they are a part of a
        cross-validation. The other parts of it have no row in common with this one, but past tasks
        on them must be excluded as well.
    notes : tuple of str
        Sentences that say what could not be profiled.
    sketch : dict or None
        Means of fixed random features, from which encoders learn (see `_sketch`). None if X has no
        columns that vary, or too few rows.
    response_curves : dict of str to float
        Scores of simple learners along their complexity (see `_response_curves`). Empty if there
        are too few rows, or X or y does not vary.
    scales : dict of str to float
        Logarithms of the units of the columns and of the target (see `_scales`).
    sample : dict or None
        With ``keep="sample"``, up to 1000 rows: "X", a float array of at most 200 columns without
        missing values, and "y", floats or codes, or None. A text is stored as 128 hashed counts of
        its words, an image as the means of 8 by 8 parts. None by default: no row is stored.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sktransfer.dataset import profile
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
    pattern_fingerprint: np.ndarray = field(default_factory=_no_hashes, repr=False)
    n_patterns: int = 0
    target_fingerprint: np.ndarray = field(default_factory=_no_hashes, repr=False)
    n_target_patterns: int = 0
    row_digest: np.ndarray = field(default_factory=_no_hashes, repr=False)
    row_hashes: np.ndarray = field(default_factory=_no_hashes, repr=False)
    key: str = ""
    enclosing: tuple[DatasetProfile, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    sketch: dict[str, Any] | None = field(default=None, repr=False)
    response_curves: dict[str, float] = field(default_factory=dict, repr=False)
    scales: dict[str, float] = field(default_factory=dict, repr=False)
    sample: dict[str, Any] | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as plain data: numbers, strings, None, lists and dicts.

        The hashes of all rows, `row_hashes`, are left out.

        Examples
        --------
        >>> profile([[1.0], [2.0]]).to_dict()["n_rows"]
        2
        """
        names = [item.name for item in fields(self) if item.name != "row_hashes"]
        return {name: to_plain(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DatasetProfile:
        """Build a profile from the result of `to_dict`. Unknown and missing keys are allowed.

        Examples
        --------
        >>> DatasetProfile.from_dict({"kind": "regression", "n_rows": 10, "color": "red"}).n_rows
        10
        """
        known = {item.name: data[item.name] for item in fields(cls) if item.name in data}
        for name in HASH_FIELDS:
            if name in known:
                known[name] = np.array(known[name], dtype=np.uint64)
        for name in ("class_ratios", "notes"):
            known[name] = tuple(known.get(name, ()))
        known["enclosing"] = tuple(cls.from_dict(part) for part in known.get("enclosing", ()))
        for name in ("meta_features", "response_curves", "scales"):
            known[name] = {k: float(v) for k, v in known.get(name, {}).items()}
        if known.get("sample") is not None:
            parts = known["sample"].items()
            known["sample"] = {k: None if v is None else np.array(v, float) for k, v in parts}
        return cls(**known)

    def overlap(self, other: DatasetProfile) -> float:
        """Estimate which share of the smaller data set's distinct rows is also in the other.

        The data from which either was taken count as well, and the largest share is returned. The
        share is exact if both have at most 16384 distinct rows. Otherwise the error shrinks with
        the number of the smaller set's rows that both fingerprints cover: a thousand common rows
        out of a million are not detected. All rows are taken to be common if both have the same
        number of rows and at least half of the columns have the same shapes. Then the rows were
        rescaled, or columns were left out. They are also taken to be common if at least one in a
        hundred patterns of neighboring rows is the same (see `_patterns`).

        Examples
        --------
        >>> a = profile([[1.0, 2.0], [3.0, 4.0]])
        >>> b = profile([[4.0, 3.0], [5.0, 6.0], [7.0, 8.0]])
        >>> a.overlap(b)
        0.5
        """
        if self.key != other.key:
            raise ValueError(
                "These profiles are sealed with different keys, so their rows cannot be compared. "
                "Archive.select compares data with the records of an archive."
            )
        ours, theirs = (self, *self.enclosing), (other, *other.enclosing)
        return max(one._overlap_itself(two) for one in ours for two in theirs)

    def _overlap_itself(self, other: DatasetProfile) -> float:
        """`overlap` without the enclosing data."""
        ours, theirs = self.column_fingerprint, other.column_fingerprint
        shared_shapes = estimate_overlap(ours, len(ours), theirs, len(theirs))
        if self.n_rows == other.n_rows and shared_shapes >= MIN_SHARED_SHAPES:
            return 1.0
        share = self._share_of_equal_rows(other)
        # Only if hardly any rows are equal: patterns tell that rows are shared, but not how many.
        return 1.0 if share < MAX_CHANCE_SHARE and self._shares_patterns(other) else share

    def _share_of_equal_rows(self, other: DatasetProfile) -> float:
        ours, theirs = self.ordered_fingerprint, other.ordered_fingerprint
        if len(ours) and len(theirs) and (self.needs_column_order or other.needs_column_order):
            return estimate_overlap(ours, self.n_ordered, theirs, other.n_ordered)
        return estimate_overlap(
            self.fingerprint, self.n_distinct, other.fingerprint, other.n_distinct
        )

    def contains(self, other: DatasetProfile) -> bool:
        """Whether all rows of the other data are among these, and there are further rows.

        This is exact. It is known if the other rows are the first ones of these, in any order, or
        if the other data have at most 16384 distinct rows. Otherwise the answer is no.

        Parameters
        ----------
        other : DatasetProfile
            Its `row_hashes` are not needed, so it may come from a record.

        Examples
        --------
        >>> week = profile([[1.0, 2.0], [3.0, 4.0]])
        >>> profile([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).contains(week), week.contains(week)
        (True, False)
        """
        ours = self.row_hashes
        if self.key != other.key or not other.n_ordered < self.n_ordered:
            return False
        if not len(ours) or not len(other.row_digest) or not other.n_rows < self.n_rows:
            return False
        if np.array_equal(digest_rows(ours[: other.n_rows]), other.row_digest):
            return True
        theirs = other.ordered_fingerprint
        return len(theirs) == other.n_ordered and bool(np.isin(theirs, ours).all())

    def _shares_patterns(self, other: DatasetProfile) -> bool:
        """Whether some rows are the same, although columns may have been rescaled."""
        for name, count in (
            ("pattern_fingerprint", "n_patterns"),
            ("target_fingerprint", "n_target_patterns"),
        ):
            ours, theirs = getattr(self, name), getattr(other, name)
            if len(np.intersect1d(ours, theirs, assume_unique=True)) < MIN_SHARED_PATTERNS:
                continue
            share = estimate_overlap(ours, getattr(self, count), theirs, getattr(other, count))
            if share >= MIN_SHARE_OF_PATTERNS:
                return True
        return False

    def _has_same_rows(self, other: DatasetProfile) -> bool:
        same_number = self.n_distinct == other.n_distinct
        return same_number and np.array_equal(self.fingerprint, other.fingerprint)

    @property
    def needs_column_order(self) -> bool:
        """Whether some rows are equal up to the order of columns.

        Rows of unrelated data would then be equal about twice as often.
        """
        return self.n_distinct < MIN_DISTINCT_SHARE * self.n_ordered


def profile(
    X: MatrixLike,
    y: TargetLike = None,
    *,
    keep: str = "sketch",
    enclosing: Sequence[MatrixLike] = (),
    kind: str | None = None,
) -> DatasetProfile:
    """Describe a data set by its kind, sizes, meta-features and a fingerprint of its rows.

    Parameters
    ----------
    X, y : anything GridSearchCV accepts
    keep : {"sketch", "sample"}
        "sample" also stores up to 1000 rows, for encoders that learn from rows.
    enclosing : sequence of X
        Data from which X was taken, as in cross-validation.
    kind : {"classification", "regression"} or None
        Whether numbers in y are classes or amounts. None guesses: whole numbers of which each
        occurs often are classes. Searches pass what the estimator predicts.

    Returns
    -------
    DatasetProfile

    Examples
    --------
    >>> from sktransfer.dataset import profile
    >>> counts = [3, 5, 4, 3, 4, 5]
    >>> profile([[0], [1], [2], [3], [4], [5]], counts, kind="regression").kind
    'regression'
    >>> text = profile(["to be", "or not"], ["a", "b"])
    >>> text.n_features, text.notes[0]
    (None, 'X is text: only its number of rows and the lengths of its texts are known.')
    """
    check_keep(keep)
    if kind not in (None, *TARGET_KINDS):
        raise ValueError(f"kind must be one of {TARGET_KINDS} or None, got {kind!r}")
    with warnings.catch_warnings(), np.errstate(all="ignore"), single_threaded:
        warnings.simplefilter("ignore")
        # Dozens of small models are fitted, whose parameters need not be checked each time.
        with config_context(skip_parameter_validation=True):
            found = _profile_data(X, y, keep, kind)
        # The outermost data come last, and have most rows.
        around = (_profile_rows(data) for data in enclosing[-MAX_ENCLOSING:] if data is not X)
        return replace(found, enclosing=tuple(p for p in around if not p._has_same_rows(found)))


def check_keep(keep: object) -> None:
    """Raise a ValueError if `keep` is not a value that `profile` accepts."""
    if keep not in ("sketch", "sample"):
        raise ValueError(f"keep must be 'sketch' or 'sample', got {keep!r}")


def _profile_rows(X: MatrixLike) -> DatasetProfile:
    """Make a profile that has only fingerprints."""
    attempt = _Attempts()
    table = _read_table(attempt, X)
    hashes = attempt("take a fingerprint of the rows", lambda: fingerprint_table(table)) or {}
    return DatasetProfile("unsupervised", table.n_rows, **hashes)


def _profile_data(X: MatrixLike, y: TargetLike, keep: str, kind: str | None) -> DatasetProfile:
    attempt = _Attempts()
    table = _read_table(attempt, X)
    rows = choose_indices(table.n_rows, mf.MAX_ROWS)
    target = attempt("read y", lambda: read_target(y, rows, kind)) or Target()
    attempt.notes += _limitations(table, target)
    hashes = attempt("take a fingerprint of the rows", lambda: fingerprint_table(table)) or {}
    hashes |= attempt("find patterns of rows", lambda: fingerprint_patterns(table, y)) or {}
    features, sketched, scales = _compute_features(attempt, table, rows, target)
    curves = attempt("compute response curves", lambda: curves_of_table(table, rows, target))
    sample = None
    if keep == "sample":
        sample = attempt("keep a sample", lambda: _sample_rows(table, rows, target))
    ratios = target.ratios if target.kind == "classification" else None
    return DatasetProfile(
        kind=target.kind,
        n_rows=table.n_rows,
        n_features=table.n_columns,
        n_classes=None if ratios is None else len(ratios),
        class_ratios=() if ratios is None else tuple(map(float, ratios[:MAX_CLASS_RATIOS])),
        meta_features={name: value for name, value in features.items() if np.isfinite(value)},
        notes=tuple(attempt.notes),
        sketch=sketched,
        response_curves=curves or {},
        scales=scales,
        sample=sample,
        **hashes,
    )


class _Attempts:
    """Calls functions that may fail, and collects notes about those that did."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def __call__(self, purpose: str, function: Callable[[], T]) -> T | None:
        try:
            return function()
        except Exception as error:  # the user's container may raise anything: the search goes on
            self.notes.append(f"Could not {purpose} ({type(error).__name__}).")
            return None


def _read_table(attempt: _Attempts, X: MatrixLike) -> Table:
    table = (
        attempt("read X", lambda: read_table(X))
        or attempt("count the rows of X", lambda: Table("unknown", len(X)))
        or Table("unknown", 0)
    )
    if attempt("check whether X is a kernel", lambda: is_kernel_matrix(table)):
        table = replace(table, is_kernel=True, n_columns=None)
    return table


def _limitations(table: Table, target: Target) -> list[str]:
    """List what cannot be profiled although nothing failed."""
    notes = []
    if table.is_kernel:
        notes.append("X looks like a precomputed kernel: its columns are not described.")
    elif table.form == "items" and any(isinstance(x, str) for x in table.data[: mf.MAX_ROWS]):
        notes.append("X is text: only its number of rows and the lengths of its texts are known.")
    elif table.form == "items":
        notes.append("X is a list of objects: only its number of rows is known.")
    elif table.form == "unknown":
        notes.append("X cannot be read as a table: only its number of rows is known.")
    elif table.form == "dense" and table.data.ndim > 2:
        notes.append(f"X has {table.data.ndim} dimensions: each row is flattened.")
    if target.n_outputs > 1:
        notes.append(f"y has {target.n_outputs} outputs: meta-features only describe the first.")
    if target.values is not None and not np.isfinite(target.values[:, 0]).all():
        notes.append("y has missing values: rows without a target are left out.")
    return notes


def _compute_features(
    attempt: _Attempts, table: Table, rows: np.ndarray, target: Target
) -> tuple[dict[str, float], dict[str, Any] | None, dict[str, float]]:
    """Compute the meta-features, the sketch and the scales, which use the same numbers."""
    found: dict[str, float] = {}

    def add(what: str, group: Callable[[], dict[str, float]]) -> None:
        found.update(attempt(f"describe {what}", group) or {})

    add("the sizes", lambda: mf.log_sizes(table, target))
    add("y", lambda: mf.target_statistics(target))
    if table.form == "items":
        add("the texts", lambda: mf.text_lengths(table.data, rows))
    if not table.n_columns:
        return found, None, {}
    numbers = attempt("read X as numbers", lambda: read_numbers(table, rows, mf.MAX_COLUMNS))
    if numbers is None:
        return found, None, {}
    add("the cells", partial(mf.cell_shares, *numbers))
    amounts = None
    if target.values is not None and target.ratios is None:
        amounts = target.values[:, 0]
    scales = attempt("measure the units", partial(measure_scales, numbers[0], amounts)) or {}
    scaled = attempt("standardize X", partial(mf.standardize, numbers[0]))
    if scaled is None:
        return found, None, scales
    Z, std = scaled
    add("the columns", lambda: mf.column_moments(Z))
    add("the pairs of columns", lambda: mf.column_pairs(Z, std))
    add("the principal components", lambda: mf.principal_components(Z))
    is_classification = target.ratios is not None
    sketched = attempt("make a sketch", lambda: sketch(Z, target.values, is_classification))
    return found | _score_landmarks(attempt, Z, target), sketched, scales


def _score_landmarks(attempt: _Attempts, Z: np.ndarray, target: Target) -> dict[str, float]:
    if target.values is None:
        return {}
    is_labeled, is_classification = np.isfinite(target.values[:, 0]), target.ratios is not None
    t = target.values[is_labeled, 0]
    Z, t = Z[is_labeled], t if is_classification else mf.to_unit_interval(t)
    if len(t) < MIN_LANDMARK_ROWS or not Z.shape[1] or np.ptp(t) == 0:
        attempt.notes.append(
            "There are too few rows, or X or y does not vary: there are no landmark scores."
        )
        return {}
    models = attempt("import the landmarks", lambda: mf.landmark_models(is_classification)) or {}
    data = attempt("hold rows out", lambda: mf.HeldOutSplit.from_data(Z, t, is_classification))
    if data is None:
        return {}
    scores = {
        name: attempt(
            f"score the landmark {name!r}",
            partial(mf.score_landmark, model, data, is_classification),
        )
        for name, model in models.items()
    }
    return {f"landmark_{name}": score for name, score in scores.items() if score is not None}


def _sample_rows(table: Table, rows: np.ndarray, target: Target) -> dict[str, Any] | None:
    numbers = numbers_of_rows(table, rows, MAX_SAMPLE_COLUMNS)
    if numbers is None:
        return None
    X = mf.impute_medians(numbers)
    if target.values is None:
        return {"X": X, "y": None}
    is_labeled = np.isfinite(target.values).all(axis=1)
    y = target.values[is_labeled]
    return {"X": X[is_labeled], "y": y[:, 0] if target.n_outputs == 1 else y}


def to_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, DatasetProfile):
        return value.to_dict()
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value
