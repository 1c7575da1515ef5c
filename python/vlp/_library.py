"""The shared library: finding it, calling it, and the lifetime of what it gives.

The GIL is released during every call. Objects of the library are freed when the last reference to their
`Handle` is gone; arrays over the library's memory hold one.
"""

from __future__ import annotations

import ctypes as c
import os
import pathlib
from typing import Any, Callable, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _abi as abi
from . import _errors as errors

Path = Union[str, "os.PathLike[str]"]

HEADER_VERSION = f"{abi.VLP_VERSION_MAJOR}.{abi.VLP_VERSION_MINOR}.{abi.VLP_VERSION_PATCH}"


def _load() -> c.CDLL:
    """Loads the library that is beside this file, or the one that VLP_LIBRARY names."""
    path = os.environ.get("VLP_LIBRARY") or str(pathlib.Path(__file__).parent / "lib" / "libvlp.so")
    try:
        library = c.CDLL(path)
    except OSError as error:
        raise ImportError(f"cannot load {path}: {error}; install the package with pip install .") from error
    library.vlp_version.restype = c.c_char_p
    version = library.vlp_version().decode()
    if version != HEADER_VERSION:
        raise ImportError(f"{path} is of version {version}, the package of version {HEADER_VERSION}")
    for name, (result, parameters) in abi.FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


lib = _load()

# ---- Forks: after the first call threads are waiting, which a child process does not have ----

_used = False
_forked = False


def _in_child() -> None:
    global _forked
    _forked = _used


os.register_at_fork(after_in_child=_in_child)


def refuse_after_fork() -> None:
    """Has to come before every call that may work in parallel."""
    global _used
    if _forked:
        raise errors.ForkError(
            "this process was forked after vlp had been used, and the threads of vlp are not in it; "
            'start processes with multiprocessing.get_context("spawn"), or fork before the first use'
        )
    _used = True


# ---- Calls ----


def failure(status: int, path: Optional[Path] = None) -> errors.Error:
    """The exception of a status, with the message of this thread's last failed call."""
    message = (lib.vlp_error_message() or b"").decode("utf-8", "replace")
    kind = errors.OF_STATUS.get(status, errors.Error)
    if kind is errors.FileError and path is not None and not os.path.exists(path):
        kind = errors.MissingFileError
    return kind(message)


def check(status: int, path: Optional[Path] = None) -> None:
    if status != abi.VLP_OK:
        raise failure(status, path)


def encode(text: Any) -> bytes:
    """Text as the library takes it. A NUL would end it early."""
    if not isinstance(text, str):
        raise TypeError(f"a name is a str, not {type(text).__name__}: {text!r}")
    if "\0" in text:
        raise errors.ArgumentError(f"a name with a NUL character: {text!r}")
    return text.encode("utf-8")


def encode_path(path: Path) -> bytes:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise errors.ArgumentError(f"a path with a NUL character: {encoded!r}")
    return encoded


def decode(text: Optional[bytes]) -> Optional[str]:
    return None if text is None else text.decode("utf-8")


def text_of(text: Optional[bytes]) -> str:
    return (text or b"").decode("utf-8")


# ---- Memory of the library ----


class Handle:
    """A pointer of the library, freed with the last reference to this. `holds` is kept alive with it."""

    __slots__ = ("address", "_free", "_holds", "__weakref__")

    def __init__(self, address: Any, free: Optional[Callable[[Any], Any]] = None, holds: Any = None) -> None:
        self.address = address
        self._free = free
        self._holds = holds

    def __del__(self) -> None:
        # The memory of a child process goes with it, and its threads are not there.
        if self._free and not _forked:
            self._free(self.address)


class _Borrowed:
    """Memory of the library as numpy sees it; numpy keeps it as the base of the array."""

    def __init__(self, holds: Any, interface: dict[str, Any]) -> None:
        self.holds = holds
        self.__array_interface__ = interface


def borrow(holds: Any, address: Optional[int], shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A read-only array over memory that lives as long as `holds`."""
    if not address or 0 in shape:
        empty = np.empty(shape, dtype)
        empty.flags.writeable = False
        return empty
    interface = {"version": 3, "shape": shape, "typestr": np.dtype(dtype).str, "data": (address, True)}
    return np.asarray(_Borrowed(holds, interface))


def callback_type(struct: Any, field: str) -> Any:
    """The ctypes class of a function that C calls."""
    return dict(struct._fields_)[field]


def address_of(pointer: Any) -> Optional[int]:
    return c.cast(pointer, c.c_void_p).value


def as_triples(array: npt.NDArray[np.int32]) -> Any:
    """A pointer to the rows of a contiguous (count, 3) int32 array."""
    return array.ctypes.data_as(c.POINTER(abi.vlp_triple))
