"""Runs: what they answer is what the program answers."""

import json
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import xml.etree.ElementTree

import numpy as np
import pandas
import pytest

import vlp
from conftest import SETTINGS, nine_digits


def test_predictions_are_those_of_the_program(run, run_folder, query, program):
    head, relation, tail = query
    options = ["-k", 5, "--threads", 2]
    assert nine_digits(run.predict(head, relation, k=5).to_dict()) == program("predict", run_folder, head, relation, "?", *options)
    assert nine_digits(run.predict(relation=relation, tail=tail, k=5).to_dict()) == program("predict", run_folder, "?", relation, tail, *options)
    assert nine_digits(run.predict(head, relation, k=5, known=True, filter="train").to_dict()) == program(
        "predict", run_folder, head, relation, "?", *options, "--known", "--filter", "train"
    )
    explained = run.predict(head, relation, k=2, explain=True)
    assert nine_digits(explained.to_dict()) == program("predict", run_folder, head, relation, "?", "-k", 2, "--explain", "--threads", 2)
    assert explained[0].support is not None and explained[0].references
    relations = run.predict(head, tail=tail, k=5)
    assert nine_digits(relations.to_dict()) == program("predict", run_folder, head, "?", tail, *options)
    assert any(each.known for each in run.predict(head, tail=tail, k=100)) and "<table>" in relations._repr_html_()


def test_restricted_predictions_are_those_of_the_program(run, run_folder, family, query, program, tmp_path):
    head, relation, _ = query
    candidates = family.entities[:20].tolist()
    (tmp_path / "candidates").write_text("\n".join(candidates) + "\n")
    command = ["predict", run_folder, head, relation, "?", "-k", 3, "--threads", 2]

    def without_restriction(record):
        return {key: value for key, value in record.items() if key != "restriction"}

    listed = without_restriction(program(*command, "--candidates", tmp_path / "candidates"))
    assert nine_digits(run.predict(head, relation, k=3, candidates=candidates).to_dict()) == listed and listed["candidates"] == 20
    seen = without_restriction(program(*command, "--seen"))
    assert nine_digits(run.predict(head, relation, k=3, seen=True).to_dict()) == seen and seen["candidates"] < len(family.entities)
    one = family.named(family.train[:1])[0]
    for name, entity, form in ((one[1], one[2], dict), (f"^{one[1]}", one[0], list)):
        where = without_restriction(program(*command, "--where", f"{name}={entity}"))
        assert nine_digits(run.predict(head, relation, k=3, where=form([(name, entity)])).to_dict()) == where


def test_batches_are_single_queries(run, family):
    names = family.named(family.test[:6])
    batch = run.predict(names[:, 0], names[:, 1], k=3)
    assert [answers.to_dict().keys() for answers in batch] and len(batch) == 6
    for row, answers in zip(names, batch):
        single = run.predict(row[0], row[1], k=3)
        assert [each.entity for each in answers] == [each.entity for each in single]
        assert [each.score for each in answers] == pytest.approx([each.score for each in single], rel=1e-5)
    series = run.predict(pandas.Series(names[:2, 0]), names[0, 1], k=1)
    assert len(series) == 2 and len(series[0]) == 1
    ids = run.predict(family.test[:6, 0], family.test[:6, 1], k=3)
    assert [answers.to_dict() for answers in ids] == [answers.to_dict() for answers in batch]
    assert len(run.predict(names[:3, 0], tail=names[:3, 2], k=1)) == 3
    many = run.predict(np.resize(family.test[:, 0], 1200), family.test[0, 1], k=1)
    assert len(many) == 1200 and many[0].to_dict()["head"] == many[len(family.test)].to_dict()["head"]


def test_evaluation_is_that_of_the_program(run, run_folder, program):
    evaluation = run.evaluate(by=["side", "distance"], among=20, pagerank=True)
    theirs = program("eval", run_folder, "--threads", 2, "--among", 20, "--baselines", "pagerank")
    assert nine_digits(evaluation.to_dict()) == theirs
    assert nine_digits(run.evaluate("valid", side="tail", filter=["train"]).to_dict()) == program(
        "eval", run_folder, "--split", "valid", "--side", "tail", "--filter", "train", "--threads", 2
    )
    sampled = run.evaluate(triples=20, sample=30, seed=5)
    assert nine_digits(sampled.to_dict()) == program("eval", run_folder, "--triples", 20, "--sample", 30, "--seed", 5, "--threads", 2)
    assert evaluation.mrr == evaluation.both.mrr and evaluation.interval.low <= evaluation.mrr <= evaluation.interval.high
    ranks = evaluation.ranks()
    assert ranks.shape == (evaluation.queries // 2, 2) and np.mean(1 / ranks) == pytest.approx(evaluation.mrr)
    gain = evaluation.compare(evaluation, "f", "path")
    assert gain.middle == pytest.approx(evaluation.mrr - evaluation.alone["path"].mrr)
    frame = evaluation.to_frame("relation")
    assert frame.queries.sum() == evaluation.queries and set(frame.columns) >= {"relation", "mrr", "hits@10", "path"}
    assert evaluation.to_frame().loc[0, "mrr"] == evaluation.mrr
    assert str(evaluation).count("\n\n") == 3 and "by distance" in evaluation._repr_html_()
    with pytest.raises(vlp.ArgumentError, match="breakdown"):
        run.evaluate(by="colour")
    with pytest.raises(TypeError, match="to_dict"):
        pickle.dumps(evaluation)


def test_scores_are_those_of_the_program(run, run_folder, family, program, tmp_path):
    triples = np.concatenate([family.test[:5], family.train[:5]])
    family.to_frame("test")[:5].to_csv(tmp_path / "triples.tsv", sep="\t", header=False, index=False)
    with open(tmp_path / "triples.tsv", "a") as file:
        file.writelines("\t".join(triple) + "\n" for triple in family.named(family.train[:5]))
    theirs = program("score", run_folder, tmp_path / "triples.tsv", "--threads", 2)["triples"]
    scores = run.score(triples)
    assert nine_digits(scores.to_dict()) == theirs
    assert nine_digits(run.score(family.named(triples).tolist()).to_dict()) == theirs
    assert len(scores) == 10 and scores.known[5:].all() and ((0 < scores.probability) & (scores.probability < 1)).all()
    assert np.isnan(run.score(triples, calibrated=False).probability).all()
    assert scores.to_frame().shape[0] == 10 and len(run.score([])) == 0


def test_mined_triples_are_those_of_the_program(run, run_folder, program):
    mined = run.mine(7, relation="grandfather", per_query=3, progress=False)
    assert nine_digits(mined.to_dict()) == program("mine", run_folder, "-k", 7, "--relation", "grandfather", "--per-query", 3, "--threads", 2)
    assert len(mined) == 7 and mined[0].triple.relation == "grandfather" and len(mined.to_frame()) == 7


def test_explanation_is_that_of_a_prediction(run, query):
    head, relation, _ = query
    prediction = run.predict(head, relation, k=1, explain=True)[0]
    explanation = run.explain(head, relation, prediction.entity)
    assert explanation.paths == prediction.paths and explanation.references == prediction.references
    assert explanation.score == pytest.approx(prediction.score, rel=1e-6)
    assert explanation.to_dict()["entity"] == prediction.entity and len(explanation.to_frame()) == len(explanation.references)
    assert str(explanation).startswith(head)
    other = run.explain(prediction.entity, relation, head, asks="head")
    assert other.asks == "head" and other.prediction.entity == prediction.entity


def test_a_known_triple_does_not_explain_itself(run, family):
    head, relation, tail = family.named(family.train[:1])[0]
    explanation = run.explain(head, relation, tail, paths=8)
    triples = [step.triple for path in explanation.paths for step in path.steps] + [item.triple for item in explanation.references]
    assert (head, relation, tail) not in triples
    assert explanation.score == pytest.approx(run.score([(head, relation, tail)]).tail[0], rel=1e-6)


def test_pictures(run, query):
    head, relation, _ = query
    answer = run.predict(head, relation, k=1, explain=True)[0]
    explanation = run.explain(head, relation, answer.entity)
    root = xml.etree.ElementTree.fromstring(explanation._repr_svg_())
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert explanation.labels[head] in texts and answer.label in texts
    assert root.get("role") == "img" and root.get("aria-label")
    steps = {(place, step) for path in explanation.paths for place, step in enumerate(path.steps)}
    drawn = len(root.findall(".//{*}path[@fill='none']"))
    assert 0 < len({step for _, step in steps}) <= drawn <= sum(len(path.steps) for path in explanation.paths)
    circles = [float(circle.get("cx")) for circle in root.iter("{http://www.w3.org/2000/svg}circle")]
    assert len(circles) >= 2 and 0 < min(circles) < max(circles) < float(root.get("width"))
    page = explanation._repr_html_()
    assert page.count("<svg") == 1 + len(explanation.references) and "<caption>References" in page
    xml.etree.ElementTree.fromstring(page.replace("<br>", "<br/>"))


def test_what_if(run, family, query):
    head, relation, _ = query
    answer = run.predict(head, relation, k=1, explain=True)[0]
    assert answer.support is not None
    nothing = run.what_if(head, relation, answer.entity, [])
    assert nothing.rank == nothing.rank_before == 1 and nothing.score == pytest.approx(answer.score, rel=1e-6)
    step = answer.paths[0].steps[0].triple
    changed = run.what_if(head, relation, answer.entity, [step])
    assert changed.without == [step] and changed.rank_before == 1 and changed.parts["path"] != changed.parts_before["path"]
    assert changed.to_dict()["triple"] == {"head": head, "relation": relation, "tail": answer.entity}
    with pytest.raises(vlp.ArgumentError):
        run.what_if(head, relation, answer.entity, family.test[:1])


def test_embeddings_are_the_runs_memory(run_folder, tmp_path):
    run = vlp.open(run_folder)
    table = run.entity_embeddings
    assert table.shape == (len(run.graph.entities), 16) and table.dtype == np.float32
    assert not table.flags.writeable and not table.flags.owndata and table.ctypes.data == run.entity_embeddings.ctypes.data
    run.export(tmp_path / "arrays")
    exported = np.load(tmp_path / "arrays" / "entities.npy")
    run.close()
    del run
    assert (table == exported).all()  # the array keeps the memory


def test_four_threads_at_once(run, family):
    queries = family.named(family.test[:40])
    expected = [run.predict(row[0], row[1], k=3).to_dict() for row in queries]
    found, errors = {}, []

    def work(part):
        try:
            found[part] = [run.predict(row[0], row[1], k=3).to_dict() for row in queries]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and all(found[part] == expected for part in range(4))


def test_the_lock_of_python_is_released(run, family):
    """Another thread counts while the library works."""
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    vlp.Graph.family(families=200, seed=1).audit()
    gained = counted[0] - before
    done.set()
    thread.join()
    assert gained > 10000


def test_another_graph(run_folder, family):
    with vlp.open(run_folder) as run:
        head, relation, tail = family.named(family.test[:1])[0]
        before = run.predict(head, relation, k=3).to_dict()
        grown = vlp.Graph.from_triples(np.concatenate([family.named(family.train), [[head, relation, "newcomer"]]]))
        report = run.use_graph(grown)
        assert report.new_triples == 1 and report.new_entities == 1
        assert run.predict(head, relation, k=1, known=True, candidates=["newcomer"])[0].known
        run.use_graph(None)
        assert run.predict(head, relation, k=3).to_dict() == before


def test_facts(run, run_folder, family):
    assert run.path == str(run_folder) and run.settings["dim"] == "16" and run.settings["path"] == "on"
    assert (run.graph.train == family.train).all() and run.version == vlp.__version__ and len(run.checksum) == 32
    assert [point.step for point in run.history] == sorted(point.step for point in run.history)
    assert run.history[-1].valid_mrr == pytest.approx(run.valid_mrr, abs=1e-6)
    assert list(run.history_frame().columns) == ["step", "loss_horizontal", "loss_vertical", "loss_path", "valid_mrr"]
    assert set(run.weights) == {"horizontal", "vertical", "path"} and run.formula in repr(run)


def test_closing_and_pickling(run_folder, family):
    run = vlp.open(run_folder)
    graph = run.graph
    again = pickle.loads(pickle.dumps(run))
    assert again.path == run.path
    with run:
        pass
    assert (graph.train == family.train).all()
    with pytest.raises(vlp.ArgumentError, match="closed"):
        run.predict("a", "b")
    assert repr(run) == "<vlp.Run: closed>"


def test_errors(run, query, tmp_path):
    head, relation, tail = query
    with pytest.raises(FileNotFoundError):
        vlp.open(tmp_path / "nowhere")
    with pytest.raises(KeyError, match=relation):
        run.predict(head, relation + "x")
    with pytest.raises(vlp.ArgumentError, match="two of"):
        run.predict(head)
    with pytest.raises(vlp.ArgumentError, match="lengths"):
        run.predict([head, head], [relation] * 3)
    with pytest.raises(vlp.ArgumentError, match="no entity 1000000"):
        run.predict(1000000, relation)
    with pytest.raises(TypeError, match="name or its id"):
        run.predict(1.5, relation)
    with pytest.raises(ValueError):
        run.predict(head, relation, k=0)
    with pytest.raises(vlp.ArgumentError, match="asks for a relation"):
        run.predict(head, tail=tail, seen=True)
    with pytest.raises(RuntimeError) as caught:
        vlp.open(run.path, device="cuda", threads=1)
    assert isinstance(caught.value, vlp.DeviceError) or not os.path.exists("/dev/nvidiactl")
    with pytest.raises(vlp.ArgumentError, match="no device"):
        vlp.open(run.path, device="abacus")
    with pytest.raises(FileExistsError):
        run.export(run.path)


def test_program_opens_a_run_of_python(run_folder, family, program):
    assert program("eval", run_folder, "--threads", 2)["queries"] == 2 * len(family.test)


def tensors(path):
    """The names, types, shapes and bytes of a safetensors file, without its metadata, which name the data set."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__")
    assert header
    return header, content[8 + size :]


def test_same_settings_give_the_same_bits(family_folder, run_folder, program, tmp_path):
    settings = [f"--set={key}={'on' if value is True else value}" for key, value in SETTINGS.items()]
    program("train", family_folder, "-o", tmp_path / "run", "--time", "off", *settings)
    assert tensors(tmp_path / "run" / "model.safetensors") == tensors(run_folder / "model.safetensors")
    with vlp.open(tmp_path / "run", threads=2) as theirs, vlp.open(run_folder, threads=2) as ours:
        assert theirs.checksum == ours.checksum
        assert theirs.evaluate().to_dict() == ours.evaluate().to_dict()


def test_a_forked_process_is_refused(run):
    child = os.fork()
    if child == 0:
        try:
            run.predict(0, 0)
        except vlp.ForkError as error:
            os._exit(0 if "spawn" in str(error) else 2)
        except BaseException:
            os._exit(3)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _first_answer(run):
    return run.predict(0, 0, k=1)[0].entity


def test_a_spawned_process_opens_the_run(run):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map_async(_first_answer, [run]).get(timeout=300) == [_first_answer(run)]


def test_libraries_are_those_of_the_package(run_folder):
    """Though others are on the path that the loader searches."""
    if "site-packages" not in vlp.__file__:
        pytest.skip("the package is not installed")
    code = "import vlp, sys; vlp.open(sys.argv[1], device='cpu').predict(0, 0); print(open('/proc/self/maps').read())"
    folders = ":".join({str(path.parent) for path in pathlib.Path("/usr/lib").glob("*-linux-gnu/lib*.so*")})
    environment = {**os.environ, "LD_LIBRARY_PATH": folders}
    environment.pop("PYTHONPATH", None)
    output = subprocess.run([sys.executable, "-c", code, run_folder], check=True, capture_output=True, text=True, env=environment).stdout
    mapped = {line.split()[-1] for line in output.splitlines() if "/" in line}
    own = str(pathlib.Path(vlp.__file__).parent / "lib")
    for name in ("libvlp.so", "libopenblas.so", "libgomp.so", "libgfortran.so", "libquadmath.so", "libserd-0.so", "libzstd.so"):
        assert [path for path in mapped if os.path.basename(path).startswith(name)] == [
            path for path in mapped if os.path.basename(path).startswith(name) and path.startswith(own)
        ] != [], name
