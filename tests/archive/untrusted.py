"""Objects and files that run code when they are read carelessly."""

import io

import numpy as np


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
