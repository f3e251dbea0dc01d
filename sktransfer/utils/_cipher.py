"""A block cipher on arrays of 64-bit words, by which hashes are unreadable without a key.

Notation: a word is a pair (x, y) of 32-bit halves, k_0, ..., k_26 are the round keys, and all sums
are modulo 2**32. The cipher is Speck64/128 (Beaulieu et al., The SIMON and SPECK Families of
Lightweight Block Ciphers, 2013, section 4):

    round i:        x <- (x >>> 8) + y xor k_i,  y <- (y <<< 3) xor x
    key schedule:   the same round on (l_i, k_i), with i in place of the key  (section 4.2)

Equal words stay equal, which is what a comparison of hashes needs. Whoever has the key can undo it,
so that hashes can be passed on under another key.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

KEY_BYTES = 16
N_ROUNDS = 27
_BITS, _DOWN, _UP = 32, 8, 3
_MASK = 2**_BITS - 1


def encrypt_words(words: np.ndarray, key: bytes) -> np.ndarray:
    """Encrypt each word of an array on its own.

    Parameters
    ----------
    words : ndarray of uint64
    key : bytes
        Of length 16.

    Returns
    -------
    ndarray of uint64
        Of the same shape.

    Examples
    --------
    >>> words = np.array([0x3B7265747475432D], dtype=np.uint64)
    >>> hex(encrypt_words(words, bytes.fromhex("0001020308090a0b1011121318191a1b"))[0])
    '0x8c6fa548454e028b'
    """
    x, y = _split(words)
    scratch = np.empty_like(x)
    for round_key in _round_keys(key):
        _rotate(x, _BITS - _DOWN, scratch)
        x += y
        x ^= round_key
        _rotate(y, _UP, scratch)
        y ^= x
    return _join(x, y)


def decrypt_words(words: np.ndarray, key: bytes) -> np.ndarray:
    """Undo `encrypt_words`.

    Examples
    --------
    >>> words, key = np.arange(3, dtype=np.uint64), bytes(16)
    >>> decrypt_words(encrypt_words(words, key), key).tolist()
    [0, 1, 2]
    """
    x, y = _split(words)
    scratch = np.empty_like(x)
    for round_key in reversed(_round_keys(key)):
        y ^= x
        _rotate(y, _BITS - _UP, scratch)
        x ^= round_key
        x -= y
        _rotate(x, _DOWN, scratch)
    return _join(x, y)


@lru_cache(maxsize=8)
def _round_keys(key: bytes) -> list[np.uint32]:
    if len(key) != KEY_BYTES:
        raise ValueError(f"The key must have {KEY_BYTES} bytes, got {len(key)}.")
    k, *others = (int.from_bytes(key[i : i + 4], "little") for i in range(0, KEY_BYTES, 4))
    keys = []
    for i in range(N_ROUNDS):
        keys.append(np.uint32(k))
        rotated = (others[i] >> _DOWN | others[i] << (_BITS - _DOWN)) & _MASK
        others.append(((k + rotated) & _MASK) ^ i)
        k = ((k << _UP | k >> (_BITS - _UP)) & _MASK) ^ others[-1]
    return keys


def _rotate(half: np.ndarray, n: int, scratch: np.ndarray) -> None:
    """Rotate each half to the left by n bits, in place."""
    np.right_shift(half, np.uint32(_BITS - n), out=scratch)
    half <<= np.uint32(n)
    half |= scratch


def _split(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    words = np.asarray(words, dtype=np.uint64)
    return (words >> np.uint64(_BITS)).astype(np.uint32), words.astype(np.uint32)


def _join(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x.astype(np.uint64) << np.uint64(_BITS) | y.astype(np.uint64)
