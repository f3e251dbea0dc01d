"""Arrays as text: round trips, and texts that are no arrays."""

import numpy as np
import pytest

from sktransfer.utils._array_text import decode_array, encode_array


@pytest.mark.parametrize("dtype", ["<u4", ">u4", "<u8", "<f8", ">f8", "i2"])
@pytest.mark.parametrize("n", [0, 1, 17])
def test_decode_array_returns_what_was_encoded(dtype, n):
    array = np.arange(n).astype(dtype)
    found = decode_array(encode_array(array), dtype)
    assert found.dtype == np.dtype(dtype) and found.flags.writeable
    np.testing.assert_array_equal(found, array)


def test_encode_array_does_not_depend_on_byte_order():
    numbers = np.array([0.5, -np.inf, np.nan])
    assert encode_array(numbers.astype(">f8")) == encode_array(numbers.astype("<f8"))


def test_decode_array_keeps_special_floats():
    found = decode_array(encode_array(np.array([np.nan, np.inf, -0.0, 5e-324])), float)
    assert repr(found.tolist()) == "[nan, inf, -0.0, 5e-324]"


@pytest.mark.parametrize(
    "text", ["AAA", "AAAA", "????", "AAAAAAA=\n", "größe", None, 5, b"AAAAAAA="]
)
def test_decode_array_refuses_other_texts(text):
    with pytest.raises(ValueError, match="does not hold an array of uint64"):
        decode_array(text, np.uint64)
