"""Facts about a data set: its counts and its audit."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

from . import _abi as abi
from ._names import SPLITS, Names
from ._tables import html_table

Named = tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class Stats:
    """What is in a graph, counted. Dictionaries are by split."""

    entities: int
    relations: int
    triples: dict[str, int]
    duplicates: dict[str, int]  #: triples that repeat an earlier one of the same split
    unseen_entities: dict[str, int]  #: of the split, not in train
    unseen_triples: dict[str, int]  #: with such an entity
    unseen_relations: dict[str, int]
    labels: int  #: entities with a label
    relation_labels: int
    graph_names: int  #: statements whose graph name was dropped
    bytes: int  #: memory held

    @classmethod
    def _of(cls, stats: abi.vlp_dataset_stats) -> Stats:
        def by_split(values: Any) -> dict[str, int]:
            return dict(zip(SPLITS, values))

        return cls(
            stats.entities,
            stats.relations,
            by_split(stats.triples),
            by_split(stats.duplicates),
            by_split(stats.unseen_entities),
            by_split(stats.unseen_triples),
            by_split(stats.unseen_relations),
            stats.labels,
            stats.relation_labels,
            stats.graph_names,
            stats.bytes,
        )

    def to_dict(self) -> dict[str, Any]:
        """What ``vlp data stats --json`` prints."""
        unseen = {
            key: {split: getattr(self, key)[split] for split in SPLITS[1:]}
            for key in ("unseen_entities", "unseen_triples", "unseen_relations")
        }
        return {
            "entities": self.entities,
            "relations": self.relations,
            **self.triples,
            **unseen,
            "duplicates": sum(self.duplicates.values()),
            "labels": self.labels,
            "bytes": self.bytes,
            "relation_labels": self.relation_labels,
            "graph_names": self.graph_names,
        }


@dataclasses.dataclass(frozen=True)
class RelationPair:
    """A relation that repeats another one, or its own inverse, in most of its training triples."""

    relation: str
    repeats: str
    inverse: bool
    shared: int  #: training triples of `relation` with their counterpart in `repeats`
    share: float  #: of all training triples of `relation`
    leaked: int  #: test triples whose counterpart is in train
    example_test: Optional[Named]
    example_train: Optional[Named]

    def to_dict(self) -> dict[str, Any]:
        values = dataclasses.asdict(self)
        for key in ("example_test", "example_train"):
            if values[key] is None:
                del values[key]
            else:
                values[key] = list(values[key])
        return values


@dataclasses.dataclass(frozen=True)
class References:
    """How often the answer of a query is among the answers of its references."""

    queries: int
    copyable: int
    mean: float  #: references per query

    @property
    def share(self) -> float:
        return self.copyable / self.queries if self.queries else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "queries": self.queries,
            "answer_among_references": self.copyable,
            "share": self.share,
            "references_per_query": self.mean,
        }


@dataclasses.dataclass(frozen=True)
class Audit:
    """What makes the test split of a graph easier than it seems."""

    stats: Stats
    overlap: dict[str, int]  #: triples that are in two splits: "train_valid", "train_test", "valid_test"
    pairs: list[RelationPair]  #: most leaked triples first
    leaked: int  #: test triples with a counterpart in train through any of the pairs
    linked: int  #: test triples whose two entities are directly linked in train
    unreachable: int  #: test triples whose entities have no path between them in train
    distance: list[int]  #: test triples by the distance of their entities; the last: 15 and more
    train_references: References
    test_references: References

    @classmethod
    def _of(cls, audit: abi.vlp_audit, names: Names) -> Audit:
        pairs = []
        for pair in audit.pairs[: audit.pair_count]:
            tested, trained = (
                (names.triple(pair.example_test), names.triple(pair.example_train)) if pair.leaked else (None, None)
            )
            relations = names.relation(pair.first), names.relation(pair.second)
            pairs.append(RelationPair(*relations, pair.inverse, pair.shared, pair.share, pair.leaked, tested, trained))
        return cls(
            Stats._of(audit.stats),
            {f"{SPLITS[a]}_{SPLITS[b]}": audit.overlap[a][b] for a in range(3) for b in range(a + 1, 3)},
            pairs,
            audit.leaked,
            audit.linked,
            audit.unreachable,
            list(audit.distance),
            References(audit.train_queries, audit.train_copyable, audit.train_references),
            References(audit.test_queries, audit.test_copyable, audit.test_references),
        )

    def to_dict(self) -> dict[str, Any]:
        """What ``vlp data audit --json`` prints."""
        return {
            **self.stats.to_dict(),
            "overlap": dict(self.overlap),
            "relation_pairs": [pair.to_dict() for pair in self.pairs],
            "leaked": self.leaked,
            "linked": self.linked,
            "distance": list(self.distance),
            "unreachable": self.unreachable,
            "train_references": self.train_references.to_dict(),
            "test_references": self.test_references.to_dict(),
        }

    def to_frame(self) -> Any:
        """The pairs of relations, as a pandas DataFrame."""
        from ._tables import frame_of

        return frame_of([dataclasses.asdict(pair) for pair in self.pairs], [field.name for field in dataclasses.fields(RelationPair)])

    def _lines(self) -> list[str]:
        test = self.stats.triples["test"] or 1
        lines = [f"{count:,} triples are in both {key.replace('_', ' and ')}" for key, count in self.overlap.items() if count]
        lines += [f"of {self.stats.triples['test']:,} test triples,"]
        lines += [f"  {self.leaked:,} ({self.leaked / test:.1%}) are in train under a relation that repeats theirs"]
        lines += [f"  {self.linked:,} ({self.linked / test:.1%}) have entities that are linked in train"]
        lines += [f"  {self.unreachable:,} ({self.unreachable / test:.1%}) have entities without a path between them"]
        share = self.test_references
        lines += [f"{share.share:.1%} of {share.queries:,} test queries have their answer among their references"]
        return lines

    def __str__(self) -> str:
        pairs = [
            f"  {pair.relation} repeats {pair.repeats}{' inverted' if pair.inverse else ''} in {pair.share:.1%} of its "
            f"training triples; this leaks {pair.leaked:,} test triples"
            for pair in self.pairs
        ]
        return "\n".join(self._lines() + pairs)

    def _repr_html_(self) -> str:
        import html

        rows = [
            {key: value for key, value in pair.to_dict().items() if not key.startswith("example")} for pair in self.pairs
        ]
        lines = "<br>".join(html.escape(line) for line in self._lines())
        return f"<p>{lines}</p>" + html_table(rows, "Relations that repeat another one, or their own inverse")
