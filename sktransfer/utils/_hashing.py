"""A digest of what a value holds, the same in every process.

A library's functions and classes are known by their names, as in a pickle. Those of the user's own are known
by their code: a scorer that was edited in a notebook is another scorer under the same name, and a lambda has
no name. So are the functions of one's own that they call. Constants that code reads from its module or class,
and what a function holds that cannot be pickled, are not seen.
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

_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_INSTALLED = {"site-packages", "dist-packages"}
_WRAPPED_AS = ("__func__", "__wrapped__", "func", "fget", "fset", "fn")  # methods, caches, properties, ...
_known: dict[int, tuple[weakref.ref, str | None]] = {}


def hash_bytes(data: bytes | memoryview, size: int) -> bytes:
    """The hash of some bytes, `size` bytes long: the one hash function of this package.

    >>> hash_bytes(b"a", 4).hex()
    'ca234c55'
    """
    return hashlib.blake2b(data, digest_size=size).digest()


def digest(value: Any, code: bool = False) -> str | None:
    """Hash of a value's content; None if it cannot be seen (a lock, an open file).

    Parameters
    ----------
    value : object
    code : bool
        Whether the code of the user's own functions and classes counts. Otherwise only that of functions
        without a name does.

    Examples
    --------
    >>> digest(lambda x: x + 1) == digest(lambda x: x + 1), digest(lambda x: x + 1) == digest(lambda x: x + 2)
    (True, False)
    """
    try:
        return _Hasher(code, []).hash(value)
    except Exception:  # of anybody's __reduce__: what cannot be seen is never the same
        return None


def kept_digest(value: Any) -> str | None:
    """As `digest`, found again as long as the value is there: a fitted model takes its time."""
    key = id(value)
    reference, found = _known.get(key, (None, None))
    if reference is None or reference() is not value:
        found = digest(value)
        with suppress(TypeError):  # nothing weak can refer to it: it is small
            _known[key] = weakref.ref(value, partial(_forget, key)), found
    return found


def _forget(key: int, _: Any) -> None:
    _known.pop(key, None)


def has_name(thing: Any) -> bool:
    """Whether a function or class is what its module has under its name."""
    found: Any = sys.modules.get(getattr(thing, "__module__", None) or "")
    for part in getattr(thing, "__qualname__", "<none>").split("."):
        found = getattr(found, part, None)
    return found is thing


class _Hasher(NumpyHasher):
    """joblib's, but for code, and for sets, whose order differs from process to process.

    Parameters
    ----------
    code : bool
        See `digest`.
    met : list
        Functions and classes that were met, filled here: a value speaks of them by their places. They
        are hashed when the value is done, one after the other, because a chain of calls can be long.
    """

    def __init__(self, code: bool, met: list):
        super().__init__("md5", coerce_mmap=True)
        self._code, self._met = code, met

    def hash(self, obj: Any, return_digest: bool = True) -> str:
        self.dump(obj)
        for thing in self._met:  # which grows
            self.dump(self._function(thing) if isinstance(thing, FunctionType) else _class(thing))
        return self._finished()

    def _finished(self) -> str:
        self._hash.update(self.stream.getvalue())
        return self._hash.hexdigest()

    def save(self, obj: Any) -> None:
        if isinstance(obj, set | frozenset):
            obj = type(obj).__name__, sorted(obj, key=lambda each: (type(each).__name__, repr(each)))
        elif isinstance(obj, FunctionType | type) and self._by_code(obj):
            place = next((i for i, each in enumerate(self._met) if each is obj), None)
            if place is None:
                place = len(self._met)
                self._met.append(obj)
            obj = "code", place
        elif isinstance(obj, np.ndarray) and obj.dtype == object:
            obj = _texts(obj) or obj
        super().save(obj)

    def _by_code(self, thing: Any) -> bool:
        return _is_own(thing) if self._code else isinstance(thing, FunctionType) and not has_name(thing)

    def _function(self, function: FunctionType) -> tuple:
        given = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        held = [self._seen(value) for value in [*given, *_enclosed(function)]]
        return "function", function.__qualname__, _code(function.__code__), held, [*_called(function)]

    def _seen(self, value: Any) -> str:
        """What a function holds; of what cannot be pickled, such as a lock, only what it is."""
        inner = _Hasher(self._code, self._met)
        try:
            inner.dump(value)
        except Exception:  # as above
            return type(value).__qualname__
        return inner._finished()


def _texts(array: np.ndarray) -> tuple | None:
    """An array of texts, some of them missing, as few large pieces; None of an array of other things.

    One by one, the texts of a large table would take longer than a search among small ones.
    """
    items = array.ravel().tolist()
    texts = [x for x in items if type(x) is str]
    missing = [(i, x is None) for i, x in enumerate(items) if x is None or (type(x) is float and x != x)]
    if not texts or len(texts) + len(missing) < len(items):
        return None
    lengths, text = np.array(list(map(len, texts))), "".join(texts).encode("utf-8", "surrogatepass")
    return "texts", array.shape, missing, lengths, text


def _is_own(thing: Any) -> bool:
    """Whether it is from no installed library."""
    if isinstance(thing, ModuleType):
        name, named = thing.__name__, True
    else:
        name, named = thing.__module__, has_name(thing)
    file = getattr(sys.modules.get(name), "__file__", None)
    if name == "__main__" or not named:
        return True
    return file is not None and not file.startswith(_STANDARD) and _INSTALLED.isdisjoint(Path(file).parts)


def _called(function: FunctionType) -> Iterator[Any]:
    """Functions and classes of the user's own that a function speaks of."""
    names = _names(function.__code__)
    for name in names:
        found = function.__globals__.get(name)
        if isinstance(found, ModuleType) and _is_own(found):
            yield from _own(vars(found).get(other) for other in names)
        else:
            yield from _own([found])


def _own(things: Iterable[Any]) -> Iterator[Any]:
    for thing in things:
        yield from (each for each in _inside(thing) if _is_own(each))


def _inside(thing: Any) -> Iterator[Any]:
    """A function or class, or the functions that it wraps."""
    if isinstance(thing, FunctionType | type):
        yield thing
    elif thing is not None:
        inner = [getattr(thing, name, None) for name in _WRAPPED_AS]
        yield from (each for each in inner if isinstance(each, FunctionType))


def _class(cls: type) -> tuple:
    methods = [(name, [*_inside(value)]) for name, value in sorted(vars(cls).items()) if name != "__class__"]
    return "class", cls.__qualname__, cls.__bases__, [part for part in methods if part[1]]


def _code(code: CodeType) -> tuple:
    constants = [_code(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    arguments = code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    return code.co_code, code.co_names, code.co_varnames, arguments, constants


def _names(code: CodeType) -> list[str]:
    """Everything global that the code, and code within it, speaks of."""
    inner = [name for each in code.co_consts if isinstance(each, CodeType) for name in _names(each)]
    return [*code.co_names, *inner]


def _enclosed(function: FunctionType) -> Iterator[Any]:
    """What a function has from around it, but what it changes itself, such as a counter."""
    code = function.__code__
    changed = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_DEREF"}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not assigned yet
            if name not in changed:
                yield cell.cell_contents
