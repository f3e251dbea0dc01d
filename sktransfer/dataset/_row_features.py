"""Numbers of rows that are texts or images, so that data sets of one kind share an input space.

A text becomes `N_HASHED` hashed counts of its words, scaled to length 1. An image becomes the means
of `GRID` by `GRID` parts of it, over all channels, whatever its size. An encoder learns its feature
map on top of these numbers (Law et al. 2019, section 4.3, "Extension to other data structures").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sktransfer.dataset._table import Table, read_numbers

N_HASHED = 128
MAX_CHARACTERS = 5000  # of a text that are read
GRID = 8
MAX_CHANNELS = 4  # an axis that is longer is not one of channels


def numbers_of_rows(table: Table, rows: np.ndarray, max_columns: int) -> np.ndarray | None:
    """Rows as numbers: hashed words of texts, pooled pixels of images, or columns; None without."""
    if table.form == "items":
        items = [table.data[row] for row in rows]
        return hash_words(items) if is_text(items) else None
    if is_image(table):
        return pool_images(table.data[rows])
    return read_numbers(table, rows, max_columns)[0] if table.n_columns else None


def is_text(items: Sequence[Any]) -> bool:
    """Whether all items are texts or missing, and at least one is a text."""
    return any(isinstance(item, str) for item in items) and all(
        item is None or isinstance(item, str) or (isinstance(item, float) and np.isnan(item))
        for item in items
    )


def hash_words(texts: Sequence[Any]) -> np.ndarray:
    """Hashed counts of words, each row of length 1; missing texts are zeros; -> (n, N_HASHED).

    >>> same, other = hash_words(["a cat sat", "sat, a CAT", "no dog"])[[0, 2]]
    >>> bool(np.allclose(same, hash_words(["sat, a CAT"])[0])), bool(np.allclose(same, other))
    (True, False)
    """
    from sklearn.feature_extraction.text import HashingVectorizer  # slow to import

    read = [text[:MAX_CHARACTERS] if isinstance(text, str) else "" for text in texts]
    return HashingVectorizer(n_features=N_HASHED).transform(read).toarray()


def is_image(table: Table) -> bool:
    """Whether the rows of a dense table are arrays of two axes, or three with channels."""
    return table.form == "dense" and table.data.ndim in (3, 4) and table.data.dtype.kind in "biuf"


def pool_images(images: np.ndarray) -> np.ndarray:
    """Means of the parts of each image; (n, h, w), (n, h, w, c) or (n, c, h, w) -> (n, GRID²).

    An image of fewer pixels than parts has its pixels repeated.

    >>> large = np.kron(np.eye(8), np.ones((4, 4)))
    >>> bool(np.allclose(pool_images(large[None]), pool_images(np.eye(8)[None])))
    True
    """
    pixels = images.astype(float)
    if pixels.ndim == 4:
        is_last = pixels.shape[-1] <= MAX_CHANNELS or pixels.shape[1] > MAX_CHANNELS
        pixels = pixels.mean(axis=-1 if is_last else 1)
    for axis in (1, 2):
        edges = np.arange(GRID + 1) * pixels.shape[axis] // GRID
        sums = np.add.reduceat(pixels, edges[:-1], axis=axis)  # a single pixel if edges are equal
        counts = np.maximum(np.diff(edges), 1)
        pixels = sums / (counts[:, None] if axis == 1 else counts)
    return pixels.reshape(len(pixels), -1)
