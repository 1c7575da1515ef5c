"""Arguments of a run's methods, as the library takes them."""

from __future__ import annotations

import ctypes as c
from typing import Any, Mapping, Optional, Sequence, Union, cast

import numpy as np

from . import _abi as abi
from ._answers import Prediction, Triple
from ._errors import ArgumentError
from ._names import SPLITS, Name, Names, id_array

Splits = Union[str, Sequence[str], None]
Conditions = Union[Mapping[Any, Any], Sequence[tuple[Any, Any]], None]


def choice(value: str, values: Sequence[str], what: str) -> int:
    if value not in values:
        raise ArgumentError(f"there is no {what} {value!r}; it is one of {', '.join(values)}")
    return values.index(value)


def bits(splits: Splits) -> int:
    if splits is None:
        return 0
    names = splits.split(",") if isinstance(splits, str) else splits
    return sum({1 << choice(name, SPLITS, "split") for name in names})


def is_many(value: Any) -> bool:
    return value is not None and not isinstance(value, (str, bytes)) and hasattr(value, "__len__") and np.ndim(value) > 0


def rows(*values: Any) -> tuple[bool, list[tuple[Any, ...]]]:
    """The queries of single values and lists."""
    lengths = {len(value) for value in values if is_many(value)}
    if len(lengths) > 1:
        raise ArgumentError(f"lists of different lengths: {', '.join(map(str, sorted(lengths)))}")
    count = lengths.pop() if lengths else 1
    columns = [list(value) if is_many(value) else [value] * count for value in values]
    return any(map(is_many, values)), list(zip(*columns))


def query(names: Names, head: Any, relation: Any, tail: Any) -> abi.vlp_query:
    if tail is None:
        return abi.vlp_query(names.find_entity(head), names.find_relation(relation), -1)
    return abi.vlp_query(names.find_entity(tail), names.find_relation(relation) + names.relation_count, -1)


def no_restriction(candidates: Any, seen: bool, where: Any, explain: bool) -> None:
    if candidates is not None or seen or where is not None:
        raise ArgumentError("candidates, seen and where restrict entities; this query asks for a relation")
    if explain:
        raise ArgumentError("a relation is explained by run.explain(head, relation, tail)")


def restrict(names: Names, candidates: Optional[Sequence[Name]], seen: bool, where: Conditions) -> tuple[Any, Any]:
    """A pointer to vlp_candidate_options, or None, and what has to live as long."""
    if candidates is None and not seen and where is None:
        return None, None
    options = abi.vlp_candidate_options.default()
    options.seen = seen
    kept: list[Any] = [options]
    if candidates is not None:
        ids = id_array(np.array([names.find_entity(name) for name in candidates], np.int64))
        options.entities, options.entity_count = ids.ctypes.data_as(c.POINTER(c.c_int32)), len(ids)
        kept.append(ids)
    pairs = list(where.items()) if isinstance(where, Mapping) else list(where or ())
    found = [(names.find_directed(relation), names.find_entity(entity)) for relation, entity in pairs]
    conditions = (abi.vlp_condition * len(found))(*(abi.vlp_condition(*pair) for pair in found))
    if found:
        options.conditions, options.condition_count = cast(Any, conditions), len(found)
    kept.append(conditions)
    return c.pointer(options), kept


def labels(names: Names, triple: Triple, prediction: Prediction) -> dict[str, str]:
    """The labels of all names of an explanation."""
    triples = [triple, *(reference.triple for reference in prediction.references or ())]
    triples += [step.triple for path in prediction.paths or () for step in path.steps]
    triples += prediction.support.triples if prediction.support else []
    labels: dict[str, str] = {}
    for head, relation, tail in triples:
        for name in (head, tail):
            label = names.entity_label(names.find_entity(name))
            if label:
                labels[name] = label
        label = names.relation_label(names.find_relation(relation))
        if label:
            labels.setdefault(relation, label)
    return labels
