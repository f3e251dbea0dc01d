"""Digests of the content of values, identical in every process.

Functions and classes of a library are identified by their names, as in a pickle. Those of the user
are identified by their code, because a scorer that was edited in a notebook keeps its name, and a
lambda has none. The user's functions that they call are included. Two things are not included:
constants that code reads from its module or class, and objects that a function holds and that
cannot be pickled.
"""

from __future__ import annotations

import dis
import hashlib
import sys
import sysconfig
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from joblib.hashing import NumpyHasher

_STANDARD_LIBRARY = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_LIBRARY_FOLDERS = {"site-packages", "dist-packages"}
_WRAPPED_ATTRIBUTES = ("__func__", "__wrapped__", "func", "fget", "fset", "fn")
"""Attributes in which methods, caches, properties, ... hold the function that they wrap."""
_cache: dict[int, tuple[weakref.ref, str | None]] = {}


def hash_bytes(data: bytes | memoryview, size: int) -> bytes:
    """Hash bytes to a digest of `size` bytes. This package uses no other hash function for bytes.

    >>> hash_bytes(b"a", 4).hex()
    'ca234c55'
    """
    return hashlib.blake2b(data, digest_size=size).digest()


def digest(value: object, code: bool = False) -> str | None:
    """Hash the content of a value; None if it cannot be pickled, such as a lock or an open file.

    Parameters
    ----------
    value : object
    code : bool
        Whether all functions and classes of the user are identified by their code. Otherwise only
        functions without an importable name are.

    Examples
    --------
    >>> digest(lambda x: x + 1) == digest(lambda x: x + 1)
    True
    >>> digest(lambda x: x + 1) == digest(lambda x: x + 2)
    False
    """
    try:
        return _Hasher(code, []).hash(value)
    except Exception:  # the user's __reduce__ can raise anything
        return None


def cached_digest(value: object) -> str | None:
    """Return `digest(value)`, computed once in the life of the value: a fitted model takes long."""
    key = id(value)
    reference, found = _cache.get(key, (None, None))
    if reference is None or reference() is not value:
        found = digest(value)
        with suppress(TypeError):  # a type without weak references: such values are small
            _cache[key] = weakref.ref(value, partial(_remove_from_cache, key)), found
    return found


def _remove_from_cache(key: int, _: object) -> None:
    _cache.pop(key, None)


def has_importable_name(value: object) -> bool:
    """Whether a function or class can be found in its module under its name."""
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for part in getattr(value, "__qualname__", "<none>").split("."):
        found = getattr(found, part, None)
    return found is value


class _Hasher(NumpyHasher):
    """joblib's hasher, except for code and for sets, whose order differs between processes.

    Parameters
    ----------
    code : bool
        See `digest`.
    found : list
        Functions and classes that are identified by their code. Values refer to them by their
        position in this list. They are hashed one after the other once the value itself is done,
        because recursion would fail on long chains of calls.
    """

    def __init__(self, code: bool, found: list):
        super().__init__("md5", coerce_mmap=True)
        self._code, self._found = code, found

    def hash(self, obj: object, return_digest: bool = True) -> str:
        self.dump(obj)
        for each in self._found:  # the list grows meanwhile
            is_function = isinstance(each, FunctionType)
            self.dump(self._reduce_function(each) if is_function else _reduce_class(each))
        return self._final_digest()

    def _final_digest(self) -> str:
        self._hash.update(self.stream.getvalue())
        return self._hash.hexdigest()

    def save(self, obj: object) -> None:
        if isinstance(obj, set | frozenset):
            items = sorted(obj, key=lambda item: (type(item).__name__, repr(item)))
            obj = type(obj).__name__, items
        elif isinstance(obj, FunctionType | type) and self._is_identified_by_code(obj):
            obj = "code", self._position(obj)
        elif isinstance(obj, np.ndarray) and obj.dtype == object:
            obj = _join_texts(obj) or obj
        super().save(obj)

    def _position(self, function: FunctionType | type) -> int:
        for position, each in enumerate(self._found):
            if each is function:
                return position
        self._found.append(function)
        return len(self._found) - 1

    def _is_identified_by_code(self, function: FunctionType | type) -> bool:
        if self._code:
            return _is_user_code(function)
        return isinstance(function, FunctionType) and not has_importable_name(function)

    def _reduce_function(self, function: FunctionType) -> tuple:
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        held = [self._hash_held_value(value) for value in [*defaults, *_closure_values(function)]]
        code, calls = _reduce_code(function.__code__), [*_find_user_code(function)]
        return "function", function.__qualname__, code, held, calls

    def _hash_held_value(self, value: object) -> str:
        """Hash a value that a function holds; the name of its type if it cannot be pickled."""
        inner = _Hasher(self._code, self._found)
        try:
            inner.dump(value)
        except Exception:  # as in `digest`
            return type(value).__qualname__
        return inner._final_digest()


def _join_texts(array: np.ndarray) -> tuple | None:
    """Join an array of texts, some of which may be missing; None if it holds anything else.

    Pickling the texts of a large table one by one would take longer than a search on small data.
    """
    items = array.ravel().tolist()
    texts = [x for x in items if type(x) is str]
    missing = [
        (i, x is None)
        for i, x in enumerate(items)
        if x is None or (type(x) is float and x != x)  # NaN
    ]
    if not texts or len(texts) + len(missing) < len(items):
        return None
    lengths, text = np.array(list(map(len, texts))), "".join(texts).encode("utf-8", "surrogatepass")
    return "texts", array.shape, missing, lengths, text


def _is_user_code(value: FunctionType | type | ModuleType) -> bool:
    """Whether a function, class or module does not belong to an installed library."""
    if isinstance(value, ModuleType):
        name, is_importable = value.__name__, True
    else:
        name, is_importable = value.__module__, has_importable_name(value)
    if name == "__main__" or not is_importable:
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or file.startswith(_STANDARD_LIBRARY):
        return False
    return _LIBRARY_FOLDERS.isdisjoint(Path(file).parts)


def _find_user_code(function: FunctionType) -> Iterator[FunctionType | type]:
    """Yield the user's functions and classes that the code of a function names."""
    names = _global_names(function.__code__)
    for name in names:
        found = function.__globals__.get(name)
        if isinstance(found, ModuleType) and _is_user_code(found):
            yield from _select_user_code(vars(found).get(other) for other in names)
        else:
            yield from _select_user_code([found])


def _select_user_code(values: Iterable[object]) -> Iterator[FunctionType | type]:
    for value in values:
        yield from (each for each in _unwrap(value) if _is_user_code(each))


def _unwrap(value: object) -> Iterator[FunctionType | type]:
    """Yield a function or class itself, or the functions that any other object wraps."""
    if isinstance(value, FunctionType | type):
        yield value
    elif value is not None:
        wrapped = [getattr(value, name, None) for name in _WRAPPED_ATTRIBUTES]
        yield from (each for each in wrapped if isinstance(each, FunctionType))


def _reduce_class(cls: type) -> tuple:
    attributes = sorted(vars(cls).items())
    methods = [(name, [*_unwrap(value)]) for name, value in attributes if name != "__class__"]
    return "class", cls.__qualname__, cls.__bases__, [method for method in methods if method[1]]


def _reduce_code(code: CodeType) -> tuple:
    constants = [_reduce_code(x) if isinstance(x, CodeType) else x for x in code.co_consts]
    arguments = code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    return code.co_code, code.co_names, code.co_varnames, arguments, constants


def _global_names(code: CodeType) -> list[str]:
    """List the global names in the code and in the functions defined within it."""
    inner = [n for x in code.co_consts if isinstance(x, CodeType) for n in _global_names(x)]
    return [*code.co_names, *inner]


def _closure_values(function: FunctionType) -> Iterator[object]:
    """Yield the values of a closure, except for variables that the function assigns to."""
    code = function.__code__
    steps = dis.get_instructions(code)
    assigned = {step.argval for step in steps if step.opname == "STORE_DEREF"}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not assigned yet
            if name not in assigned:
                yield cell.cell_contents
