"""Names and ids: of a data set of the library, and in what the caller hands in."""

from __future__ import annotations

import ctypes as c
import operator
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _abi as abi
from ._errors import ArgumentError
from ._library import check, decode, encode, lib, text_of

Ids = npt.NDArray[np.int32]
Name = Union[str, int, "np.integer[Any]"]  # a name or label, or an id
# A list of (head, relation, tail), an array of shape (count, 3), or a DataFrame.
Triples = Any

SPLITS = ("train", "valid", "test")
COLUMNS = (("head", "relation", "tail"), ("subject", "predicate", "object"), ("source", "relation", "target"))


class Names:
    """The names of a data set; `holds` keeps it alive."""

    __slots__ = ("address", "holds", "entity_count", "relation_count")

    def __init__(self, address: int, holds: Any) -> None:
        self.address = address
        self.holds = holds
        self.entity_count: int = lib.vlp_dataset_entity_count(address)
        self.relation_count: int = lib.vlp_dataset_relation_count(address)

    def entity(self, number: int) -> str:
        return text_of(lib.vlp_dataset_entity_name(self.address, number))

    def relation(self, number: int) -> str:
        return text_of(lib.vlp_dataset_relation_name(self.address, number))

    def entity_label(self, number: int) -> Optional[str]:
        return decode(lib.vlp_dataset_entity_label(self.address, number))

    def relation_label(self, number: int) -> Optional[str]:
        return decode(lib.vlp_dataset_relation_label(self.address, number))

    def entity_description(self, number: int) -> Optional[str]:
        return decode(lib.vlp_dataset_entity_description(self.address, number))

    def relation_description(self, number: int) -> Optional[str]:
        return decode(lib.vlp_dataset_relation_description(self.address, number))

    def find_entity(self, name: Name) -> int:
        return self._find(name, lib.vlp_dataset_find_entity, self.entity_count, "entity")

    def find_relation(self, name: Name) -> int:
        return self._find(name, lib.vlp_dataset_find_relation, self.relation_count, "relation")

    def find_directed(self, name: Name) -> int:
        """A relation; ^ before its name inverts it, where no relation has the whole name."""
        if isinstance(name, str) and name.startswith("^"):
            found = c.c_int32()
            if lib.vlp_dataset_find_relation(c.byref(found), self.address, encode(name)) != abi.VLP_OK:
                return self.find_relation(name[1:]) + self.relation_count
        return self.find_relation(name)

    def _find(self, name: Name, find: Any, count: int, what: str) -> int:
        if isinstance(name, str):
            found = c.c_int32(-1)
            check(find(c.byref(found), self.address, encode(name)))
            return found.value
        try:
            number = operator.index(name)
        except TypeError:
            raise TypeError(f"the {what} is given by its name or its id, not by {name!r}") from None
        if not 0 <= number < count:
            raise ArgumentError(f"there is no {what} {number}; ids are 0 to {count - 1}")
        return number

    def find_triples(self, triples: Triples) -> Ids:
        """Triples in any form as ids: (count, 3)."""
        form = read_triples(triples)
        if isinstance(form, np.ndarray):
            for values, count, what in (
                (form[:, ::2], self.entity_count, "entities"),
                (form[:, 1], self.relation_count, "relations"),
            ):
                if values.size and values.max() >= count:
                    raise ArgumentError(f"id {values.max()} is out of range; ids of {what} are 0 to {count - 1}")
            return form
        entities: dict[Any, int] = {}
        relations: dict[Any, int] = {}
        ids = np.empty((len(form[0]), 3), np.int32)
        for column, (found, find) in enumerate(
            ((entities, self.find_entity), (relations, self.find_relation), (entities, self.find_entity))
        ):
            for row, name in enumerate(form[column]):
                if name not in found:
                    found[name] = find(name)
                ids[row, column] = found[name]
        return ids

    def triple(self, triple: Any) -> tuple[str, str, str]:
        """The names of a vlp_triple."""
        return self.entity(triple.head), self.relation(triple.relation), self.entity(triple.tail)


def id_array(array: npt.NDArray[Any]) -> Ids:
    """Whole numbers as the library has them, contiguous."""
    if array.size and (array.min() < 0 or array.max() > np.iinfo(np.int32).max):
        raise ArgumentError("ids are 0 to 2147483647")
    return np.ascontiguousarray(array, np.int32)


def _frame_columns(frame: Any) -> list[Any]:
    for names in COLUMNS:
        if all(name in frame.columns for name in names):
            return [frame[name] for name in names]
    if len(frame.columns) != 3:
        raise ArgumentError(
            f"a DataFrame of triples has the columns head, relation and tail, or three columns; this has "
            f"{', '.join(map(str, frame.columns))}"
        )
    return [frame.iloc[:, column] for column in range(3)]


def read_triples(triples: Triples) -> Union[Ids, tuple[Sequence[Any], Sequence[Any], Sequence[Any]]]:
    """Triples in any form: an array of ids (count, 3), or three columns of names."""
    if hasattr(triples, "columns") and hasattr(triples, "iloc"):
        columns = [column.tolist() for column in _frame_columns(triples)]
    elif isinstance(triples, np.ndarray):
        if triples.ndim != 2 or triples.shape[1] != 3:
            raise ArgumentError(f"an array of triples has the shape (count, 3), not {triples.shape}")
        if triples.dtype.kind in "iu":
            return id_array(triples)
        columns = [column.tolist() for column in triples.T]
    else:
        rows = list(triples)
        for number, row in enumerate(rows):
            if isinstance(row, (str, bytes)) or not hasattr(row, "__len__") or len(row) != 3:
                raise ArgumentError(f"triple {number} is not (head, relation, tail): {row!r}")
        columns = [[row[column] for row in rows] for column in range(3)]
    if all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for column in columns for value in column):
        return id_array(np.array(columns, np.int64).reshape(3, -1).T)
    return columns[0], columns[1], columns[2]


def number_names(
    splits: Iterable[tuple[Sequence[Any], Sequence[Any], Sequence[Any]]],
) -> tuple[list[Ids], list[str], list[str]]:
    """Ids of names in the order in which they first appear, as the library numbers those of files."""
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    found = []
    for number, (heads, relation_names, tails) in enumerate(splits):
        ids = np.empty((len(heads), 3), np.int32)
        for row, (head, relation, tail) in enumerate(zip(heads, relation_names, tails)):
            if not (isinstance(head, str) and isinstance(relation, str) and isinstance(tail, str)):
                raise TypeError(
                    f"triple {row} of {SPLITS[number]} is neither three names nor three ids: "
                    f"{(head, relation, tail)!r}"
                )
            ids[row] = (
                entities.setdefault(head, len(entities)),
                relations.setdefault(relation, len(relations)),
                entities.setdefault(tail, len(entities)),
            )
        found.append(ids)
    return found, list(entities), list(relations)


def text_array(texts: Optional[Sequence[Optional[str]]]) -> Any:
    """Texts as char **, NULL for None."""
    if texts is None:
        return None
    return (c.c_char_p * max(len(texts), 1))(*(None if text is None else encode(text) for text in texts))


def pick(texts: Optional[Mapping[str, str]], names: Sequence[str]) -> Optional[list[Optional[str]]]:
    """The texts of names, by name."""
    return None if texts is None else [texts.get(name) for name in names]
