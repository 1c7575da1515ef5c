"""Metrics of a run."""

from __future__ import annotations

import ctypes as c
import dataclasses
from typing import Any, NamedTuple, Optional, Sequence

import numpy as np
import numpy.typing as npt

from . import _abi as abi
from ._answers import COMPONENTS, SYMBOLS, parts_dict, parts_of
from ._errors import ArgumentError, no_pickle
from ._library import Handle, lib
from ._names import SPLITS, Names
from ._tables import frame_of, html_table, number, text_table
from ._watch import call

BREAKDOWNS = ("relation", "side", "mapping", "distance")
MAPPINGS = ("1-1", "1-N", "N-1", "N-N")
SIDES = ("both", "head", "tail")


class Interval(NamedTuple):
    """An estimate and its 95% interval."""

    low: float
    middle: float
    high: float


@dataclasses.dataclass(frozen=True)
class Metrics:
    """Filtered metrics of some queries. Ranks are realistic unless said otherwise."""

    queries: int
    mrr: float  #: mean reciprocal rank
    mr: float  #: mean rank
    amri: float  #: adjusted mean rank index
    hits1: float
    hits3: float
    hits10: float

    @classmethod
    def _of(cls, metrics: abi.vlp_metrics) -> Metrics:
        return cls(*(getattr(metrics, field.name) for field in dataclasses.fields(cls)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "queries": self.queries,
            "mrr": number(self.mrr),
            "mr": number(self.mr),
            "amri": number(self.amri),
            "hits@1": number(self.hits1),
            "hits@3": number(self.hits3),
            "hits@10": number(self.hits10),
        }


@dataclasses.dataclass(frozen=True)
class Group:
    """The metrics of the queries that share a value."""

    value: Any  #: a relation's name, "head" or "tail", "1-N" and so on, a distance (None: no path)
    metrics: Metrics
    alone: dict[str, float]  #: the MRR by each component alone


class Evaluation:
    """The metrics of a run on a split.

    Attributes
    ----------
    split, side : str
    both, head, tail : Metrics
        Of all queries, and of those that ask for head or for tail entities.
    optimistic, pessimistic : Metrics
        Of all queries, with equal scores resolved for or against the answer.
    alone : dict of Metrics
        By each component alone.
    weights : dict of float
        f is the sum of the components with these weights.
    baselines : dict of Metrics
        "frequency", "vote" and, where asked for, "pagerank".
    control : Metrics or None
        Of the same aggregator trained without references, where asked for; `control_gain` is the difference.
    macro_mrr : float
        The mean over relations.
    interval : Interval
        Of the MRR, 95%.
    auc_pr : float or None
        With candidates: the area under the precision-recall curve.
    triples, split_triples, sample : int
        How many triples were ranked, of how many; how many entities were drawn as candidates (0: all are).
    among : int
        As asked for; `hits10_among` is Hits@10 among that many random candidates.
    by : dict of list of Group
        By "relation", "side", "mapping" and "distance".

    Examples
    --------
    >>> evaluation = run.evaluate(by=["distance"])  # doctest: +SKIP
    >>> evaluation.mrr, evaluation.hits10  # doctest: +SKIP
    (0.8881, 0.9773)
    """

    def __init__(self, handle: Handle, names: Names, shown: Sequence[str]) -> None:
        found: abi.vlp_evaluation = handle.address.contents
        self._handle, self._shown = handle, tuple(shown)
        self.split, self.side = SPLITS[found.split], SIDES[found.sides]
        self.both, self.head, self.tail = Metrics._of(found.both), Metrics._of(found.head), Metrics._of(found.tail)
        self.optimistic, self.pessimistic = Metrics._of(found.optimistic), Metrics._of(found.pessimistic)
        has = [index for index in range(len(COMPONENTS)) if found.components >> index & 1]
        self.alone = {COMPONENTS[index]: Metrics._of(found.alone[index]) for index in has}
        self.weights = parts_of(found.weights)
        self.lambda_: Optional[float] = None if found.horizontal_only else getattr(found, "lambda")
        self.baselines = {"frequency": Metrics._of(found.frequency), "vote": Metrics._of(found.vote)}
        if found.pagerank.queries:
            self.baselines["pagerank"] = Metrics._of(found.pagerank)
        self.control = Metrics._of(found.control) if found.control.queries else None
        self.control_gain = _interval(found.control_gain) if self.control else None
        self.macro_mrr: float = found.macro_mrr
        self.interval = _interval(found.interval)
        self.auc_pr = number(found.auc_pr)
        self.candidates: int = found.candidates
        self.triples: int = found.triples
        self.split_triples: int = found.split_triples
        self.sample: int = found.sample
        self._entities = names.entity_count
        self.among: int = found.among
        self.hits10_among = _interval(found.hits10_among) if found.among else None
        self._pagerank_among = number(found.pagerank_hits10_among)
        self.by = {kind: _groups(getattr(found, f"by_{kind}"), kind, names) for kind in BREAKDOWNS}

    @property
    def queries(self) -> int:
        return self.both.queries

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank of all queries."""
        return self.both.mrr

    @property
    def mr(self) -> float:
        """Mean rank of all queries."""
        return self.both.mr

    @property
    def amri(self) -> float:
        """Adjusted mean rank index of all queries."""
        return self.both.amri

    @property
    def hits1(self) -> float:
        return self.both.hits1

    @property
    def hits3(self) -> float:
        return self.both.hits3

    @property
    def hits10(self) -> float:
        return self.both.hits10

    def ranks(self, by: str = "f") -> npt.NDArray[np.float64]:
        """The rank of every answer: (triples, 2), for (h, r, ?) and for (?, r, t); NaN where it was not asked.

        Parameters
        ----------
        by
            "f", or a component alone: "horizontal", "vertical" or "path".
        """
        kind = _ranked_by(by)
        count = self.triples
        ranks = [lib.vlp_evaluation_rank(self._handle.address, kind, query) for query in range(2 * count)]
        return np.ascontiguousarray(np.array(ranks, np.float64).reshape(2, count).T)

    def compare(self, other: Evaluation, by: str = "f", other_by: str = "f") -> Interval:
        """The MRR of this evaluation less that of `other`, with its 95% interval, paired by triple."""
        out = abi.vlp_interval()
        kinds = _ranked_by(other_by), _ranked_by(by)
        call(lib.vlp_evaluation_compare, c.byref(out), other._handle.address, kinds[0], self._handle.address, kinds[1])
        return _interval(out)

    @property
    def gain(self) -> dict[str, Interval]:
        """The MRR of f less that of each component alone, with its 95% interval, paired by triple."""
        return {name: self.compare(self, "f", name) for name in self.alone}

    def to_dict(self) -> dict[str, Any]:
        """What ``vlp eval --json`` prints."""
        record: dict[str, Any] = {"split": self.split, "queries": self.queries}
        if self.triples < self.split_triples:
            record["sampled_triples"] = {"triples": self.triples, "of": self.split_triples}
        if self.sample:
            record["sampled_candidates"] = {"candidates": self.sample, "of": self._entities}
        for key in ("both", "head", "tail", "optimistic", "pessimistic"):
            record[key] = getattr(self, key).to_dict()
        record["lambda"] = self.lambda_
        record["macro_mrr"] = self.macro_mrr
        record["mrr_interval"] = [self.interval.low, self.interval.high]
        for kind, groups in self.by.items():
            record[f"by_{kind}"] = [
                {kind: group.value, **group.metrics.to_dict(), **parts_dict(group.alone)} for group in groups
            ]
        record.update({name: metrics.to_dict() for name, metrics in self.alone.items()})
        record["weights"] = parts_dict(self.weights)
        record["gain"] = {name: [number(bound) for bound in gain] for name, gain in self.gain.items()}
        if self.control and self.control_gain:
            record["control"] = self.control.to_dict()
            record["control_gain_interval"] = [self.control_gain.low, self.control_gain.high]
        if self.auc_pr is not None:
            record["auc_pr"] = self.auc_pr
        record.update({f"baseline_{name}": metrics.to_dict() for name, metrics in self.baselines.items()})
        if self.hits10_among:
            low, middle, high = self.hits10_among
            among: dict[str, Any] = {"candidates": self.among, "hits@10": middle, "hits@10_interval": [low, high]}
            record["among"] = {**among, "baseline_pagerank": self._pagerank_among}
        return record

    def records(self, by: Optional[str] = None) -> list[dict[str, Any]]:
        """A record per row: of the queries as a whole, or of the groups by "relation", "side" and so on."""
        if by is not None:
            if by not in BREAKDOWNS:
                raise ArgumentError(f"there is no breakdown by {by!r}; it is one of {', '.join(BREAKDOWNS)}")
            return [{by: group.value, **group.metrics.to_dict(), **group.alone} for group in self.by[by]]
        rows = {"f": self.both, "head entity queries": self.head, "tail entity queries": self.tail}
        rows.update({f"{SYMBOLS[name]} alone ({name})": metrics for name, metrics in self.alone.items()})
        rows.update({f"baseline: {name}": metrics for name, metrics in self.baselines.items()})
        if self.control:
            rows["control: without references"] = self.control
        return [{"queries of": name, **metrics.to_dict()} for name, metrics in rows.items() if metrics.queries]

    def to_frame(self, by: Optional[str] = None) -> Any:
        """`records` as a pandas DataFrame."""
        return frame_of(self.records(by))

    def _summary(self) -> str:
        return f"MRR {self.mrr:.4f} ({self.interval.low:.4f} to {self.interval.high:.4f}), Hits@10 {self.hits10:.4f}"

    def __repr__(self) -> str:
        return f"<vlp.Evaluation: {self.split}, {self.queries:,} queries, {self._summary()}>"

    def __str__(self) -> str:
        tables = [text_table(self.records()), *(text_table(self.records(by)) for by in self._shown)]
        return f"{self.split}: {self.queries:,} queries, {self._summary()}\n\n" + "\n\n".join(tables)

    def _repr_html_(self) -> str:
        tables = [html_table(self.records(by), f"by {by}") for by in self._shown]
        caption = f"{self.split}: {self.queries:,} queries, {self._summary()}"
        return html_table(self.records(), caption) + "".join(tables)

    def __reduce__(self) -> Any:
        return no_pickle(self, "it holds ranks in the library's memory; pickle its to_dict()")


def _interval(interval: abi.vlp_interval) -> Interval:
    return Interval(interval.low, interval.middle, interval.high)


def _ranked_by(by: str) -> int:
    if by not in ("f", *COMPONENTS):
        raise ArgumentError(f"queries are ranked by f, {', '.join(COMPONENTS)}, not {by!r}")
    return ("f", *COMPONENTS).index(by)


def _groups(groups: abi.vlp_groups, kind: str, names: Names) -> list[Group]:
    def value(number: int) -> Any:
        if kind == "relation":
            return names.relation(number)
        if kind == "side":
            return "tail" if number else "head"
        if kind == "mapping":
            return MAPPINGS[number]
        return None if number < 0 else number

    return [
        Group(value(group.value), Metrics._of(group.metrics), parts_of(group.alone))
        for group in groups.items[: groups.count]
    ]
