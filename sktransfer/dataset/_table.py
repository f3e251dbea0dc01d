"""Read X and y: X as a table of cells, y as a target, and cells as numbers.

Notation: n rows, p columns. Nothing here modifies X or y, and cells are copied only where that
cannot be avoided.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

MatrixLike: TypeAlias = Any
"""X as GridSearchCV accepts it: an array, a DataFrame, a sparse matrix, a list, or any object that
has a length and can be indexed."""

TargetLike: TypeAlias = Any
"""y as GridSearchCV accepts it: a list, an array, a frame, a sparse matrix or None."""

MAX_ITEMS = 10_000  # items read one by one from an object that only has a length and can be indexed
MAX_COPIED_CELLS = 1 << 22  # cells of a DataFrame that are copied at once
BLOCK_CELLS = 1 << 15  # cells processed at once, so that they stay in the processor's cache
MAX_INSPECTED_LABELS = 1000
MAX_NUMBER_LENGTH = 64  # characters of a text that can be a number
NUMERIC = "biufmM"  # dtype kinds that convert to float64 as a whole


@dataclass(frozen=True)
class Table:
    """X in one of five forms.

    Parameters
    ----------
    form : {"dense", "sparse", "frame", "items", "unknown"}
        An array, a CSR matrix, columns that are read one at a time, a list of objects, or an object
        that cannot be read.
    n_rows : int
    n_columns : int or None
        None if X has no columns: a list of objects, a precomputed kernel.
    data : object
    is_kernel : bool
        Whether X is a precomputed kernel.
    """

    form: str
    n_rows: int
    n_columns: int | None = None
    data: Any = None
    is_kernel: bool = False

    def column(self, j: int, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Column j of a dense table or a frame, as a one-dimensional array."""
        if self.form == "frame":
            return self.data(int(j), rows)
        return self.data[(rows, *np.unravel_index(j, self.data.shape[1:]))]


# -- X ---------------------------------------------------------------------------------------------


def read_table(X: MatrixLike) -> Table:
    """Find the form of X."""
    if sparse.issparse(X):
        return _read_sparse(X)
    if len(getattr(X, "shape", ())) == 2 and hasattr(X, "columns") and hasattr(X, "dtypes"):
        return _read_frame(X)
    values = _as_array(X)
    if values is None:
        return Table("unknown", len(X))
    if values.ndim == 1 and values.dtype.kind not in NUMERIC:
        return Table("items", len(values), None, values.tolist())
    values = values[:, None] if values.ndim == 1 else values
    return Table("dense", len(values), int(np.prod(values.shape[1:])), values)


def _read_sparse(X: sparse.spmatrix) -> Table:
    rows = X.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()  # sum_duplicates works in place, and X belongs to the caller
        rows.sum_duplicates()
    return Table("sparse", int(rows.shape[0]), int(rows.shape[1]), rows)


def _read_frame(X: MatrixLike) -> Table:
    """Read a DataFrame of pandas or polars; a wide one of numbers as an array."""
    n, p = map(int, X.shape)
    if p > 100 and n * p <= MAX_COPIED_CELLS and all(map(_is_numeric_dtype, X.dtypes)):
        return Table("dense", n, p, np.asarray(X))
    if hasattr(X, "iloc"):
        return Table("frame", n, p, lambda j, rows: _pandas_values(X.iloc[:, j].iloc[rows]))
    return Table("frame", n, p, lambda j, rows: np.asarray(X[:, j][rows]))


def _is_numeric_dtype(dtype: object) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return dtype.is_numeric()
    return isinstance(dtype, np.dtype) and dtype.kind in "iuf"


def _pandas_values(series: Any) -> np.ndarray:
    dtype = series.dtype
    is_nullable = not isinstance(dtype, np.dtype) and getattr(dtype, "kind", "O") in "biuf"
    return series.to_numpy(dtype="float64", na_value=np.nan) if is_nullable else np.asarray(series)


def _as_array(X: MatrixLike) -> np.ndarray | None:
    """Convert X to an array; None if it is too long to be read item by item."""
    if isinstance(X, np.ndarray) or hasattr(X, "__array__"):
        return np.asarray(X)
    if not isinstance(X, (list, tuple)):
        if len(X) > MAX_ITEMS:
            return None
        X = [X[i] for i in range(len(X))]
    # numpy would pad all texts to the length of the longest, and convert numbers beside texts to
    # text.
    first = X[0] if len(X) and isinstance(X[0], (list, tuple)) else X[:1]
    has_text = any(isinstance(cell, (str, bytes)) for cell in first)
    with suppress(ValueError):  # rows of different lengths
        values = np.asarray(X, dtype=object if has_text else None)
        return np.asarray(X, dtype=object) if values.dtype.kind in "US" else values
    values = np.empty(len(X), dtype=object)
    values[:] = X
    return values


def is_kernel_matrix(table: Table) -> bool:
    """Whether the table is a square symmetric matrix of numbers, up to rounding."""
    n, X = table.n_rows, table.data
    is_square = table.form in ("dense", "sparse") and X.shape == (n, n) and n >= 3
    if not is_square or X.dtype.kind not in "biuf":
        return False
    if table.form == "sparse":
        X = X.astype(np.float64)  # booleans cannot be subtracted
        largest = abs(X).max()
        # Transposing takes long, and sums of rows and of columns nearly always tell.
        rows, columns = (np.asarray(X.sum(axis=axis)).ravel() for axis in (1, 0))
        if np.abs(rows - columns).max() > 2e-8 * n * largest:
            return False
        return bool(abs(X - X.T).max() <= 1e-8 * largest)
    step = BLOCK_CELLS // n + 1
    blocks = (slice(start, start + step) for start in range(0, n, step))
    return all(np.allclose(X[i], X[:, i].T, rtol=1e-8, atol=0.0, equal_nan=True) for i in blocks)


# -- cells as numbers ------------------------------------------------------------------------------


def as_number(value: object) -> float | None:
    """Convert one cell to a float: NaN if it is missing, None if it is not a number.

    >>> as_number("1.5"), as_number(True), as_number(None), as_number("red")
    (1.5, 1.0, nan, None)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return np.nan
    if isinstance(value, datetime):
        value = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        value = np.datetime64(value, "us")
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return float(as_floats(np.asarray(value)))
    if isinstance(value, str):
        if len(value) > MAX_NUMBER_LENGTH:
            return None  # float() of a long text takes long to fail
    elif not hasattr(type(value), "__float__"):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def as_floats(values: np.ndarray) -> np.ndarray:
    """Convert an array of a `NUMERIC` kind to a new float64 array; times in microseconds."""
    if values.dtype.kind not in "mM":
        return values.astype(np.float64)
    unit = "datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]"
    microseconds = values.astype(unit).astype(np.int64).astype(np.float64)
    return np.where(np.isnat(values), np.nan, microseconds)


def choose_indices(n: int, size: int) -> np.ndarray:
    """Choose at most `size` of the integers below n, sorted; the same ones every time."""
    if n <= size:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, size, replace=False))


def read_numbers(table: Table, rows: np.ndarray, max_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Read some rows and columns as numbers.

    Parameters
    ----------
    table : Table
    rows : ndarray of int
    max_columns : int

    Returns
    -------
    values : ndarray of shape (len(rows), k), k <= max_columns
        NaN where a cell is missing; categories as ordinal codes.
    is_categorical : ndarray of bool, shape (k,)
    """
    if table.form == "sparse":
        values = _fullest_columns(table.data[rows], max_columns)
        return values, np.zeros(values.shape[1], dtype=bool)
    columns = choose_indices(table.n_columns or 0, max_columns)
    if table.form == "dense" and table.data.dtype.kind in NUMERIC:
        # Indexing all axes at once copies the chosen pixels of an image only.
        index = np.unravel_index(columns, table.data.shape[1:])
        values = as_floats(table.data[(rows[:, None], *index)])
        return values, np.zeros(len(columns), dtype=bool)
    read = [read_numeric_column(table.column(j, rows)) for j in columns]
    values = np.array([column for column, _ in read]).reshape(len(columns), len(rows)).T
    return values, np.array([is_categorical for _, is_categorical in read], dtype=bool)


def _fullest_columns(X: sparse.csr_matrix, max_columns: int) -> np.ndarray:
    """Densify the columns with most entries: 100 random ones of 100,000 words would be zero."""
    entries = np.bincount(X.indices, minlength=X.shape[1])
    fullest = np.sort(np.argsort(-entries, kind="stable")[:max_columns])
    return X[:, fullest].toarray().astype(np.float64)


def read_numeric_column(values: np.ndarray) -> tuple[np.ndarray, bool]:
    """Read one column as floats, and find out whether it is categorical.

    A column that does not consist of numbers is categorical. Its cells are replaced by ordinal
    codes, in the alphabetical order of their texts.

    >>> read_numeric_column(np.array(["b", "a", None, "b"], dtype=object))
    (array([ 1.,  0., nan,  1.]), True)
    """
    if values.dtype.kind in NUMERIC:
        return as_floats(values), False
    cells = values.tolist()
    try:
        known = {cell: as_number(cell) for cell in set(cells)}
    except TypeError:  # cells that are not hashable, such as lists
        cells = [str(cell) for cell in cells]
        known = {cell: as_number(cell) for cell in set(cells)}
    is_categorical = None in known.values()
    if is_categorical:
        present = {cell for cell, x in known.items() if x is None or not np.isnan(x)}
        texts = sorted({str(cell) for cell in present})
        codes = {text: float(code) for code, text in enumerate(texts)}
        known = {cell: codes[str(cell)] if cell in present else np.nan for cell in known}
    return np.array([known[cell] for cell in cells], dtype=np.float64), is_categorical


# -- y ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """The kind of y, its values at the chosen rows, and its class ratios.

    Parameters
    ----------
    kind : {"classification", "regression", "multilabel", "multioutput", "unsupervised"}
    values : ndarray of shape (len(rows), n_outputs) or None
        NaN where missing. Classes of the first output are codes.
    ratios : ndarray or None
        Class ratios of the first output, largest first; None if it does not consist of classes.
    """

    kind: str = "unsupervised"
    values: np.ndarray | None = None
    ratios: np.ndarray | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs, 0 without a target."""
        return 0 if self.values is None else self.values.shape[1]


def read_target(y: TargetLike, rows: np.ndarray, kind: str | None = None) -> Target:
    """Find the kind of y, and read the chosen rows of it as numbers.

    `kind` says whether numbers are classes or amounts, which is guessed otherwise.
    """
    if y is None:
        return Target()
    y = y.tocsr() if sparse.issparse(y) else np.asarray(y)
    y = y.ravel() if y.ndim == 2 and y.shape[1] == 1 and not sparse.issparse(y) else y
    first = y if y.ndim == 1 else y[:, [0]].toarray().ravel() if sparse.issparse(y) else y[:, 0]
    numbers, is_categorical = read_numeric_column(first)
    finite = np.isfinite(numbers)
    ratios = None
    are_classes = is_categorical or _has_text(first)
    if not are_classes:
        are_classes = kind == "classification" if kind else _are_classes(numbers[finite])
    if are_classes:
        _, codes, counts = np.unique(numbers[finite], return_inverse=True, return_counts=True)
        numbers[finite] = codes
        ratios = np.sort(counts / counts.sum())[::-1]
    if y.ndim == 1:
        found = "regression" if ratios is None else "classification"
        return Target(found, numbers[rows, None], ratios)
    outputs = y[rows].toarray() if sparse.issparse(y) else y[rows].reshape(len(rows), -1)
    others = (read_numeric_column(column)[0] for column in outputs.T[1:])
    return Target(_kind_of_outputs(y), np.column_stack([numbers[rows], *others]), ratios)


def _has_text(labels: np.ndarray) -> bool:
    inspected = labels[:MAX_INSPECTED_LABELS]
    return labels.dtype.kind in "OUS" and any(isinstance(x, (str, bytes)) for x in inspected)


def _are_classes(numbers: np.ndarray) -> bool:
    """Whether numbers are class labels rather than amounts.

    scikit-learn calls every target of whole numbers "multiclass". Many values that hardly repeat
    (the diabetes data: 214 in 442 rows) count as amounts here.
    """
    if not len(numbers) or type_of_target(numbers) not in ("binary", "multiclass"):
        return False
    n_values = len(np.unique(numbers))
    return n_values <= 20 or 5 * n_values <= len(numbers)


def _kind_of_outputs(y: TargetLike) -> str:
    try:
        return "multilabel" if type_of_target(y) == "multilabel-indicator" else "multioutput"
    except (TypeError, ValueError):  # missing values, or text beside numbers
        return "multioutput"
