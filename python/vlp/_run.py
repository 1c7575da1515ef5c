"""Trained runs: evaluating, predicting, explaining."""

from __future__ import annotations

import contextlib
import ctypes as c
import dataclasses
import os
import shutil
import tempfile
import threading
import weakref
from typing import Any, Iterator, Mapping, Optional, Sequence, Union, cast

import numpy as np
import numpy.typing as npt

from . import _abi as abi
from ._answers import (
    COMPONENTS,
    SYMBOLS,
    Answers,
    Explanation,
    Mined,
    MinedTriple,
    RelationAnswers,
    Scores,
    Triple,
    WhatIf,
    answers_of,
    parts_of,
    prediction_of,
    relation_answers_of,
)
from ._arguments import Conditions, Splits, bits, choice, labels, no_restriction, query, restrict, rows
from ._errors import ArgumentError, ExistsError, no_pickle
from ._evaluation import BREAKDOWNS, SIDES, Evaluation
from ._graph import Graph
from ._library import Handle, Path, address_of, as_triples, borrow, encode, encode_path, lib, text_of
from ._names import SPLITS, Ids, Name, Names, Triples, id_array
from ._records import GraphReport, Point, SharedLock, TemporaryFolder, TrainReport
from ._tables import frame_of
from ._watch import Watch, call, make_bar

BATCH = 512  # queries in one call of the library


class Run:
    """A trained run. Made by `vlp.open` and `vlp.train`.

    Many threads may use a run at once. It is a context manager; what it gave (arrays, evaluations) stays
    valid after it is closed. A pickled run is opened again from its folder.

    Attributes
    ----------
    report : TrainReport or None
        Of the training that made it, where `vlp.train` did.
    """

    report: Optional[TrainReport] = None

    def __init__(
        self, folder: Path, device: Optional[str], threads: int, data: Optional[Path], holds: Optional[TemporaryFolder] = None
    ) -> None:
        """For the package itself; use `vlp.open`."""
        self._options = (device, threads, None if data is None else os.path.abspath(data))
        self._temporary = holds
        options = abi.vlp_run_options.default()
        options.device = None if device is None else encode(device)
        options.threads = threads
        options.data = None if data is None else encode_path(data)
        out = c.c_void_p()
        with Watch(make_bar(None)) as watch:
            options.observer = c.pointer(watch.observer)
            watch.finish(lib.vlp_run_open(c.byref(out), encode_path(folder), c.byref(options)), folder)
        self._open_handle: Optional[Handle] = Handle(out.value, lib.vlp_run_free, holds)
        self._lock = SharedLock()

    # ---- As an object ----

    @property
    def _handle(self) -> Handle:
        if self._open_handle is None:
            raise ArgumentError("the run is closed")
        return self._open_handle

    def close(self) -> None:
        """Closes the run. Calls under way in other threads end first; arrays over its memory stay valid."""
        self._open_handle = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._open_handle is None:
            return "<vlp.Run: closed>"
        mrr = self.valid_mrr
        score = "" if mrr is None else f", valid MRR {mrr:.4f}"
        return f"<vlp.Run: {self.path}, {self.formula}, step {self.step:,}{score}>"

    def __reduce__(self) -> Any:
        if self._temporary is not None:
            return no_pickle(self, "its folder is temporary; train with out=FOLDER, or save() it and open that")
        device, threads, data = self._options
        return open_run, (os.path.abspath(self.path), device, threads, data)

    # ---- What it is ----

    def _info(self) -> tuple[abi.vlp_run_info, Handle]:
        """The strings live as long as the handle."""
        handle, info = self._handle, abi.vlp_run_info()
        lib.vlp_run_describe(c.byref(info), handle.address)
        return info, handle

    @property
    def path(self) -> str:
        """The run's folder."""
        info, _handle = self._info()
        return os.fsdecode(info.folder or b"")

    @property
    def model(self) -> str:
        """The score function of the embeddings."""
        info, _handle = self._info()
        return text_of(info.model)

    @property
    def step(self) -> int:
        """Of the weights in use."""
        return self._info()[0].step

    @property
    def valid_mrr(self) -> Optional[float]:
        """The validation MRR at that step; None without a validation split."""
        mrr = self._info()[0].valid_mrr
        return mrr if mrr == mrr else None

    @property
    def weights(self) -> dict[str, float]:
        """The weights of the components that score the graph in use."""
        info, _handle = self._info()
        return {name: info.weights[at] for at, name in enumerate(COMPONENTS) if info.components >> at & 1}

    @property
    def formula(self) -> str:
        """The score as a sum of components: "f = f_p + 0.1 f_g"."""
        terms: list[str] = []
        for name in ("path", "vertical", "horizontal"):
            weight = self.weights.get(name, 0)
            if weight:
                terms.append(SYMBOLS[name] if weight == 1 and not terms else f"{weight:.4g} {SYMBOLS[name]}")
        return f"f = {' + '.join(terms)}"

    @property
    def settings(self) -> dict[str, str]:
        """Every setting that the run was trained with."""
        handle, values = self._handle, {}
        info, text = abi.vlp_setting_info(), c.create_string_buffer(64)
        index = 0
        while lib.vlp_setting_describe(c.byref(info), index) and lib.vlp_run_setting(text, handle.address, index):
            values[text_of(info.name)] = text_of(text.value)
            index += 1
        return values

    @property
    def checksum(self) -> str:
        """Of the names and triples that the run was trained on."""
        handle = self._handle
        return text_of(lib.vlp_run_checksum(handle.address))

    @property
    def version(self) -> str:
        """Of the library that trained the run."""
        handle = self._handle
        return text_of(lib.vlp_run_version(handle.address))

    @property
    def graph(self) -> Graph:
        """The graph that the run was trained on."""
        handle = self._handle
        return Graph(Handle(lib.vlp_run_dataset(handle.address), holds=handle))

    @property
    def history(self) -> list[Point]:
        """What was recorded while the run was trained."""
        handle, out = self._handle, c.POINTER(abi.vlp_history)()
        call(lib.vlp_run_history, c.byref(out), handle.address)
        made = Handle(out, lib.vlp_history_free)
        found = made.address.contents
        return [Point._of(point) for point in found.items[: found.count]]

    def history_frame(self) -> Any:
        """`history` as a pandas DataFrame."""
        return frame_of([point.to_dict() for point in self.history])

    @property
    def entity_embeddings(self) -> npt.NDArray[np.float32]:
        """The table of entity embeddings: (entities, columns), read-only, without a copy.

        The array keeps the run's memory alive, also after `close`. Complex numbers have all real parts first,
        then all imaginary parts. It has no columns where the run has no embeddings (the path model alone).
        """
        handle, table = self._handle, abi.vlp_embeddings()
        call(lib.vlp_run_entity_embeddings, c.byref(table), handle.address)
        return borrow(handle, address_of(table.values), (table.rows, table.columns), np.float32)

    # ---- Evaluating ----

    def evaluate(
        self,
        split: str = "test",
        *,
        by: Union[str, Sequence[str]] = (),
        side: str = "both",
        filter: Splits = None,
        candidates: Optional[Sequence[Name]] = None,
        among: int = 0,
        pagerank: bool = False,
        control: bool = False,
        triples: int = 0,
        sample: int = 0,
        seed: int = 0,
        use_graph: bool = False,
        progress: Optional[bool] = None,
    ) -> Evaluation:
        """Ranks the answers of a split among all entities, filtered.

        Parameters
        ----------
        split
            "test" or "valid".
        by
            What the printed evaluation is broken down by: "relation", "side", "mapping", "distance". The
            object has all of them.
        side
            The entity that is asked for: "head", "tail" or "both".
        filter
            The splits whose answers are filtered; None: train and valid, and test where test is ranked.
        candidates
            Rank these entities alone; adds the area under the precision-recall curve.
        among
            Also Hits@10 among that many random candidates.
        pagerank
            Also rank by personalised PageRank, as a baseline.
        control
            Also train and rank the aggregator without references.
        triples, sample, seed
            For large graphs: rank that many triples of the split, drawn at random, which is an estimate; rank
            among that many entities, drawn at random once, which gives higher figures.
        use_graph
            Evaluate the graph of `use_graph` instead of the run's own.
        """
        shown = (by,) if isinstance(by, str) else tuple(by)
        for kind in shown:
            choice(kind, BREAKDOWNS, "breakdown")
        options = abi.vlp_evaluation_options.default()
        options.split, options.sides = choice(split, SPLITS, "split"), choice(side, SIDES, "side")
        options.filter = bits(filter)
        options.control, options.graph, options.among, options.pagerank = control, use_graph, among, pagerank
        options.triples, options.sample, options.seed = triples, sample, seed
        out = c.POINTER(abi.vlp_evaluation)()
        handle = self._handle
        with self._lock.shared(), Watch(make_bar(progress)) as watch:
            names = self._names(handle) if use_graph else Names(lib.vlp_run_dataset(handle.address), handle)
            if candidates is not None:
                ids = np.array([names.find_entity(name) for name in candidates], np.int32)
                options.candidates, options.candidate_count = ids.ctypes.data_as(c.POINTER(c.c_int32)), len(ids)
            options.observer = c.pointer(watch.observer)
            watch.finish(lib.vlp_run_evaluate(c.byref(out), handle.address, c.byref(options)))
            return Evaluation(Handle(out, lib.vlp_evaluation_free), names, shown)

    # ---- Predicting ----

    def _names(self, handle: Handle) -> Names:
        """Of the graph in use. Valid while the lock is held."""
        return Names(lib.vlp_run_graph_dataset(handle.address), handle)

    def predict(
        self,
        head: Any = None,
        relation: Any = None,
        tail: Any = None,
        *,
        k: int = 10,
        known: Optional[bool] = None,
        explain: bool = False,
        paths: int = 3,
        filter: Splits = None,
        candidates: Optional[Sequence[Name]] = None,
        seen: bool = False,
        where: Conditions = None,
    ) -> Any:
        """The best answers of a query, or of many.

        Two of head, relation and tail are given, as names, labels or ids; what is left out is asked for. Lists
        and arrays ask many queries at once, which is faster; a single value goes with each of a list.

        Parameters
        ----------
        head, relation, tail
            What is known of the query.
        k
            Answers wanted.
        known
            Whether answers that are known already are among them, and marked. None: not among entities, but
            among relations.
        explain, paths
            With references, at most that many paths, and the triples that each answer rests on.
        filter
            The splits that count as known; None: all.
        candidates
            Only these entities are answers.
        seen
            Only entities that the graph has in that place of the relation.
        where
            Only entities x with the known triple (x, relation, entity), for each pair: {relation: entity}, or a
            list of pairs; "^relation": with (entity, relation, x).

        Returns
        -------
        Answers or RelationAnswers
            A list of them where lists were given. Both are sequences of predictions.

        Examples
        --------
        >>> run.predict("germany", "borders", k=1)[0].entity  # doctest: +SKIP
        'czechia'
        >>> [answers[0].entity for answers in run.predict(["vienna", "prague"], "lies_on", k=1)]  # doctest: +SKIP
        ['danube', 'vltava']
        """
        given = sum(value is not None for value in (head, relation, tail))
        if given != 2:
            raise ArgumentError("a query has two of head, relation and tail; the third is asked for")
        many, asked = rows(head, relation, tail)
        options = abi.vlp_predict_options.default()
        options.count, options.filter = k, bits(filter)
        handle = self._handle
        with self._lock.shared(), Watch() as watch:
            names = self._names(handle)
            options.observer = c.pointer(watch.observer)
            found: list[Any] = []
            if relation is None:
                no_restriction(candidates, seen, where, explain)
                options.known = known is None or known
                pairs = [(names.find_entity(row[0]), names.find_entity(row[2])) for row in asked]
                for start in range(0, len(pairs), BATCH):
                    found += self._predict_relations(handle, names, pairs[start : start + BATCH], options, watch)
            else:
                options.known, options.explain, options.paths = bool(known), explain, paths
                restriction, _kept = restrict(names, candidates, seen, where)
                options.candidates = restriction
                queries = [query(names, *row) for row in asked]
                for start in range(0, len(queries), BATCH):
                    found += self._predict_entities(handle, names, queries[start : start + BATCH], options, watch)
        return found if many else found[0]

    def _predict_entities(
        self, handle: Handle, names: Names, queries: Sequence[Any], options: Any, watch: Watch
    ) -> list[Answers]:
        out = c.c_void_p()
        array = (abi.vlp_query * len(queries))(*queries)
        watch.finish(lib.vlp_run_predict(c.byref(out), handle.address, array, len(queries), c.byref(options)))
        made = Handle(out.value, lib.vlp_predictions_free)
        answers = (lib.vlp_predictions_get(made.address, number).contents for number in range(len(queries)))
        return [answers_of(names, each, options.explain) for each in answers]

    def _predict_relations(
        self, handle: Handle, names: Names, pairs: Sequence[Any], options: Any, watch: Watch
    ) -> list[RelationAnswers]:
        out = c.c_void_p()
        array = (abi.vlp_entity_pair * len(pairs))(*pairs)
        watch.finish(lib.vlp_run_predict_relations(c.byref(out), handle.address, array, len(pairs), c.byref(options)))
        made = Handle(out.value, lib.vlp_relation_predictions_free)
        answers = (lib.vlp_relation_predictions_get(made.address, number).contents for number in range(len(pairs)))
        return [relation_answers_of(names, each) for each in answers]

    def explain(
        self, head: Name, relation: Name, tail: Name, *, asks: str = "tail", paths: int = 3, filter: Splits = None
    ) -> Explanation:
        """Why an answer has the score it has: paths, the triples it rests on, references.

        A notebook shows the explanation as a picture. Where the triple is in the graph, it is taken out for
        the query: otherwise it would explain itself.

        Parameters
        ----------
        asks
            Which entity is the answer, "tail" or "head".
        paths
            At most that many, 0 to 8; 0: the triples that the answer rests on are not looked for either.
        filter
            The splits that count as known; None: all.
        """
        options = abi.vlp_predict_options.default()
        options.paths, options.filter = paths, bits(filter)
        handle, out = self._handle, c.c_void_p()
        with self._lock.shared(), Watch() as watch:
            names = self._names(handle)
            asked, answer, triple = self._triple_query(handle, names, (head, relation, tail), asks)
            options.observer = c.pointer(watch.observer)
            array = (abi.vlp_query * 1)(asked)
            answers_array = (c.c_int32 * 1)(answer)
            watch.finish(
                lib.vlp_run_explain(c.byref(out), handle.address, array, answers_array, 1, c.byref(options))
            )
            made = Handle(out.value, lib.vlp_predictions_free)
            answers = lib.vlp_predictions_get(made.address, 0).contents
            prediction = prediction_of(names, answers, answers.predictions[0], True)
            texts = labels(names, triple, prediction)
        return Explanation(triple, asks, prediction, self.formula, texts)

    def what_if(
        self,
        head: Name,
        relation: Name,
        tail: Name,
        without: Triples,
        *,
        asks: str = "tail",
        filter: Splits = None,
    ) -> WhatIf:
        """What an answer would be if some known triples were not known.

        Parameters
        ----------
        without
            At most 16 triples of the graph: a list of (head, relation, tail).
        asks, filter
            As in `explain`.
        """
        options = abi.vlp_predict_options.default()
        options.filter = bits(filter)
        handle, out = self._handle, abi.vlp_what_if()
        with self._lock.shared(), Watch() as watch:
            names = self._names(handle)
            removed = names.find_triples(without)
            asked, answer, triple = self._triple_query(handle, names, (head, relation, tail), asks)
            options.observer = c.pointer(watch.observer)
            status = lib.vlp_run_what_if(
                c.byref(out), handle.address, asked, answer, as_triples(removed), len(removed), c.byref(options)
            )
            watch.finish(status)
            triples = [Triple(names.entity(h), names.relation(r), names.entity(t)) for h, r, t in removed.tolist()]
        before = out.rank_before, out.score_before, parts_of(out.parts_before)
        return WhatIf(triple, triples, *before, out.rank, out.score, parts_of(out.parts))

    def _triple_query(
        self, handle: Handle, names: Names, triple: tuple[Name, Name, Name], asks: str
    ) -> tuple[abi.vlp_query, int, Triple]:
        """The query that a triple answers, its own edge left out, and the answer."""
        choice(asks, ("head", "tail"), "side")
        ids = names.find_entity(triple[0]), names.find_relation(triple[1]), names.find_entity(triple[2])
        edges = self._graph_triples(handle)
        own = np.flatnonzero((edges[:, 0] == ids[0]) & (edges[:, 1] == ids[1]) & (edges[:, 2] == ids[2]))
        left_out = int(own[0]) if len(own) else -1
        named = Triple(names.entity(ids[0]), names.relation(ids[1]), names.entity(ids[2]))
        if asks == "tail":
            return abi.vlp_query(ids[0], ids[1], left_out), ids[2], named
        return abi.vlp_query(ids[2], ids[1] + names.relation_count, left_out), ids[0], named

    @staticmethod
    def _graph_triples(handle: Handle) -> Ids:
        count = c.c_int64()
        pointer = lib.vlp_run_graph_triples(handle.address, c.byref(count))
        return borrow(handle, address_of(pointer), (count.value, 3), np.int32)

    def score(
        self, triples: Triples, *, prior: float = 0.5, calibrated: bool = True, progress: Optional[bool] = None
    ) -> Scores:
        """The scores of triples, and their probabilities.

        Parameters
        ----------
        triples
            A list of (head, relation, tail), an array of shape (count, 3), or a DataFrame; names or ids.
        prior
            The fraction of true triples among those scored.
        calibrated
            Whether there are probabilities; the first call fits them on the validation split.

        Examples
        --------
        >>> run.score([("vienna", "lies_on", "danube")]).probability  # doctest: +SKIP
        array([0.98])
        """
        options = abi.vlp_score_options.default()
        options.prior, options.uncalibrated = prior, not calibrated
        handle = self._handle
        with self._lock.shared(), Watch(make_bar(progress)) as watch:
            names = self._names(handle)
            ids = np.ascontiguousarray(names.find_triples(triples))
            out = (abi.vlp_score * len(ids))()
            options.observer = c.pointer(watch.observer)
            watch.finish(lib.vlp_run_score(out, handle.address, as_triples(ids), len(ids), c.byref(options)))
            named = np.empty((len(ids), 3), object)
            for row, (head, relation, tail) in enumerate(ids.tolist()):
                named[row] = names.entity(head), names.relation(relation), names.entity(tail)
        return Scores._of(out, named)

    def mine(
        self,
        k: int = 100,
        *,
        relation: Optional[Name] = None,
        per_query: int = 10,
        prior: float = 0.5,
        side: str = "both",
        candidates: Optional[Sequence[Name]] = None,
        seen: bool = False,
        where: Conditions = None,
        state: Optional[Path] = None,
        resume: bool = False,
        progress: Optional[bool] = None,
    ) -> Mined:
        """The likeliest triples that are not known.

        Parameters
        ----------
        k
            Triples wanted.
        relation
            Only of this one; None: of all.
        per_query
            Candidates per query, 1 to 1000.
        side
            Which entity of a triple is asked for; `candidates`, `seen` and `where` restrict it as in `predict`.
        state, resume
            A file for the progress made, from which an interrupted call goes on.
        """
        options = abi.vlp_mine_options.default()
        options.count, options.per_query, options.prior = k, per_query, prior
        options.sides = choice(side, SIDES, "side")
        options.state, options.resume = None if state is None else encode_path(state), resume
        handle, out = self._handle, c.POINTER(abi.vlp_mining)()
        with self._lock.shared(), Watch(make_bar(progress)) as watch:
            names = self._names(handle)
            options.relation = -1 if relation is None else names.find_relation(relation)
            options.candidates, _kept = restrict(names, candidates, seen, where)
            options.observer = c.pointer(watch.observer)
            watch.finish(lib.vlp_run_mine(c.byref(out), handle.address, c.byref(options)))
            made = Handle(out, lib.vlp_mining_free)
            mining = made.address.contents
            triples = [
                MinedTriple(Triple(*names.triple(item.triple)), item.score, parts_of(item.parts), item.probability)
                for item in mining.items[: mining.count]
            ]
        counts = mining.queries, mining.possible_queries, mining.candidates, mining.possible_triples
        return Mined(triples, *counts)

    # ---- Another graph, and files ----

    def use_graph(self, graph: Union[Graph, Path, None]) -> Optional[GraphReport]:
        """From now on predictions, scores and mining read the training split of this graph.

        It may have grown since training, or be about other entities over the same relations, which the path
        model scores. None restores the run's own.

        Parameters
        ----------
        graph
            A graph, or a folder with one.
        """
        handle, report = self._handle, abi.vlp_graph_report()
        with contextlib.ExitStack() as stack:
            folder: Optional[bytes] = None
            if isinstance(graph, Graph):
                path = os.path.join(stack.enter_context(tempfile.TemporaryDirectory(prefix="vlp-")), "graph")
                graph.write(path)
                folder = encode_path(path)
            elif graph is not None:
                folder = encode_path(graph)
            stack.enter_context(self._lock.exclusive())
            watch = stack.enter_context(Watch())
            watch.finish(
                lib.vlp_run_use_graph(c.byref(report), handle.address, folder, c.byref(watch.observer)), graph if folder else None
            )
        if graph is None:
            return None
        return GraphReport(*(getattr(report, field.name) for field in dataclasses.fields(GraphReport)))

    def export(self, folder: Path) -> None:
        """Writes the trained tables as numpy arrays into the new folder, with the names of their rows."""
        handle = self._handle
        call(lib.vlp_run_export, handle.address, encode_path(folder))

    def save(self, folder: Path) -> None:
        """Copies the run's folder, for a run that was trained without ``out``."""
        if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
            raise ExistsError(f"{os.fspath(folder)} is there already")
        shutil.copytree(self.path, folder, dirs_exist_ok=True)


def open_run(path: Path, device: Optional[str] = None, threads: int = 0, data: Optional[Path] = None) -> Run:
    """Opens a trained run.

    Parameters
    ----------
    path
        The run's folder, as `vlp.train` and ``vlp train`` write it.
    device
        "auto" (a GPU where there is one), "cpu" or "cuda".
    threads
        Of each call; 0: all of the machine's.
    data
        A folder with the data set it was trained on, to use instead of the copy in the run.

    Examples
    --------
    >>> with vlp.open("run") as run:  # doctest: +SKIP
    ...     print(run.predict("germany", "borders"))
    """
    return Run(path, device, threads, data)
