"""Reading graphs and making them."""

import gzip
import io
import pickle

import numpy as np
import pandas
import pytest

import vlp
from conftest import nine_digits

TRIPLES = [("vienna", "capital_of", "austria"), ("paris", "capital_of", "france"), ("austria", "borders", "germany")]
VALID = [("germany", "borders", "france")]


def contents(graph):
    splits = [graph.named(graph.triples(split)).tolist() for split in ("train", "valid", "test")]
    return splits, graph.entities.tolist(), graph.relations.tolist()


EXPECTED = (
    [[list(triple) for triple in TRIPLES], [list(triple) for triple in VALID], []],
    ["vienna", "austria", "paris", "france", "germany"],
    ["capital_of", "borders"],
)
IDS = np.array([[0, 0, 1], [2, 0, 3], [1, 1, 4]])


@pytest.mark.parametrize(
    "form",
    [
        list,
        tuple,
        np.array,
        lambda triples: np.array(triples, object),
        lambda triples: pandas.DataFrame(triples, columns=["head", "relation", "tail"]),
        lambda triples: pandas.DataFrame(triples, columns=["subject", "predicate", "object"]).assign(more=1),
        lambda triples: pandas.DataFrame(triples),
        iter,
    ],
)
def test_names_in_every_form(form):
    assert contents(vlp.Graph.from_triples(form(TRIPLES), valid=form(VALID))) == EXPECTED


@pytest.mark.parametrize("form", [np.array, np.ndarray.tolist, pandas.DataFrame, lambda ids: ids.astype(np.uint64), np.asfortranarray])
def test_ids_in_every_form(form):
    entities, relations = EXPECTED[1], EXPECTED[2]
    graph = vlp.Graph.from_triples(form(IDS), valid=form(np.array([[4, 1, 3]])), entities=entities, relations=relations)
    assert contents(graph) == EXPECTED


def test_ids_without_names_are_their_own():
    graph = vlp.Graph.from_triples(IDS)
    assert graph.entities.tolist() == ["0", "1", "2", "3", "4"]
    assert (graph.train == IDS).all() and len(graph.valid) == 0


def test_read_and_from_triples_give_the_same(tmp_path):
    graph = vlp.Graph.from_triples(TRIPLES, valid=VALID, labels={"vienna": "Wien", "borders": "grenzt an"}, descriptions={"vienna": "a city"})
    graph.write(tmp_path / "data")
    again = vlp.Graph.read(tmp_path / "data")
    assert contents(again) == contents(graph) == EXPECTED
    for each in (graph, again):
        assert each.entity_labels.tolist() == ["Wien", None, None, None, None]
        assert each.relation_labels.tolist() == [None, "grenzt an"]
        assert each.label("vienna") == "Wien" and each.description("Wien") == "a city"
        assert each.entity_id("Wien") == 0
    with pytest.raises(vlp.ExistsError):
        graph.write(tmp_path / "data")


def test_files_of_all_kinds(tmp_path, source):
    text = "".join("\t".join(triple) + "\n" for triple in TRIPLES)
    (tmp_path / "a.tsv").write_text(text)
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "c.csv").write_text("x,from,what,to\n" + "".join(f"1,{h},{r},{t}\n" for h, r, t in TRIPLES))
    (tmp_path / "d.nt").write_text("".join(f"<http://x/{h}> <http://x/{r}> <http://x/{t}> .\n" for h, r, t in TRIPLES))
    everything = {"valid": 0, "test": 0}
    graphs = [
        vlp.Graph.read(tmp_path / "a.tsv", **everything),
        vlp.Graph.read(str(tmp_path / "b.tsv.gz"), **everything),
        vlp.Graph.read(tmp_path / "c.csv", columns=["from", "what", "to"], **everything),
        vlp.Graph.read(tmp_path / "c.csv", columns=[2, 3, 4], header=True, **everything),
        vlp.Graph.read(io.StringIO(text), format="tsv", **everything),
        vlp.Graph.read(io.BytesIO(text.encode()), **everything),
        vlp.Graph.read(open(tmp_path / "b.tsv.gz", "rb"), **everything),
    ]
    for graph in graphs:
        assert contents(graph)[0][0] == EXPECTED[0][0]
    assert vlp.Graph.read(tmp_path / "d.nt", **everything).train.shape == (3, 3)
    europe = vlp.Graph.read(source / "examples" / "europe.tsv", test=0.1, seed=2)
    assert [len(europe.train), len(europe.valid), len(europe.test)] == [376, 22, 44]


def test_random_split_of_triples_in_memory(source):
    rows = [line.split("\t") for line in (source / "examples" / "europe.tsv").read_text().splitlines()]
    graph = vlp.Graph.from_triples(rows, valid=0.05, test=0.1, seed=2, labels={"vienna": "Wien"})
    file = vlp.Graph.read(source / "examples" / "europe.tsv", valid=0.05, test=0.1, seed=2)
    assert contents(graph) == contents(file)
    assert graph.label("vienna") == "Wien"
    with pytest.raises(vlp.ArgumentError, match="both"):
        vlp.Graph.from_triples(TRIPLES, valid=0.1, test=VALID)


def test_arrays_are_the_librarys_memory(family):
    first, second = family.train, family.train
    assert first.dtype == np.int32 and first.flags.c_contiguous
    assert first.ctypes.data == second.ctypes.data and not first.flags.writeable and not first.flags.owndata
    with pytest.raises(ValueError):
        first[0, 0] = 1
    with pytest.raises(ValueError):
        first.flags.writeable = True


def test_an_array_keeps_its_graph_alive():
    graph = vlp.Graph.from_triples(TRIPLES)
    train = graph.train
    del graph
    others = [vlp.Graph.from_triples(TRIPLES * 5) for _ in range(20)]
    assert (train == IDS).all() and len(others) == 20


def test_counts_and_audit_are_those_of_the_program(family, family_folder, program):
    # The program's data set is read from files: its memory is another.
    def without_bytes(record):
        return {key: value for key, value in record.items() if key != "bytes"}

    assert without_bytes(family.stats.to_dict()) == without_bytes(program("data", "stats", family_folder))
    audit = family.audit()
    assert without_bytes(nine_digits(audit.to_dict())) == without_bytes(program("data", "audit", family_folder))
    assert "test triples" in str(audit) and "<table>" in audit._repr_html_()
    assert list(audit.to_frame().relation) == [pair.relation for pair in audit.pairs]


def test_pickled_graph_is_the_same(family):
    again = pickle.loads(pickle.dumps(family))
    assert contents(again) == contents(family)
    assert again.entity_labels.tolist() == family.entity_labels.tolist()


def test_text_and_ids(family):
    assert repr(family) == f"<vlp.Graph: {len(family.entities):,} entities, {len(family.relations)} relations, train {len(family.train):,}, valid {len(family.valid)}, test {len(family.test)}>"
    names = family.named(family.test)
    assert (family.ids(names) == family.test).all()
    assert (family.ids(family.to_frame("test")) == family.test).all()
    assert list(family.to_frame("test").columns) == ["head", "relation", "tail"]


def test_errors_name_what_is_wrong(family, tmp_path):
    with pytest.raises(KeyError, match="grandfather") as caught:
        family.relation_id("granfather")
    assert isinstance(caught.value, vlp.UnknownNameError) and not str(caught.value).startswith("'")
    with pytest.raises(FileNotFoundError, match="nowhere") as caught:
        vlp.Graph.read(tmp_path / "nowhere")
    assert isinstance(caught.value, vlp.Error)
    (tmp_path / "train.tsv").write_text("a\tb\n")
    with pytest.raises(vlp.FormatError, match="train.tsv"):
        vlp.Graph.read(tmp_path)
    with pytest.raises(TypeError, match="triple 1 of train"):
        vlp.Graph.from_triples([("a", "b", "c"), ("a", 1, "c")])
    with pytest.raises(ValueError, match="triple 1 is not"):
        vlp.Graph.from_triples([("a", "b", "c"), ("a", "b")])
    with pytest.raises(ValueError, match="shape"):
        vlp.Graph.from_triples(np.zeros((2, 2), int))
    with pytest.raises(ValueError, match="ids are"):
        vlp.Graph.from_triples([(0, 0, -1)])
    with pytest.raises(ValueError, match="NUL"):
        vlp.Graph.from_triples([("a\0b", "r", "c")])
    with pytest.raises(vlp.ArgumentError, match="column|columns"):
        vlp.Graph.from_triples(pandas.DataFrame({"a": [1], "b": [2], "c": [3], "d": [4]}))
    with pytest.raises(vlp.ArgumentError, match="out of range|ids are"):
        family.named(np.array([[10**6, 0, 0]]))
    with pytest.raises(vlp.ArgumentError, match="no split"):
        family.triples("dev")
    with pytest.raises(vlp.ArgumentError, match="no format"):
        (tmp_path / "x.tsv").write_text("a\tb\tc\n")
        vlp.Graph.read(tmp_path / "x.tsv", format="xml")
    with pytest.raises(vlp.ArgumentError, match="train"):
        vlp.Graph.from_triples([])
