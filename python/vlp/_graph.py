"""Data sets: reading and making them, counts, the audit."""

from __future__ import annotations

import ctypes as c
import os
import pathlib
import shutil
import tempfile
from typing import IO, Any, Mapping, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _abi as abi
from ._errors import ArgumentError, ExistsError
from ._facts import Audit, Stats
from ._library import Handle, Path, address_of, as_triples, borrow, encode, encode_path, lib
from ._names import SPLITS, Ids, Name, Names, Triples, number_names, pick, read_triples, text_array
from ._tables import frame_of
from ._watch import Watch, call, make_bar

FORMATS = ("auto", "tsv", "csv", "ntriples", "nquads", "turtle", "trig")


class Graph:
    """The triples of a knowledge graph in training, validation and test split, with names and labels.

    Made by `Graph.read`, `Graph.from_triples` and `Graph.family`. It does not change, and many threads may
    use it at once.

    Examples
    --------
    >>> import vlp
    >>> graph = vlp.Graph.from_triples([("vienna", "capital_of", "austria"), ("paris", "capital_of", "france")])
    >>> graph
    <vlp.Graph: 4 entities, 1 relation, train 2, valid 0, test 0>
    >>> graph.train
    array([[0, 0, 1],
           [2, 0, 3]], dtype=int32)
    """

    def __init__(self, handle: Handle) -> None:
        """For the package itself; use `Graph.read` or `Graph.from_triples`."""
        self._names = Names(handle.address, handle)
        self._cache: dict[str, npt.NDArray[Any]] = {}

    # ---- Making ----

    @classmethod
    def read(
        cls,
        source: Union[Path, IO[Any]],
        *,
        format: str = "auto",
        columns: Optional[Sequence[Union[int, str]]] = None,
        separator: Optional[str] = None,
        header: bool = False,
        keep_literals: bool = False,
        keep_labels: bool = False,
        language: Optional[str] = None,
        valid: float = 0.05,
        test: float = 0.05,
        by_relation: bool = False,
        keep_entities: bool = True,
        seed: int = 0,
        threads: int = 0,
        progress: Optional[bool] = None,
    ) -> Graph:
        """Reads a folder with splits, or a file of triples, which is split at random.

        Parameters
        ----------
        source
            A folder with train, and perhaps valid, test and labels.tsv; a file of triples; or an open file.
            TSV, CSV, N-Triples, N-Quads, Turtle and TriG, plain or compressed with gzip or zstd.
        format
            Of a file: "tsv", "csv", "ntriples", "nquads", "turtle", "trig"; "auto" looks at name and content.
        columns
            Of a table: the columns of head, relation and tail, by number from 1 or by name in its header.
        separator, header
            Of a table: one character; whether the first row is left out.
        keep_literals, keep_labels, language
            Of RDF: literals and labels stay triples; the language of labels that is preferred.
        valid, test
            Of a file: the fractions of its triples for these splits.
        by_relation
            Take the fractions of every relation.
        keep_entities
            Keep every entity and relation in the training split.
        seed
            Of the split.
        threads
            0: all of the machine's.
        progress
            Whether a bar is drawn; None: in a terminal or a notebook.

        Examples
        --------
        >>> graph = vlp.Graph.read("examples/europe.tsv")  # doctest: +SKIP
        """
        if hasattr(source, "read"):
            return cls._read_stream(source, locals())
        path = os.fspath(source)
        if os.path.isdir(path) or not os.path.exists(path):
            return cls._open(path, threads, progress)
        how = _file_options(format, columns, separator, header, keep_literals, keep_labels, language)
        split = abi.vlp_split_options.default()
        split.threads, split.valid, split.test, split.seed = threads, valid, test, seed
        split.by_relation, split.keep_entities = by_relation, keep_entities
        with tempfile.TemporaryDirectory(prefix="vlp-") as folder:
            data = os.path.join(folder, "data")
            _import(path, data, how, split, progress)
            return cls._open(data, threads, progress)

    @classmethod
    def _read_stream(cls, stream: Any, arguments: dict[str, Any]) -> Graph:
        options = {key: value for key, value in arguments.items() if key not in ("cls", "source")}
        suffix = "".join(pathlib.PurePath(str(getattr(stream, "name", ""))).suffixes[-2:])
        with tempfile.NamedTemporaryFile(prefix="vlp-", suffix=suffix) as file:
            content = stream.read()
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            return cls.read(file.name, **options)

    @classmethod
    def _open(cls, folder: str, threads: int, progress: Optional[bool]) -> Graph:
        options = abi.vlp_dataset_options.default()
        options.threads = threads
        out = c.c_void_p()
        with Watch(make_bar(progress)) as watch:
            options.observer = c.pointer(watch.observer)
            watch.finish(lib.vlp_dataset_open(c.byref(out), encode_path(folder), c.byref(options)), folder)
        return cls(Handle(out.value, lib.vlp_dataset_free))

    @classmethod
    def from_triples(
        cls,
        triples: Triples,
        *,
        valid: Union[float, Triples, None] = None,
        test: Union[float, Triples, None] = None,
        entities: Optional[Sequence[str]] = None,
        relations: Optional[Sequence[str]] = None,
        labels: Optional[Mapping[str, str]] = None,
        descriptions: Optional[Mapping[str, str]] = None,
        seed: int = 0,
    ) -> Graph:
        """Makes a graph from triples in memory.

        Parameters
        ----------
        triples
            Those of the training split: a list of (head, relation, tail), an array of shape (count, 3), or a
            DataFrame with the columns head, relation and tail, or with three columns. Either all are names
            (str), or all are ids from 0 (int).
        valid, test
            The other splits in the same forms; or the fraction of `triples` that is moved there at random,
            so that every entity and relation stays in the training split.
        entities, relations
            The names of ids. Without them an id is its own name.
        labels, descriptions
            Texts for people, by the name of an entity or relation.
        seed
            Of a random split.

        Examples
        --------
        >>> import numpy as np
        >>> graph = vlp.Graph.from_triples(np.array([[0, 0, 1], [1, 0, 2]]), entities=["a", "b", "c"])
        >>> graph.entities.tolist(), graph.relations.tolist()
        (['a', 'b', 'c'], ['0'])
        """
        fractions = [share for share in (valid, test) if isinstance(share, (int, float)) and not isinstance(share, bool)]
        others = [share for share in (valid, test) if share is not None]
        if fractions and len(fractions) != len(others):
            raise ArgumentError("valid and test are both fractions, or both triples")
        parts: list[Any] = [triples] if fractions else [triples, valid, test]
        forms = [read_triples([] if part is None else part) for part in parts]
        filled = [form for form in forms if len(form) and len(form[0])]
        ids: list[Ids]
        if all(isinstance(form, np.ndarray) for form in filled):
            empty = np.empty((0, 3), np.int32)
            ids = [form if isinstance(form, np.ndarray) else empty for form in forms]
        elif entities is not None or relations is not None:
            raise ArgumentError("entities and relations name ids; these triples have names")
        else:
            columns = [([], [], []) if isinstance(form, np.ndarray) and not len(form) else form for form in forms]
            ids, entities, relations = number_names(columns)  # type: ignore[arg-type]
        graph = cls._from_ids(ids, entities, relations, labels, descriptions)
        return graph._split(valid or 0, test or 0, labels, descriptions, seed) if fractions else graph

    @classmethod
    def _from_ids(
        cls,
        ids: Sequence[Ids],
        entities: Optional[Sequence[str]],
        relations: Optional[Sequence[str]],
        labels: Optional[Mapping[str, str]],
        descriptions: Optional[Mapping[str, str]],
    ) -> Graph:
        counts = [max((int(part[:, columns].max()) + 1 for part in ids if len(part)), default=0) for columns in ([0, 2], [1])]
        if labels is not None or descriptions is not None:
            entities = [str(number) for number in range(counts[0])] if entities is None else entities
            relations = [str(number) for number in range(counts[1])] if relations is None else relations
        return _make(
            ids,
            entities,
            relations,
            [pick(texts, names or ()) for names in (entities, relations) for texts in (labels, descriptions)],
        )

    def _split(self, valid: float, test: float, labels: Any, descriptions: Any, seed: int) -> Graph:
        with tempfile.TemporaryDirectory(prefix="vlp-") as folder:
            whole, parts = os.path.join(folder, "whole"), os.path.join(folder, "parts")
            self.write(whole)
            split = abi.vlp_split_options.default()
            split.valid, split.test, split.seed = valid, test, seed
            _import(os.path.join(whole, "train.tsv"), parts, None, split, False)
            if labels is not None or descriptions is not None:
                shutil.copy(os.path.join(whole, "labels.tsv"), parts)
            return self._open(parts, 0, False)

    @classmethod
    def family(cls, *, families: int = 40, generations: int = 5, held_out: float = 0.1, seed: int = 0) -> Graph:
        """Generates people, and relations between them that follow known rules.

        Examples
        --------
        >>> vlp.Graph.family(families=3, seed=1).relations[:2].tolist()
        ['husband', 'wife']
        """
        options = abi.vlp_family_options.default()
        options.families, options.generations, options.held_out, options.seed = families, generations, held_out, seed
        with tempfile.TemporaryDirectory(prefix="vlp-") as folder:
            data = os.path.join(folder, "data")
            call(lib.vlp_family_generate, None, encode_path(data), c.byref(options))
            return cls._open(data, 0, False)

    def write(self, folder: Path) -> None:
        """Writes the graph as a folder that `Graph.read` and the program read."""
        path = pathlib.Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise ExistsError(f"{path} is there already and is not empty")
        for split in SPLITS:
            triples = self.triples(split)
            if len(triples):
                with open(path / f"{split}.tsv", "w", encoding="utf-8", newline="\n") as file:
                    file.writelines("\t".join(triple) + "\n" for triple in self.named(triples).tolist())
        texts: dict[str, str] = {}
        for names, label, description in (
            (self.entities, self._names.entity_label, self._names.entity_description),
            (self.relations, self._names.relation_label, self._names.relation_description),
        ):
            for number, name in enumerate(names.tolist()):
                fields = [label(number) or "", description(number) or ""]
                if any(fields):
                    texts.setdefault(name, "\t".join([name, *fields]).rstrip("\t") + "\n")
        if texts:
            with open(path / "labels.tsv", "w", encoding="utf-8", newline="\n") as file:
                file.writelines(texts.values())

    # ---- Content ----

    def triples(self, split: str = "train") -> Ids:
        """The triples of a split as ids: (count, 3), read-only, without a copy; see `train`."""
        if split not in SPLITS:
            raise ArgumentError(f"there is no split {split!r}; it is train, valid or test")
        count = c.c_int64()
        pointer = lib.vlp_dataset_triples(self._names.address, SPLITS.index(split), c.byref(count))
        return borrow(self._names.holds, address_of(pointer), (count.value, 3), np.int32)

    @property
    def train(self) -> Ids:
        """The training split: (count, 3) ids of head, relation and tail; read-only, without a copy."""
        return self.triples("train")

    @property
    def valid(self) -> Ids:
        """The validation split, likewise."""
        return self.triples("valid")

    @property
    def test(self) -> Ids:
        """The test split, likewise."""
        return self.triples("test")

    @property
    def entities(self) -> npt.NDArray[np.object_]:
        """The names of the entities, by id."""
        return self._texts("entities", self._names.entity, self._names.entity_count)

    @property
    def relations(self) -> npt.NDArray[np.object_]:
        """The names of the relations, by id."""
        return self._texts("relations", self._names.relation, self._names.relation_count)

    @property
    def entity_labels(self) -> npt.NDArray[np.object_]:
        """The labels of the entities, by id; None without one."""
        return self._texts("entity_labels", self._names.entity_label, self._names.entity_count)

    @property
    def relation_labels(self) -> npt.NDArray[np.object_]:
        """The labels of the relations, by id; None without one."""
        return self._texts("relation_labels", self._names.relation_label, self._names.relation_count)

    def _texts(self, key: str, text: Any, count: int) -> npt.NDArray[np.object_]:
        if key not in self._cache:
            texts = np.empty(count, object)
            texts[:] = [text(number) for number in range(count)]
            texts.flags.writeable = False
            self._cache[key] = texts
        return self._cache[key]

    def entity_id(self, name: Name) -> int:
        """The id of an entity by its name, or by a label that it alone has.

        Raises
        ------
        UnknownNameError
            No entity has it. The message has the nearest names.
        """
        return self._names.find_entity(name)

    def relation_id(self, name: Name) -> int:
        """The id of a relation, likewise."""
        return self._names.find_relation(name)

    def label(self, entity: Name) -> str:
        """The label of an entity, or its name where it has none."""
        number = self._names.find_entity(entity)
        return self._names.entity_label(number) or self._names.entity(number)

    def description(self, entity: Name) -> Optional[str]:
        """The description of an entity."""
        return self._names.entity_description(self._names.find_entity(entity))

    def ids(self, triples: Triples) -> Ids:
        """Triples of names, in the forms of `from_triples`, as ids: (count, 3)."""
        return self._names.find_triples(triples)

    def named(self, triples: Triples) -> npt.NDArray[np.object_]:
        """Triples of ids as names: (count, 3)."""
        ids = self._names.find_triples(triples)
        names = np.empty(ids.shape, object)
        names[:, 0], names[:, 1], names[:, 2] = self.entities[ids[:, 0]], self.relations[ids[:, 1]], self.entities[ids[:, 2]]
        return names

    def to_frame(self, split: str = "train") -> Any:
        """The triples of a split by name, as a pandas DataFrame."""
        names = self.named(self.triples(split))
        return frame_of([dict(zip(("head", "relation", "tail"), row)) for row in names.tolist()], ("head", "relation", "tail"))

    # ---- Looking ----

    @property
    def stats(self) -> Stats:
        """What is in the graph, counted."""
        out = abi.vlp_dataset_stats()
        call(lib.vlp_dataset_describe, c.byref(out), self._names.address)
        return Stats._of(out)

    def audit(self, *, threshold: float = 0.8, references: int = 8, threads: int = 0, progress: Optional[bool] = None) -> Audit:
        """Looks for what makes the test split easier than it seems.

        Parameters
        ----------
        threshold
            Relations that repeat another one in at least this fraction of their training triples are shown.
        references
            Known triples per query that an answer could be copied from, at most.
        """
        options = abi.vlp_audit_options.default()
        options.threshold = threshold
        options.references.count, options.references.threads = references, threads
        out = c.POINTER(abi.vlp_audit)()
        with Watch(make_bar(progress)) as watch:
            options.references.observer = c.pointer(watch.observer)
            watch.finish(lib.vlp_audit_run(c.byref(out), self._names.address, c.byref(options)))
        handle = Handle(out, lib.vlp_audit_free)
        return Audit._of(handle.address.contents, self._names)

    # ---- As an object ----

    def __repr__(self) -> str:
        count = {split: f"{len(self.triples(split)):,}" for split in SPLITS}
        names = self._names
        return (
            f"<vlp.Graph: {_things(names.entity_count, 'entity', 'entities')}, "
            f"{_things(names.relation_count, 'relation', 'relations')}, "
            + ", ".join(f"{split} {count[split]}" for split in SPLITS)
            + ">"
        )

    def __reduce__(self) -> Any:
        names = self._names
        texts = []
        for label, count in (
            (names.entity_label, names.entity_count),
            (names.entity_description, names.entity_count),
            (names.relation_label, names.relation_count),
            (names.relation_description, names.relation_count),
        ):
            texts.append([label(number) for number in range(count)])
        splits = [np.array(self.triples(split)) for split in SPLITS]
        return _make, (splits, self.entities.tolist(), self.relations.tolist(), texts)


def _make(
    splits: Sequence[Ids],
    entities: Optional[Sequence[str]],
    relations: Optional[Sequence[str]],
    texts: Sequence[Optional[Sequence[Optional[str]]]],
) -> Graph:
    """A graph of ids; texts: labels and descriptions of entities, then of relations."""
    content = abi.vlp_dataset_content.default()
    for split, part in enumerate(splits):
        content.triples[split], content.counts[split] = as_triples(part), len(part)
    content.entities = 0 if entities is None else len(entities)
    content.relations = 0 if relations is None else len(relations)
    content.entity_names, content.relation_names = text_array(entities), text_array(relations)
    content.entity_labels, content.entity_descriptions = text_array(texts[0]), text_array(texts[1])
    content.relation_labels, content.relation_descriptions = text_array(texts[2]), text_array(texts[3])
    out = c.c_void_p()
    call(lib.vlp_dataset_from_ids, c.byref(out), c.byref(content), None)
    return Graph(Handle(out.value, lib.vlp_dataset_free))


def _things(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _file_options(
    format: str,
    columns: Optional[Sequence[Union[int, str]]],
    separator: Optional[str],
    header: bool,
    keep_literals: bool,
    keep_labels: bool,
    language: Optional[str],
) -> abi.vlp_file_options:
    how = abi.vlp_file_options.default()
    if format not in FORMATS:
        raise ArgumentError(f"there is no format {format!r}; it is one of {', '.join(FORMATS)}")
    how.format = FORMATS.index(format)
    if columns is not None and len(columns) != 3:
        raise ArgumentError("columns are three: of head, relation and tail")
    for place, column in enumerate(columns or ()):
        if isinstance(column, str):
            how.column_names[place] = encode(column)
        else:
            how.columns[place] = column
    if separator is not None:
        encoded = encode(separator)
        if len(encoded) != 1:
            raise ArgumentError(f"a separator is one ASCII character, not {separator!r}")
        how.separator = encoded
    how.header, how.keep_literals, how.keep_labels = header, keep_literals, keep_labels
    how.language = None if language is None else encode(language)
    return how


def _import(path: str, folder: str, how: Any, split: abi.vlp_split_options, progress: Optional[bool]) -> None:
    with Watch(make_bar(progress)) as watch:
        split.observer = c.pointer(watch.observer)
        status = lib.vlp_import_file(
            None, encode_path(path), encode_path(folder), None if how is None else c.byref(how), c.byref(split)
        )
        watch.finish(status, path)
