"""The key of an archive, without which the hashes and digests in its records say nothing.

A hash of a row answers the question "is this row in the data?" to everyone who can guess the row,
and rows of a few columns are easy to guess. So hashes are *sealed* before they are written: they
are encrypted with a secret of the archive, which is in the file ``key`` and is never exported.
Equal hashes stay equal under the same key, so the archive itself can still compare them.

The digests that identify a search (for ``resume=True``) are signed with the same secret. So nobody
without it can write a record that passes for an earlier run of a search.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sktransfer.archive._storage import FAULTS, Storage, describe_fault
from sktransfer.dataset import DatasetProfile
from sktransfer.dataset._profile import HASH_FIELDS, to_plain
from sktransfer.exceptions import ArchiveWarning, RecordError
from sktransfer.utils._cipher import KEY_BYTES, decrypt_words, encrypt_words
from sktransfer.utils._user_warnings import warn_user

SECRET_BYTES = 32
SALT_BYTES = 16
HASHES = HASH_FIELDS
SORTED_HASHES = HASH_FIELDS[:-1]
"""Fields of a profile that are sets of hashes. They are sorted again, so that their order is that
of the encrypted values and says nothing about the others."""

COUNTS = ("n_distinct", "n_ordered", "n_patterns", "n_target_patterns")
_SECRET = re.compile(rb"[0-9a-f]{64}\n?")


@dataclass(frozen=True)
class ArchiveKey:
    """A secret that seals the hashes of a profile and signs digests.

    Parameters
    ----------
    secret : bytes

    Examples
    --------
    >>> from sktransfer.dataset import profile
    >>> key, data = ArchiveKey(bytes(32)), profile([[1.0, 2.0], [3.0, 4.0]])
    >>> sealed = key.seal(data)
    >>> bool(np.isin(sealed.fingerprint, data.fingerprint).any()), sealed.key == key.id
    (False, True)
    >>> bool((key.unseal(sealed).fingerprint == data.fingerprint).all())
    True
    """

    secret: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """A name of the key, from which it cannot be computed."""
        return self._derive(b"id", 8).hex()

    @classmethod
    def from_passphrase(cls, passphrase: str | bytes, salt: bytes) -> ArchiveKey:
        """Make the key that two sides share. The salt makes it differ from file to file."""
        if not isinstance(passphrase, str | bytes) or not passphrase:
            raise TypeError(f"key must be a text or bytes, not empty, got {passphrase!r}.")
        text = passphrase.encode() if isinstance(passphrase, str) else passphrase
        # Deliberately slow (RFC 7914): a short passphrase must not be found by trying.
        return cls(hashlib.scrypt(text, salt=salt, n=2**14, r=8, p=1, dklen=SECRET_BYTES))

    def _derive(self, purpose: bytes, size: int) -> bytes:
        return hashlib.blake2b(purpose, digest_size=size, key=self.secret).digest()

    def sign(self, text: str | None) -> str | None:
        """Return a digest of a text that only this key can make; None of None."""
        if text is None:
            return None
        return hmac.digest(self._derive(b"digests", 32), text.encode(), "sha256").hex()[:32]

    def seal(self, data: DatasetProfile) -> DatasetProfile:
        """Encrypt the hashes of a profile. One that is sealed already is returned as it is."""
        if data.key:
            return data
        rows = self._derive(b"rows", KEY_BYTES)
        return _map_hashes(data, lambda words: encrypt_words(words, rows), self.id)

    def unseal(self, data: DatasetProfile) -> DatasetProfile:
        """Undo `seal`. Raise a ValueError if the profile was sealed with another key."""
        if data.key not in ("", self.id):
            raise ValueError("this profile was sealed with the key of another archive")
        rows = self._derive(b"rows", KEY_BYTES)
        return _map_hashes(data, lambda words: decrypt_words(words, rows), "") if data.key else data


def seal_plain(
    profile: Mapping[str, Any], key: ArchiveKey | None, *, as_arrays: bool = False
) -> dict[str, Any]:
    """Seal a profile that is plain data. Without a key, drop its hashes.

    With `as_arrays`, the hashes are arrays afterwards, which are fast to write.
    """
    return _replace_hashes(profile, without_hashes if key is None else key.seal, as_arrays)


def reseal_plain(
    profile: Mapping[str, Any] | None, old: ArchiveKey | None, new: ArchiveKey | None
) -> dict[str, Any] | None:
    """Seal a plain profile with another key. Without `new`, or if `old` is wrong, drop its hashes.

    >>> from sktransfer.dataset import profile
    >>> data = profile([[1.0, 2.0], [3.0, 4.0]]).to_dict()
    >>> keys = [ArchiveKey(bytes([n]) * 32) for n in range(3)]
    >>> sealed = reseal_plain(seal_plain(data, keys[0]), keys[0], keys[1])
    >>> sealed == seal_plain(data, keys[1]), reseal_plain(sealed, keys[0], keys[2])["fingerprint"]
    (True, [])
    """
    if profile is None:
        return None
    if old is None or new is None or profile.get("key") != old.id:
        return _replace_hashes(profile, without_hashes)
    return _replace_hashes(profile, lambda data: new.seal(old.unseal(data)))


def has_open_hashes(profile: Mapping[str, Any] | None) -> bool:
    """Whether a plain profile has hashes that are not sealed."""
    if profile is None or profile.get("key"):
        return False
    return any(profile.get(name) for name in HASHES)


def without_hashes(data: DatasetProfile) -> DatasetProfile:
    """Return a profile without anything by which rows could be recognized."""
    none = np.empty(0, dtype=np.uint64)
    empty: dict[str, Any] = dict.fromkeys(HASHES, none)
    counts: dict[str, Any] = dict.fromkeys(COUNTS, 0)
    return replace(data, **empty, **counts, row_hashes=none, enclosing=(), key="")


def _replace_hashes(
    profile: Mapping[str, Any],
    change: Callable[[DatasetProfile], DatasetProfile],
    as_arrays: bool = False,
) -> dict[str, Any]:
    names = (*HASHES, *COUNTS, "enclosing", "key")
    hashes = {name: profile[name] for name in names if name in profile}
    sizes = {"kind": profile.get("kind", ""), "n_rows": profile.get("n_rows", 0)}
    data = change(DatasetProfile.from_dict({**sizes, **hashes}))
    found = [name for name in names if name in profile or name == "key"]
    changed = {name: getattr(data, name) for name in found}
    kept = HASHES if as_arrays else ()
    return {**profile} | {k: v if k in kept else to_plain(v) for k, v in changed.items()}


def _map_hashes(
    data: DatasetProfile, function: Callable[[np.ndarray], np.ndarray], key_id: str
) -> DatasetProfile:
    """Apply a function to all hashes of a profile at once, those of the data around as well."""
    parts = [data, *data.enclosing]
    arrays = [getattr(part, name) for part in parts for name in HASHES]
    mapped = iter(np.split(function(np.concatenate(arrays)), np.cumsum(list(map(len, arrays)))))
    first, *others = (replace(part, key=key_id, **_take_hashes(mapped)) for part in parts)
    return replace(first, enclosing=tuple(others))


def _take_hashes(arrays: Iterator[np.ndarray]) -> dict[str, Any]:
    found = {name: next(arrays) for name in HASHES}
    return {name: np.sort(a) if name in SORTED_HASHES else a for name, a in found.items()}


# -- the file ------------------------------------------------------------------------------------


def read_key(storage: Storage, *, create: bool = False) -> ArchiveKey | None:
    """Read the key of an archive.

    Parameters
    ----------
    storage : Storage
    create : bool
        Whether to make a key if there is none.

    Returns
    -------
    ArchiveKey or None
        None if there is no key.

    Raises
    ------
    RecordError, OSError
        If there is a file, but it is not a key or cannot be read, or if it cannot be written.
    """
    data = storage.read_key_file()
    if data is None and create:
        storage.write_key_file(secrets.token_hex(SECRET_BYTES).encode() + b"\n")
        data = storage.read_key_file()  # another process may have been first
    if data is None:
        return None
    if not _SECRET.fullmatch(data):
        raise RecordError(storage.key_file, "it is not the key of an archive")
    return ArchiveKey(bytes.fromhex(data.decode()))


def read_key_or_warn(storage: Storage) -> ArchiveKey | None:
    """Return the key of an archive if there is one. If it cannot be read, warn."""
    try:
        return read_key(storage)
    except (*FAULTS, ValueError) as error:  # a RecordError, or a path that cannot be encoded
        warn_user(
            f"The key of the archive cannot be read ({describe_fault(error)}). Without it, it is "
            "not known which past tasks share rows with the current data.",
            ArchiveWarning,
        )
        return None
