"""Arrays of numbers as text: the bytes of the array, little endian, in base64.

A long list of numbers in a pickle is one operation per number, and in JSON it is several times
as long. One text per list is short, and fast to check and to read.
"""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import DTypeLike


def encode_array(array: np.ndarray) -> str:
    """Write a one-dimensional array of numbers as text.

    Parameters
    ----------
    array : ndarray of shape (n,)

    Returns
    -------
    str

    Examples
    --------
    >>> encode_array(np.array([1, 2], dtype=np.uint32))
    'AQAAAAIAAAA='
    """
    little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(little_endian.tobytes()).decode("ascii")


def decode_array(text: object, dtype: DTypeLike) -> np.ndarray:
    """Read an array that `encode_array` wrote.

    Parameters
    ----------
    text : str
        Anything else is refused, because the text may come from an untrusted file.
    dtype : dtype
        The dtype of the array that was written. The text does not contain it.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If `text` is not base64, or is not a whole number of items long.

    Examples
    --------
    >>> decode_array("AQAAAAIAAAA=", np.uint32)
    array([1, 2], dtype=uint32)
    >>> decode_array("AQAAAAI=", np.uint32)
    Traceback (most recent call last):
    ValueError: this text does not hold an array of uint32
    """
    dtype = np.dtype(dtype)
    try:
        if not isinstance(text, str):
            raise ValueError("not a text")
        data = base64.b64decode(text, validate=True)
        return np.frombuffer(data, dtype=dtype.newbyteorder("<")).astype(dtype)
    except ValueError:
        raise ValueError(f"this text does not hold an array of {dtype}") from None
