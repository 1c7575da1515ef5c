"""What a run answers: predictions, what they rest on, scores, missing triples."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator, NamedTuple, Optional, overload

import numpy as np
import numpy.typing as npt

from . import _abi as abi
from ._names import Names
from ._tables import frame_of, html_table, number, text_table

COMPONENTS = ("horizontal", "vertical", "path")
SYMBOLS = {"horizontal": "f_g", "vertical": "f_c", "path": "f_p"}


def parts_of(values: Any) -> dict[str, float]:
    """The components of a score that the run has, by name."""
    return {name: values[index] for index, name in enumerate(COMPONENTS) if values[index] == values[index]}


def parts_dict(parts: dict[str, float]) -> dict[str, Optional[float]]:
    """As the program's JSON has them: None for components that the run does not have."""
    return {name: number(parts[name]) if name in parts else None for name in COMPONENTS}


class Triple(NamedTuple):
    """A triple by its names."""

    head: str
    relation: str
    tail: str

    def to_dict(self) -> dict[str, str]:
        return self._asdict()


@dataclasses.dataclass(frozen=True)
class Reference:
    """A known triple of the query's relation."""

    triple: Triple
    distance: int  #: hops from the query's entity; -1 where references are random
    contribution: Optional[float]  #: f with all references less f without this one

    def to_dict(self) -> dict[str, Any]:
        return {**self.triple.to_dict(), "distance": self.distance, "contribution": self.contribution}


@dataclasses.dataclass(frozen=True)
class Step:
    """A known triple of a path, passed from head to tail (`forward`) or back."""

    triple: Triple
    forward: bool

    @property
    def source(self) -> str:
        return self.triple.head if self.forward else self.triple.tail

    @property
    def target(self) -> str:
        return self.triple.tail if self.forward else self.triple.head


@dataclasses.dataclass(frozen=True)
class Path:
    """A chain of known triples from the query's entity to the answer."""

    weight: float  #: the share of the path score that depends on it, an estimate from gradients
    steps: list[Step]

    def to_dict(self) -> dict[str, Any]:
        steps = [{**step.triple.to_dict(), "forward": step.forward} for step in self.steps]
        return {"weight": self.weight, "triples": steps}

    def __str__(self) -> str:
        text = self.steps[0].source if self.steps else ""
        for step in self.steps:
            arrow = f"-{step.triple.relation}->" if step.forward else f"<-{step.triple.relation}-"
            text += f" {arrow} {step.target}"
        return text


@dataclasses.dataclass(frozen=True)
class Support:
    """Known triples without all of which the answer has a worse rank."""

    triples: list[Triple]  #: none where no such set was found
    rank_before: float
    rank: float
    score: float
    path: float


@dataclasses.dataclass(frozen=True)
class Prediction:
    """An answer of a query."""

    entity: str
    label: Optional[str]
    id: int
    score: float  #: f
    parts: dict[str, float]  #: the components, before their weights
    known: bool
    references: Optional[list[Reference]] = None  #: where it was explained
    paths: Optional[list[Path]] = None  #: where it was explained and the run has a path model
    support: Optional[Support] = None

    def to_dict(self) -> dict[str, Any]:
        """What ``vlp predict --json`` prints for an answer."""
        record: dict[str, Any] = {"entity": self.entity, "label": self.label, "score": self.score}
        record.update(parts_dict(self.parts), known=self.known)
        if self.support is not None:
            record["paths"] = [path.to_dict() for path in self.paths or ()]
            record["rank"] = self.support.rank_before
            record["without"] = self.support.triples and {
                "triples": [triple.to_dict() for triple in self.support.triples],
                "rank": self.support.rank,
                "score": self.support.score,
                "path": self.support.path,
            } or None
        if self.references is not None:
            record["references"] = [reference.to_dict() for reference in self.references]
        return record


class _Rows:
    """Rows that are a sequence, a table and records."""

    predictions: list[Any]

    def _table(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def _title(self) -> str:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.predictions)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row per prediction."""
        return frame_of(self._table())

    def __str__(self) -> str:
        return f"{self._title()}\n{text_table(self._table())}".rstrip()

    def __repr__(self) -> str:
        return f"<vlp.{type(self).__name__}: {self._title()}, {len(self)} predictions>"

    def _repr_html_(self) -> str:
        return html_table(self._table(), self._title())


@dataclasses.dataclass(frozen=True, repr=False)
class Answers(_Rows):
    """The answers of one query, best first. A sequence of `Prediction`."""

    head: str  #: "?" where it is asked for
    relation: str
    tail: str
    candidates: int  #: entities that may be answers
    predictions: list[Prediction]

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> list[Prediction]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.predictions[index]

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.predictions)

    def _title(self) -> str:
        return f"({self.head}, {self.relation}, {self.tail})"

    def _table(self) -> list[dict[str, Any]]:
        rows = []
        for rank, answer in enumerate(self.predictions, 1):
            row = {"rank": rank, "entity": answer.entity, "label": answer.label, "score": answer.score}
            rows.append({**row, **answer.parts, "known": answer.known})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """What ``vlp predict --json`` prints for a query."""
        return {
            "head": self.head,
            "relation": self.relation,
            "tail": self.tail,
            "candidates": self.candidates,
            "predictions": [prediction.to_dict() for prediction in self.predictions],
        }


@dataclasses.dataclass(frozen=True)
class RelationPrediction:
    """How well a relation holds between two entities."""

    triple: Triple
    inverse: bool  #: the triple leads from the pair's tail to its head
    score: float  #: the mean of the two log probabilities, at most 0
    tail_log_probability: float
    head_log_probability: float
    f: float
    parts: dict[str, float]
    known: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.triple.to_dict(),
            "inverse": self.inverse,
            "score": self.score,
            "tail_log_probability": self.tail_log_probability,
            "head_log_probability": self.head_log_probability,
            "f": self.f,
            **parts_dict(self.parts),
            "known": self.known,
        }


@dataclasses.dataclass(frozen=True, repr=False)
class RelationAnswers(_Rows):
    """The relations between two entities, best first. A sequence of `RelationPrediction`."""

    head: str
    tail: str
    predictions: list[RelationPrediction]

    @overload
    def __getitem__(self, index: int) -> RelationPrediction: ...
    @overload
    def __getitem__(self, index: slice) -> list[RelationPrediction]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.predictions[index]

    def __iter__(self) -> Iterator[RelationPrediction]:
        return iter(self.predictions)

    def _title(self) -> str:
        return f"({self.head}, ?, {self.tail})"

    def _table(self) -> list[dict[str, Any]]:
        return [
            {**answer.triple.to_dict(), "score": answer.score, "f": answer.f, **answer.parts, "known": answer.known}
            for answer in self.predictions
        ]

    def to_dict(self) -> dict[str, Any]:
        """What ``vlp predict --json`` prints for such a query."""
        predictions = [prediction.to_dict() for prediction in self.predictions]
        return {"head": self.head, "relation": "?", "tail": self.tail, "predictions": predictions}


@dataclasses.dataclass(frozen=True, repr=False)
class Explanation:
    """Why a run gives an answer the score it has. A notebook shows it as a picture and a table.

    Examples
    --------
    >>> explanation = run.explain("germany", "borders", "czechia")  # doctest: +SKIP
    >>> explanation.paths[0].weight  # doctest: +SKIP
    0.36
    """

    triple: Triple
    asks: str  #: "head" or "tail": which of the two is the answer
    prediction: Prediction
    formula: str  #: of the run's score
    labels: dict[str, str]  #: of the entities and relations in it, where they have one

    @property
    def score(self) -> float:
        return self.prediction.score

    @property
    def parts(self) -> dict[str, float]:
        return self.prediction.parts

    @property
    def paths(self) -> list[Path]:
        return self.prediction.paths or []

    @property
    def support(self) -> Optional[Support]:
        return self.prediction.support

    @property
    def references(self) -> list[Reference]:
        return self.prediction.references or []

    def to_dict(self) -> dict[str, Any]:
        """The triple, and what ``vlp predict --explain --json`` prints for an answer."""
        return {**self.triple.to_dict(), "asks": self.asks, **self.prediction.to_dict()}

    def to_frame(self) -> Any:
        """The references, as a pandas DataFrame."""
        columns = ("head", "relation", "tail", "distance", "contribution")
        return frame_of([reference.to_dict() for reference in self.references], columns)

    def svg(self) -> str:
        """The picture alone: paths, or references where there is no path."""
        from ._drawing import svg

        return svg(self, alone=True)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        from ._drawing import html

        return html(self)

    def __repr__(self) -> str:
        return f"<vlp.Explanation: {tuple(self.triple)}, f = {self.score:.4f}, {len(self.paths)} paths>"

    def __str__(self) -> str:
        lines = [f"{self.triple.head}  {self.triple.relation}  {self.triple.tail}   {self.formula}, f {self.score:.4f}"]
        lines += [f"    {path.weight:5.2f}  {path}" for path in self.paths]
        if self.support and self.support.triples:
            lines += [f"    without these known triples it falls from rank {self.support.rank_before:g} to {self.support.rank:g}:"]
            lines += [f"           {' '.join(triple)}" for triple in self.support.triples]
        for reference in sorted(self.references, key=lambda item: -(item.contribution or 0)):
            share = "" if reference.contribution is None else f"{reference.contribution:+.4f}"
            lines += [f"    {share:>8}  {reference.distance} hops  {' '.join(reference.triple)}"]
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class WhatIf:
    """An answer before and after some known triples are taken out of the graph."""

    triple: Triple
    without: list[Triple]
    rank_before: float  #: filtered and realistic
    score_before: float
    parts_before: dict[str, float]
    rank: float
    score: float
    parts: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        record = dataclasses.asdict(self)
        record["triple"] = self.triple.to_dict()
        record["without"] = [triple.to_dict() for triple in self.without]
        record["parts_before"], record["parts"] = parts_dict(self.parts_before), parts_dict(self.parts)
        return record


@dataclasses.dataclass(frozen=True, repr=False)
class Scores:
    """Scores of triples, as arrays in the order of the triples."""

    triples: npt.NDArray[np.object_]  #: (count, 3) names
    score: npt.NDArray[np.float64]  #: f, the mean of both directions
    parts: dict[str, npt.NDArray[np.float64]]
    tail: npt.NDArray[np.float64]  #: f of the tail as the answer of (head, relation, ?)
    head: npt.NDArray[np.float64]  #: f of the head as the answer of (?, relation, tail)
    probability: npt.NDArray[np.float64]  #: fitted on the validation split; NaN without one
    known: npt.NDArray[np.bool_]

    @classmethod
    def _of(cls, scores: Any, triples: npt.NDArray[np.object_]) -> Scores:
        table = np.frombuffer(scores, np.dtype(abi.vlp_score), len(triples)) if len(triples) else np.empty(0, np.dtype(abi.vlp_score))
        parts = {name: table["parts"][:, index].copy() for index, name in enumerate(COMPONENTS)}
        return cls(
            triples,
            table["score"].copy(),
            {name: values for name, values in parts.items() if not np.isnan(values).all()},
            table["tail"].copy(),
            table["head"].copy(),
            table["probability"].copy(),
            table["known"].astype(bool),
        )

    def __len__(self) -> int:
        return len(self.score)

    def to_dict(self) -> list[dict[str, Any]]:
        """A record per triple, as ``vlp score --json`` prints them."""
        return [
            {
                **dict(zip(("head", "relation", "tail"), self.triples[row])),
                "score": float(self.score[row]),
                **parts_dict({name: float(values[row]) for name, values in self.parts.items()}),
                "probability": number(float(self.probability[row])),
                "score_tail": float(self.tail[row]),
                "score_head": float(self.head[row]),
                "known": bool(self.known[row]),
            }
            for row in range(len(self))
        ]

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row per triple."""
        return frame_of(self.to_dict())

    def __repr__(self) -> str:
        return f"<vlp.Scores: {len(self)} triples>"

    def _repr_html_(self) -> str:
        return html_table(self.to_dict()[:100], f"{len(self):,} triples{', the first 100' if len(self) > 100 else ''}")


@dataclasses.dataclass(frozen=True)
class MinedTriple:
    """A triple that is not known and likely."""

    triple: Triple
    score: float
    parts: dict[str, float]
    probability: float

    def to_dict(self) -> dict[str, Any]:
        record = {**self.triple.to_dict(), "score": self.score, **parts_dict(self.parts)}
        return {**record, "probability": number(self.probability)}


@dataclasses.dataclass(frozen=True, repr=False)
class Mined(_Rows):
    """The likeliest missing triples, best first. A sequence of `MinedTriple`."""

    predictions: list[MinedTriple]
    queries: int  #: asked
    possible_queries: int
    candidates: int  #: scored
    possible_triples: int

    @overload
    def __getitem__(self, index: int) -> MinedTriple: ...
    @overload
    def __getitem__(self, index: slice) -> list[MinedTriple]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.predictions[index]

    def __iter__(self) -> Iterator[MinedTriple]:
        return iter(self.predictions)

    def _title(self) -> str:
        return f"{len(self.predictions):,} missing triples of {self.candidates:,} candidates"

    def _table(self) -> list[dict[str, Any]]:
        return [
            {**item.triple.to_dict(), "score": item.score, **item.parts, "probability": item.probability}
            for item in self.predictions
        ]

    def to_dict(self) -> dict[str, Any]:
        """What ``vlp mine --json`` prints."""
        return {
            "queries": self.queries,
            "possible_queries": self.possible_queries,
            "candidates": self.candidates,
            "possible_triples": self.possible_triples,
            "triples": [item.to_dict() for item in self.predictions],
        }


# ---- From the library's structs ----


def prediction_of(names: Names, answers: abi.vlp_answers, prediction: Any, explained: bool) -> Prediction:
    references: Optional[list[Reference]] = None
    paths: Optional[list[Path]] = None
    support: Optional[Support] = None
    if explained:
        shares = prediction.contributions
        references = [
            Reference(
                Triple(*names.triple(reference.triple)), reference.distance, shares[index] if shares else None
            )
            for index, reference in enumerate(answers.references[: answers.reference_count])
        ]
    if prediction.support:
        paths = [
            Path(path.weight, [Step(Triple(*names.triple(step.triple)), step.forward) for step in path.triples[: path.count]])
            for path in prediction.paths[: prediction.path_count]
        ]
        found = prediction.support.contents
        triples = [Triple(*names.triple(triple)) for triple in found.triples[: found.count]] if found.count else []
        support = Support(triples, found.rank_before, found.rank, found.score, found.path)
    entity = prediction.entity
    parts = parts_of(prediction.parts)
    texts = names.entity(entity), names.entity_label(entity)
    return Prediction(*texts, entity, prediction.score, parts, prediction.known, references, paths, support)


def answers_of(names: Names, answers: abi.vlp_answers, explained: bool) -> Answers:
    tail = answers.query.relation < names.relation_count
    entity = names.entity(answers.query.entity)
    relation = names.relation(answers.query.relation % names.relation_count)
    predictions = [
        prediction_of(names, answers, prediction, explained)
        for prediction in answers.predictions[: answers.prediction_count]
    ]
    return Answers(entity if tail else "?", relation, "?" if tail else entity, answers.candidate_count, predictions)


def relation_answers_of(names: Names, answers: abi.vlp_relation_answers) -> RelationAnswers:
    head, tail = names.entity(answers.pair.head), names.entity(answers.pair.tail)
    predictions = []
    for found in answers.predictions[: answers.prediction_count]:
        inverse = found.relation >= names.relation_count
        relation = names.relation(found.relation % names.relation_count)
        triple = Triple(tail, relation, head) if inverse else Triple(head, relation, tail)
        logs = found.tail_log_probability, found.head_log_probability
        parts = parts_of(found.parts)
        predictions.append(RelationPrediction(triple, inverse, found.score, *logs, found.f, parts, found.known))
    return RelationAnswers(head, tail, predictions)
