"""Untrusted input that several test files share: traps, bad streams and headers."""

import io
import pickle

import numpy as np

from sktransfer.archive._plain_pickle import _add_checksum


class Trap:
    """An object whose unpickling creates the file `marker`."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return open, (self.marker, "w")


def npy_header(shape, descr="<f8"):
    """The header of an ``.npy`` file, which may claim any shape and dtype."""
    buffer = io.BytesIO()
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, fields)
    return buffer.getvalue()


def text(value):
    """The operation of pickle that makes a short text."""
    data = value.encode()
    return pickle.SHORT_BINUNICODE + bytes([len(data)]) + data


def nested(n):
    """The operations of pickle that make `n` nested lists."""
    return b"]" * n + b"a" * (n - 1)


START = b"\x80\x04"
CUT, PICKLE, DAMAGED, TEXT = (
    "cut off",
    "not an uncompressed joblib file",
    "damaged",
    "other than an earlier text",
)
BAD_STREAMS = {  # name -> the content of the file, and the reason in the warning
    "empty": (b"", "it is empty"),
    "one byte": (b"\x80", PICKLE),
    "text": (b"This is no record.\n", PICKLE),
    "random": (np.random.default_rng(0).bytes(5000), PICKLE),
    "another protocol": (pickle.dumps({"format": 1}, protocol=2), PICKLE),
    "no end": (START + b"}", CUT),
    "nothing but an end": (START + b".", DAMAGED),
    "after the end": (START + b"}." + b"}.", "something follows"),
    "persistent id": (START + text("x") + b"Q.", "BINPERSID"),
    "persistent id as text": (START + b"Px\n.", "PERSID"),
    "extension 1": (START + b"\x82\x01.", "EXT1"),
    "extension 2": (START + b"\x83\x01\x00.", "EXT2"),
    "extension 4": (START + b"\x84\x01\x00\x00\x00.", "EXT4"),
    "global as text": (START + b"cos\nsystem\n(" + text("true") + b"tR.", "GLOBAL"),
    "instance": (START + b"(" + text("true") + b"ios\nsystem\n.", "INST"),
    "no operation": (START + b"\xff.", "operation ff"),
    "bytes": (pickle.dumps({"format": b"1"}, protocol=4), "SHORT_BINBYTES"),
    "tuple": (pickle.dumps((1, 2), protocol=4), "TUPLE2"),
    "set": (pickle.dumps({1, 2}, protocol=4), "EMPTY_SET"),
    "memo bomb": (START + b"Nr\xff\xff\xff\x7f0}.", "LONG_BINPUT"),
    "memo entry that is not there": (START + b"h\x00.", TEXT),
    "memo entry far away": (START + b"j\xff\xff\xff\xff.", TEXT),
    "memo entry of a number": (START + b"K\x01\x94.", "MEMOIZE"),
    "memo entry twice": (START + text("x") + b"\x94\x94.", "MEMOIZE"),
    "list in itself": (START + b"]\x94h\x00a.", TEXT),
    "list in two places": (START + b"](]\x94h\x00e.", TEXT),
    "large integer": (START + b"\x8a\x0a" + b"\x01" * 10 + b".", "more than 64 bits"),
    "very large integer": (
        START + b"\x8b" + (2**20).to_bytes(4, "little") + b"\x01" * 2**20 + b".",
        "LONG4",
    ),
    "text beyond the file": (START + b"\x8d" + (2**60).to_bytes(8, "little") + b"x.", CUT),
    "frame beyond the file": (START + b"\x95" + (2**60).to_bytes(8, "little") + b"}.", CUT),
    "damaged text": (START + b"\x8c\x02\xff\xfe.", DAMAGED),
    "key that has no hash": (START + b"}]Ns.", DAMAGED),
    "append to a number": (START + b"K\x01K\x02a.", DAMAGED),
    "deep list": (START + nested(100_000) + b".", "holds a list"),
    "deep record": (
        _add_checksum(
            START
            + b"}("
            + text("format")
            + b"K\x01"
            + text("profile")
            + nested(100_000)
            + text("checksum")
            + b"\x94"
            + text("blake2b:" + "0" * 32)
            + b"\x94u."
        ),
        "more than 40 levels",
    ),
    "no checksum": (pickle.dumps({"format": 1}, protocol=4), "checksum is missing"),
    "no dict": (pickle.dumps([1, 2, 3], protocol=4), "holds a list"),
    "empty dict": (pickle.dumps({}, protocol=4), "'format' is missing"),
}
