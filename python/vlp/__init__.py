"""Completes knowledge graphs: learns from known triples, predicts missing ones, and shows what a prediction rests on.

>>> import vlp
>>> graph = vlp.Graph.read("examples/europe.tsv")  # doctest: +SKIP
>>> run = vlp.train(graph, time="1m")  # doctest: +SKIP
>>> run.predict("germany", "borders", k=3)  # doctest: +SKIP

`Graph` holds triples, `train` and `open` give a `Run`, and a run evaluates, predicts, explains, scores and mines.
Everything that can fail raises an `Error`.
"""

from ._answers import (
    Answers,
    Explanation,
    Mined,
    MinedTriple,
    Path,
    Prediction,
    Reference,
    RelationAnswers,
    RelationPrediction,
    Scores,
    Step,
    Support,
    Triple,
    WhatIf,
)
from ._errors import (
    ArgumentError,
    BusyError,
    DeviceError,
    DivergedError,
    Error,
    ExistsError,
    FileError,
    ForkError,
    FormatError,
    MissingFileError,
    OutOfMemoryError,
    Stopped,
    UnknownNameError,
)
from ._evaluation import Evaluation, Group, Interval, Metrics
from ._facts import Audit, RelationPair, Stats
from ._graph import Graph
from ._library import HEADER_VERSION as __version__
from ._records import GraphReport, Point, TrainReport
from ._run import Run
from ._run import open_run as open
from ._training import Search, Setting, Trial, settings, train, tune

__all__ = [
    "Answers",
    "ArgumentError",
    "Audit",
    "BusyError",
    "DeviceError",
    "DivergedError",
    "Error",
    "Evaluation",
    "ExistsError",
    "Explanation",
    "FileError",
    "ForkError",
    "FormatError",
    "Graph",
    "GraphReport",
    "Group",
    "Interval",
    "Metrics",
    "Mined",
    "MinedTriple",
    "MissingFileError",
    "OutOfMemoryError",
    "Path",
    "Point",
    "Prediction",
    "Reference",
    "RelationAnswers",
    "RelationPair",
    "RelationPrediction",
    "Run",
    "Scores",
    "Search",
    "Setting",
    "Stats",
    "Step",
    "Stopped",
    "Support",
    "TrainReport",
    "Trial",
    "Triple",
    "UnknownNameError",
    "WhatIf",
    "__version__",
    "open",
    "settings",
    "train",
    "tune",
]
