"""Training, and the search for settings."""

from __future__ import annotations

import contextlib
import ctypes as c
import dataclasses
import datetime
import json
import os
import pathlib
import re
import tempfile
from typing import Any, Callable, Optional, Union

from . import _abi as abi
from ._errors import ArgumentError, Stopped
from ._graph import Graph
from ._library import Path, callback_type, encode, encode_path, lib, text_of
from ._records import Point, TemporaryFolder, TrainReport
from ._run import Run
from ._tables import frame_of
from ._watch import Bar, Watch, make_bar

Time = Union[str, float, datetime.timedelta, None]
_METRICS = callback_type(abi.vlp_train_options, "metrics")
_WATCH = callback_type(abi.vlp_tune_options, "watch")
_TUNED = {"path": abi.VLP_PATH, "embeddings": abi.VLP_HORIZONTAL, "aggregator": abi.VLP_VERTICAL}


@dataclasses.dataclass(frozen=True)
class Setting:
    """A setting of training."""

    name: str
    section: str
    default: str
    range: str
    help: str


def settings() -> list[Setting]:
    """Every setting, with its default, what it may be, and a line of help.

    Examples
    --------
    >>> [setting.default for setting in vlp.settings() if setting.name == "model"]
    ['rotate']
    """
    found: list[Setting] = []
    info = abi.vlp_setting_info()
    while lib.vlp_setting_describe(c.byref(info), len(found)):
        found.append(Setting(*map(text_of, (info.name, info.section, info.fallback, info.range, info.help))))
    return found


# ---- Arguments ----


def _seconds(time: Time) -> float:
    if isinstance(time, datetime.timedelta):
        time = time.total_seconds()
    if isinstance(time, str):
        if time == "off":
            return 0.0
        match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([smh]?)", time)
        if not match:
            raise ArgumentError(f'time is given as "90s", "10m", "2h", "off" or seconds, not {time!r}')
        time = float(match.group(1)) * {"": 1, "s": 1, "m": 60, "h": 3600}[match.group(2)]
    value = float(time or 0)
    if not 0 <= value < float("inf"):
        raise ArgumentError(f"a time of {value} seconds")
    return value


def _setting(key: str, value: Any) -> bytes:
    if isinstance(value, bool):
        value = "on" if value else "off"
    return encode(f"{key}={value}")


def _recipe(recipe: Optional[Path]) -> Optional[bytes]:
    """A file, or the name of a recipe that the package has."""
    if recipe is None:
        return None
    shipped = pathlib.Path(__file__).parent / "recipes" / f"{os.fspath(recipe)}.ini"
    if not os.path.exists(recipe) and re.fullmatch(r"[\w-]+", os.fspath(recipe)) and shipped.exists():
        return encode_path(shipped)
    return encode_path(recipe)


def _fill(options: Any, recipe: Optional[Path], base: Optional[Path], device: Optional[str], given: dict[str, Any]) -> None:
    """What training and search have in common."""
    texts = [_setting(key, value) for key, value in given.items()]
    options.recipe = _recipe(recipe)
    options.settings, options.setting_count = (c.c_char_p * len(texts))(*texts), len(texts)
    options.device = None if device is None else encode(device)
    options.base = None if base is None else encode_path(base)


# ---- Training ----


def train(
    graph: Union[Graph, Path],
    out: Optional[Path] = None,
    *,
    time: Time = None,
    recipe: Optional[Path] = None,
    device: Optional[str] = None,
    base: Union[Path, Run, None] = None,
    resume: bool = False,
    callback: Optional[Callable[[Point], Any]] = None,
    progress: Optional[bool] = None,
    **settings: Any,
) -> Run:
    """Trains a model and opens it.

    Without a recipe, settings that are not given are chosen by the graph, the device and the time. Ctrl-C saves
    what was trained and raises `Stopped`, which names the folder: `resume` goes on from there.

    Parameters
    ----------
    graph
        A graph, or a folder or file that `Graph.read` reads.
    out
        The run's folder. None: a temporary one, which is removed with the run; `Run.save` keeps it.
    time
        For all of it: "90s", "5m", "2h", a number of seconds or a timedelta; "off": settings that are not given
        have their defaults. None: ten minutes on a CPU, three on a GPU; off with a recipe, a base or `resume`.
    recipe
        A file of settings, or the name of one that the package has ("family", "umls-path" and so on).
    device
        "auto" (a GPU where there is one), "cpu" or "cuda".
    base
        A finished run, over which the vertical aggregator or, with ``path=True``, the path model is trained.
    resume
        Continue from the last save in `out`.
    callback
        Called with a `Point` at every evaluation on the validation split. True as its result stops the
        training, which is saved; an exception does so too, and is raised.
    progress
        Whether a bar is drawn; None: in a terminal or a notebook.
    **settings
        Any of `vlp.settings()`: ``model="complex", dim=200, path=True, seed=1, threads=2``.

    Returns
    -------
    Run
        Its `report` says how the training went.

    Examples
    --------
    >>> run = vlp.train(vlp.Graph.read("examples/europe.tsv"), time="1m")  # doctest: +SKIP
    """
    data = graph if isinstance(graph, Graph) else Graph.read(graph, seed=settings.get("seed", 0), progress=progress)
    options = abi.vlp_train_options.default()
    _fill(options, recipe, base.path if isinstance(base, Run) else base, device, settings)
    options.resume = resume
    planned = recipe is None and base is None and not resume
    options.time = abi.VLP_TIME_DEFAULT if time is None and planned else _seconds(time)
    temporary = TemporaryFolder() if out is None else None
    folder = temporary.run if temporary else os.fspath(out or "")
    try:
        report = _train(data, folder, options, callback, make_bar(progress))
        run = Run(folder, device, int(settings.get("threads", 0)), None, temporary)
    except BaseException as error:
        if temporary and isinstance(error, Stopped) and error.folder:
            temporary.keep()
        elif temporary:
            temporary.remove()
        raise
    run.report = report
    return run


def _train(
    data: Graph, folder: str, options: abi.vlp_train_options, callback: Optional[Callable[[Point], Any]], bar: Optional[Bar]
) -> TrainReport:
    report = abi.vlp_train_report()
    with Watch(bar) as watch:

        def on_metrics(_: Any, point: Any) -> None:
            if callback and watch.guarded(callback, Point._of(point.contents)) is True:
                watch.wanted = True

        metrics = _METRICS(on_metrics) if callback else _METRICS()
        options.metrics, options.observer = metrics, c.pointer(watch.observer)
        status = lib.vlp_train_dataset(c.byref(report), data._names.address, encode_path(folder), c.byref(options))
        early = status == abi.VLP_ERROR_STOPPED and watch.wanted and not watch.interrupted
        try:
            watch.finish(abi.VLP_OK if early else status, folder)
        except Stopped as stopped:
            raise _stopped(stopped, folder) from None
    return TrainReport._of(report, early)


def _stopped(stopped: Stopped, folder: str) -> Stopped:
    """With what became of the training."""
    if not os.path.exists(os.path.join(folder, "config.ini")):
        return Stopped(f"{stopped}; nothing was saved yet")
    error = Stopped(f"{stopped}; it is saved in {folder}: vlp.train(graph, {folder!r}, resume=True) goes on")
    error.folder = folder
    return error


# ---- Searching ----


@dataclasses.dataclass(frozen=True)
class Trial:
    """A training of one candidate of a search."""

    candidate: int
    rung: int
    part: int  #: trained for 1/part of its passes and steps
    mrr: Optional[float]  #: on the validation split; None: the training diverged
    seconds: float
    settings: dict[str, str]

    @classmethod
    def _of(cls, trial: abi.vlp_tune_trial, settings: str) -> Trial:
        values = dict(item.split("=", 1) for item in settings.split())
        mrr = trial.mrr if trial.mrr == trial.mrr else None
        return cls(trial.candidate, trial.rung, trial.part, mrr, trial.seconds, values)


@dataclasses.dataclass(frozen=True)
class Search:
    """The result of a search for settings."""

    folder: str
    recipe: str  #: a file of the best settings, for ``vlp.train(graph, recipe=…)``
    best: Trial
    trials: int  #: finished in all
    call_trials: int  #: finished in this call
    seconds: float
    complete: bool  #: false where the time was up

    def records(self) -> list[dict[str, Any]]:
        """All finished trials, in the order in which they finished."""
        with open(os.path.join(self.folder, "trials.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return [{**{key: line[key] for key in ("candidate", "rung", "mrr", "seconds")}, **line["settings"]} for line in lines[1:]]

    def to_frame(self) -> Any:
        """`records` as a pandas DataFrame."""
        return frame_of(self.records())


def tune(
    graph: Union[Graph, Path],
    out: Path,
    *,
    time: Time = None,
    trials: int = 0,
    component: str = "path",
    recipe: Optional[Path] = None,
    device: Optional[str] = None,
    base: Union[Path, Run, None] = None,
    space: Optional[Path] = None,
    callback: Optional[Callable[[Trial], Any]] = None,
    progress: Optional[bool] = None,
    **settings: Any,
) -> Search:
    """Searches for the settings with the best validation MRR, by successive halving.

    The same call on the same folder goes on with a search that was stopped or killed. Ctrl-C stops; what was
    finished is kept.

    Parameters
    ----------
    graph
        A graph, or a folder or file that `Graph.read` reads.
    out
        The folder of the search: trials.jsonl and best.ini.
    time, trials
        The limits; without either 40 trials.
    component
        What is searched: "path", "embeddings" or "aggregator", which needs a base.
    recipe, device, base
        As in `vlp.train`.
    space
        An INI file of values and ranges; None: the built-in one.
    callback
        Called with each finished `Trial`. True as its result stops the search.
    **settings
        Those that the search does not vary.

    Examples
    --------
    >>> search = vlp.tune(graph, "search", time="30m")  # doctest: +SKIP
    >>> run = vlp.train(graph, "run", recipe=search.recipe)  # doctest: +SKIP
    """
    if component not in _TUNED:
        raise ArgumentError(f"there is no component {component!r} to search; it is one of {', '.join(_TUNED)}")
    options = abi.vlp_tune_options.default()
    _fill(options, recipe, base.path if isinstance(base, Run) else base, device, settings)
    options.space = None if space is None else encode_path(space)
    options.component, options.trials, options.time = _TUNED[component], trials, _seconds(time)
    report = abi.vlp_tune_report()
    bar = make_bar(progress)
    with contextlib.ExitStack() as stack:
        if isinstance(graph, Graph) or not os.path.isdir(graph):
            data = graph if isinstance(graph, Graph) else Graph.read(graph, progress=progress)
            folder = os.path.join(stack.enter_context(tempfile.TemporaryDirectory(prefix="vlp-")), "data")
            data.write(folder)
        else:
            folder = os.fspath(graph)
        watch = stack.enter_context(Watch(bar))
        on_state = _WATCH(_Watcher(watch, bar, callback))
        options.watch, options.observer = on_state, c.pointer(watch.observer)
        status = lib.vlp_tune(c.byref(report), encode_path(folder), encode_path(out), c.byref(options))
        early = status == abi.VLP_ERROR_STOPPED and watch.wanted and not watch.interrupted
        watch.finish(abi.VLP_OK if early else status, folder)
    best = Trial._of(report.best, text_of(report.settings))
    counts = report.trials, report.call_trials, report.seconds, report.complete
    return Search(os.fspath(out), os.path.join(out, "best.ini"), best, *counts)


class _Watcher:
    """Shows the state of a search, and hands its finished trials to the callback."""

    def __init__(self, watch: Watch, bar: Optional[Bar], callback: Optional[Callable[[Trial], Any]]) -> None:
        self._watch, self._bar, self._callback = watch, bar, callback

    def __call__(self, _: Any, pointer: Any) -> None:
        state = pointer.contents
        if self._bar:
            self._watch.guarded(self._bar.progress, "trials", state.count, state.total)
        if self._callback and state.last:
            trial = Trial._of(state.last.contents, text_of(state.last.contents.settings))
            if self._watch.guarded(self._callback, trial) is True:
                self._watch.wanted = True


