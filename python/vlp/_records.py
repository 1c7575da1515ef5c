"""What a training left, and what a run needs beside the library."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import tempfile
import threading
import weakref
from typing import Any, Iterator, Optional

from . import _abi as abi
from ._answers import COMPONENTS, parts_of


@dataclasses.dataclass(frozen=True)
class Point:
    """What was recorded at an evaluation on the validation split while a run was trained."""

    step: int
    losses: dict[str, float]  #: by component; those that were trained at that step
    valid_mrr: Optional[float]  #: None without a validation split

    @classmethod
    def _of(cls, point: abi.vlp_history_point) -> Point:
        losses = {name: loss for name, loss in parts_of(point.losses).items() if loss}
        return cls(point.step, losses, point.valid_mrr if point.valid_mrr == point.valid_mrr else None)

    def to_dict(self) -> dict[str, Any]:
        losses = {f"loss_{name}": self.losses.get(name) for name in COMPONENTS}
        return {"step": self.step, **losses, "valid_mrr": self.valid_mrr}


@dataclasses.dataclass(frozen=True)
class TrainReport:
    """How a training went."""

    steps: int  #: done in all
    call_steps: int  #: done in this call
    seconds: float
    steps_per_second: float
    losses: dict[str, float]  #: of the last step
    valid_mrr: Optional[float]  #: the best one; None without a validation split
    stopped: bool = False  #: the callback asked to stop

    @classmethod
    def _of(cls, report: abi.vlp_train_report, stopped: bool) -> TrainReport:
        counts = report.steps, report.call_steps, report.seconds, report.steps_per_second
        losses = {name: loss for name, loss in parts_of(report.losses).items() if loss}
        mrr = report.valid_mrr if report.valid_mrr == report.valid_mrr else None
        return cls(*counts, losses, mrr, stopped)


@dataclasses.dataclass(frozen=True)
class GraphReport:
    """What a run took of another graph."""

    triples: int  #: taken, of its training split
    new_triples: int  #: of these, not in the run's own
    unknown_triples: int  #: left out: they have a name that the run cannot score
    unknown_entities: int
    unknown_relations: int
    unknown_others: int  #: of the other splits, left out
    new_entities: int  #: that got ids


class TemporaryFolder:
    """A folder that is removed with the last reference to this, by the process that made it."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="vlp-")
        self.run = os.path.join(self.path, "run")
        self._finalizer = weakref.finalize(self, self._remove, self.path, os.getpid())

    @staticmethod
    def _remove(path: str, process: int) -> None:
        if os.getpid() == process:
            shutil.rmtree(path, ignore_errors=True)

    def keep(self) -> None:
        self._finalizer.detach()

    def remove(self) -> None:
        self._finalizer()


class SharedLock:
    """A lock that calls share, and that changing the graph has to itself."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._calls = 0
        self._alone = False

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._calls += 1
        try:
            yield
        finally:
            with self._condition:
                self._calls -= 1
                self._condition.notify_all()

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._alone = True
            self._condition.wait_for(lambda: self._calls == 0)
        try:
            yield
        finally:
            with self._condition:
                self._alone = False
                self._condition.notify_all()
