"""Progress, remarks and interruption of one call of the library."""

from __future__ import annotations

import contextlib
import html
import logging
import math
import os
import signal
import sys
import threading
import time
from types import TracebackType
from typing import Any, Callable, Optional

from . import _abi as abi
from ._library import callback_type, check, decode, failure, refuse_after_fork, text_of

_LOG, _PROGRESS, _STOP = (callback_type(abi.vlp_observer, field) for field in ("log", "progress", "stop"))

logger = logging.getLogger("vlp")
logger.addHandler(logging.NullHandler())

# ---- Bars ----


def _short(value: float) -> str:
    """1234567: 1.2 M"""
    for unit in ("", " k", " M"):
        if value < 1000:
            return f"{value:.1f}{unit}" if unit and value < 10 else f"{value:.0f}{unit}"
        value /= 1000
    return f"{value:.1f} G"


class Bar:
    """The progress of one kind of work after the other. The bar of short work is never drawn."""

    pause = 0.1  # seconds between two drawings

    def __init__(self) -> None:
        self._what = ""
        self._started = self._drawn = 0.0

    def progress(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._started, self._drawn = what, now, now
        if total > 0 and done >= total:
            self.clear()
            self._what = ""
        elif now - self._drawn >= self.pause:
            self._drawn = now
            self.draw(what, done, total, done / max(now - self._started, 1e-9))

    def draw(self, what: str, done: int, total: int, rate: float) -> None:
        raise NotImplementedError

    def log(self, line: str) -> None:
        raise NotImplementedError

    def clear(self) -> None:
        """Removes what is drawn."""


def _left(done: int, total: int, rate: float) -> str:
    return f"{math.ceil((total - done) / rate)} s left" if rate > 0 else ""


class TerminalBar(Bar):
    """A line on standard error."""

    width = 24

    def __init__(self) -> None:
        super().__init__()
        self._visible = False

    def draw(self, what: str, done: int, total: int, rate: float) -> None:
        if total > 0:
            filled = self.width * done // total
            bar = "█" * filled + "░" * (self.width - filled)
            line = f"{what:11} {bar} {100 * done // total:3d}%  {_short(rate)}/s  {_left(done, total, rate)}"
        else:
            line = f"{what:11} {done:,}  {_short(rate)}/s"
        print(f"\r{line}\033[K", end="", file=sys.stderr, flush=True)
        self._visible = True

    def log(self, line: str) -> None:
        self.clear()
        print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._visible:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        self._visible = False


class NotebookBar(Bar):
    """A progress element below the cell, updated in place."""

    pause = 0.25

    def __init__(self) -> None:
        super().__init__()
        self._display: Any = None

    def _show(self, text: str) -> None:
        import IPython.display

        display: Any = IPython.display
        if self._display is None:
            self._display = display.display(display.HTML(text), display_id=True)
        else:
            self._display.update(display.HTML(text))

    def draw(self, what: str, done: int, total: int, rate: float) -> None:
        element = f'<progress value="{done}" max="{total}" aria-label="{html.escape(what)}"></progress>' if total > 0 else ""
        left = _left(done, total, rate) if total > 0 else ""
        self._show(f"{html.escape(what)} {element} {done:,}{f' of {total:,}' if total > 0 else ''}, {_short(rate)}/s {left}")

    def log(self, line: str) -> None:
        print(line, flush=True)

    def clear(self) -> None:
        if self._display is not None:
            self._show("")


def _in_notebook() -> bool:
    """Whether this is a kernel, which shows rich output."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    return shell is not None and hasattr(shell, "kernel")


def make_bar(progress: Optional[bool]) -> Optional[Bar]:
    """The bar of `progress`: True, False, or None where it depends on where the output goes."""
    if progress is False:
        return None
    if _in_notebook():
        return NotebookBar()
    terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return TerminalBar() if terminal or progress else None


# ---- Watching a call ----


class Watch:
    """The observer of one call. Use it as a context, and hand the call's status to `finish`.

    While the context is open, Ctrl-C in the main thread asks the library to stop instead of raising an
    exception, which a function that C calls could not pass on. Exceptions of callbacks stop the work
    likewise, and `finish` raises them.
    """

    def __init__(self, bar: Optional[Bar] = None) -> None:
        self.bar = bar
        self.interrupted = False
        self.wanted = False  # a callback asked to stop
        self._raised: Optional[BaseException] = None
        self._before: Any = None
        self._functions = (_LOG(self._log), _PROGRESS(self._progress) if bar else _PROGRESS(), _STOP(self._stop))
        self.observer = abi.vlp_observer(*self._functions, None)

    def guarded(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls Python code from C: an exception is kept, and stops the work."""
        try:
            if self._raised is None:
                return function(*arguments)
        except BaseException as error:  # noqa: BLE001
            self._raised = error
        return None

    def _log(self, _: Any, line: bytes) -> None:
        self.guarded(self.bar.log if self.bar else logger.info, text_of(line))

    def _progress(self, _: Any, what: bytes, done: int, total: int) -> None:
        if self.bar:
            self.guarded(self.bar.progress, decode(what), done, total)

    def _stop(self, _: Any) -> bool:
        return self.interrupted or self.wanted or self._raised is not None

    def _on_interrupt(self, *_: Any) -> None:
        self.interrupted = True

    def __enter__(self) -> Watch:
        refuse_after_fork()
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self.bar:
            with contextlib.suppress(Exception):
                self.bar.clear()

    def finish(self, status: int, path: Any = None) -> None:
        """Raises what the call failed with. Has to be called in the thread of the call, right after it."""
        error = None if status == abi.VLP_OK else failure(status, path)
        if self._raised is not None:
            raise self._raised
        if error is not None:
            raise error
        if self.interrupted:
            raise KeyboardInterrupt


def call(function: Callable[..., int], *arguments: Any, path: Any = None) -> None:
    """Calls a function that has no observer."""
    refuse_after_fork()
    check(function(*arguments), path)
