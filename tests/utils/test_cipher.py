"""The block cipher: published vectors, its inverse, and no trace of the words without the key."""

import numpy as np
import pytest

from sktransfer.utils._cipher import decrypt_words, encrypt_words

KEY = bytes.fromhex("0001020308090a0b1011121318191a1b")
WORDS = np.random.default_rng(0).integers(0, 2**64, 5000, dtype=np.uint64)


def mean_bits(words):
    """Mean number of bits that are set in a word."""
    return np.unpackbits(words.view(np.uint8)).sum() / len(words)


def test_encrypt_gives_published_vector():
    """Speck64/128 in appendix C of the paper."""
    words = np.array([0x3B7265747475432D], dtype=np.uint64)
    assert encrypt_words(words, KEY).tolist() == [0x8C6FA548454E028B]


def test_decrypt_undoes_encrypt():
    np.testing.assert_array_equal(decrypt_words(encrypt_words(WORDS, KEY), KEY), WORDS)
    assert len(np.unique(encrypt_words(WORDS, KEY))) == len(WORDS)
    assert encrypt_words(WORDS[:0], KEY).shape == (0,)


def test_another_key_gives_unrelated_words():
    other = KEY[:-1] + b"\0"
    assert 31.5 < mean_bits(encrypt_words(WORDS, KEY) ^ encrypt_words(WORDS, other)) < 32.5


def test_neighboring_words_become_unrelated():
    counted = encrypt_words(np.arange(5000, dtype=np.uint64), KEY)
    assert 31.5 < mean_bits(counted[1:] ^ counted[:-1]) < 32.5


@pytest.mark.parametrize("key", [b"", b"short", bytes(17)])
def test_encrypt_refuses_key_of_other_length(key):
    with pytest.raises(ValueError, match="16 bytes"):
        encrypt_words(WORDS, key)
