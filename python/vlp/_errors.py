"""Exceptions: one for each status of the library, with its message."""

from __future__ import annotations

from typing import Any

from . import _abi as abi


class Error(Exception):
    """A call of the library failed. The text is the library's message: what went wrong, where, what to do."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class OutOfMemoryError(Error, MemoryError):
    """An allocation failed, of the machine's memory or of the device's."""


class FileError(Error, OSError):
    """A file could not be read or written."""


class MissingFileError(FileError, FileNotFoundError):
    """A file or folder that does not exist."""


class FormatError(Error, ValueError):
    """A file was read, and its content is wrong."""


class UnknownNameError(Error, KeyError):
    """A name that is not known: of an entity, a relation, a setting. The message has the nearest names."""


class ArgumentError(Error, ValueError):
    """An argument out of its range, or a call that makes no sense."""


class Stopped(Error, KeyboardInterrupt):
    """The call was interrupted (Ctrl-C) and left nothing half-done.

    Attributes
    ----------
    folder : str or None
        Where a training or a search was saved; ``resume=True`` continues it.
    """

    folder: str | None = None


class DivergedError(Error, ArithmeticError):
    """A loss, gradient or score is NaN or infinite."""


class DeviceError(Error, RuntimeError):
    """The device that was asked for is missing, or failed."""


class ExistsError(Error, FileExistsError):
    """What was to be made is there already, and is not replaced."""


class BusyError(Error, RuntimeError):
    """The run is in use: another call or process is training it."""


class ForkError(Error, RuntimeError):
    """The process was forked after the library had started its threads."""


OF_STATUS: dict[int, type[Error]] = {
    abi.VLP_ERROR_MEMORY: OutOfMemoryError,
    abi.VLP_ERROR_IO: FileError,
    abi.VLP_ERROR_FORMAT: FormatError,
    abi.VLP_ERROR_UNKNOWN: UnknownNameError,
    abi.VLP_ERROR_ARGUMENT: ArgumentError,
    abi.VLP_ERROR_STOPPED: Stopped,
    abi.VLP_ERROR_DIVERGED: DivergedError,
    abi.VLP_ERROR_DEVICE: DeviceError,
    abi.VLP_ERROR_EXISTS: ExistsError,
    abi.VLP_ERROR_BUSY: BusyError,
}


def no_pickle(thing: Any, why: str) -> Any:
    raise TypeError(f"a {type(thing).__name__} cannot be pickled: {why}")
