"""Training from Python: settings, callbacks, interruption, progress; the search for settings."""

import datetime
import logging
import os
import pickle
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import types

import pytest

import vlp
from conftest import SETTINGS
from vlp import _training, _watch

QUICK = {"time": "off", "progress": False, "model": "distmult", "dim": 8, "batch": 64, "negatives": 4, "vertical": False, "threads": 2}


def test_report_and_settings(family, tmp_path):
    run = vlp.train(family, tmp_path / "run", steps=30, **QUICK)
    assert run.report.steps == run.report.call_steps == 30 and run.report.seconds > 0 and not run.report.stopped
    assert run.settings["dim"] == "8" and run.settings["vertical"] == "off" and run.settings["threads"] == "2"
    assert run.report.valid_mrr == pytest.approx(run.valid_mrr) and set(run.report.losses) == {"horizontal"}
    with pytest.raises(FileExistsError):
        vlp.train(family, tmp_path / "run", steps=30, **QUICK)
    more = vlp.train(family, tmp_path / "run", resume=True, steps=40, time="off", progress=False)
    assert more.report.steps == 40 and more.report.call_steps == 10


def test_a_folder_or_file_will_do(family_folder, source):
    assert vlp.train(family_folder, steps=5, **QUICK).report.steps == 5
    assert vlp.train(source / "examples" / "europe.tsv", steps=5, **QUICK).report.steps == 5


def test_recipes(family, source):
    run = vlp.train(family, recipe=source / "recipes" / "family.ini", steps=3, threads=2, progress=False)
    assert run.settings["dim"] == "100" and run.settings["model"] == "rotate" and run.report.steps == 3
    if "site-packages" in vlp.__file__:
        assert vlp.train(family, recipe="family", steps=3, threads=2, progress=False).settings == run.settings


def test_aggregator_over_a_base(family, run):
    over = vlp.train(family, base=run, steps=3, progress=False, threads=2)
    assert (over.graph.train == family.train).all() and "vertical" in over.weights


def test_a_temporary_folder_goes_with_the_run(family, tmp_path):
    run = vlp.train(family, steps=3, **QUICK)
    folder = run.path
    with pytest.raises(TypeError, match="temporary"):
        pickle.dumps(run)
    run.save(tmp_path / "kept")
    assert os.path.isdir(folder)
    del run
    assert not os.path.exists(folder)
    assert vlp.open(tmp_path / "kept").step == 3
    with pytest.raises(FileExistsError):
        vlp.open(tmp_path / "kept").save(tmp_path / "kept")


def test_wrong_arguments_leave_nothing(family, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(vlp.UnknownNameError, match="dim"):
        vlp.train(family, dims=8, time="off")
    with pytest.raises(ValueError, match="dim"):
        vlp.train(family, dim=-1, time="off")
    with pytest.raises(FileNotFoundError):
        vlp.train(tmp_path / "nowhere", time="off")
    with pytest.raises(vlp.ArgumentError, match="90s"):
        vlp.train(family, time="soon")
    with pytest.raises(vlp.Error):
        vlp.train(family, recipe="no-such-recipe", time="off")
    assert os.listdir(tmp_path) == []


def test_times():
    assert [_training._seconds(value) for value in ("90s", "5m", "2h", "12", 7, 1.5, datetime.timedelta(minutes=2), "off", None)] == [
        90, 300, 7200, 12, 7, 1.5, 120, 0, 0,
    ]  # fmt: skip


def test_a_time_chooses_settings(source):
    run = vlp.train(vlp.Graph.read(source / "examples" / "europe.tsv"), time=3, progress=False, threads=2)
    assert os.path.exists(os.path.join(run.path, "recipe.ini")) and run.report.seconds < 10


def test_callback_gets_the_metrics(family):
    points = []
    run = vlp.train(family, steps=30, eval_every=10, callback=points.append, **QUICK)
    assert [point.step for point in points] == [10, 20, 30]
    assert [point.step for point in run.history] == [10, 20, 30]
    for ours, theirs in zip(points, run.history):
        assert ours.losses["horizontal"] == pytest.approx(theirs.losses["horizontal"], rel=1e-4)
        assert ours.valid_mrr == pytest.approx(theirs.valid_mrr, rel=1e-4)


def test_callback_stops(family, tmp_path):
    run = vlp.train(family, tmp_path / "run", steps=1000, eval_every=10, callback=lambda point: point.step >= 20, **QUICK)
    assert run.report.stopped and 20 <= run.report.steps < 30 and run.evaluate().queries > 0
    more = vlp.train(family, tmp_path / "run", resume=True, steps=40, progress=False)
    assert more.report.steps == 40


def test_an_exception_of_the_callback_is_raised(family, tmp_path):
    def wrong(point):
        raise ZeroDivisionError(f"at step {point.step}")

    with pytest.raises(ZeroDivisionError, match="at step 10"):
        vlp.train(family, tmp_path / "run", steps=1000, eval_every=10, callback=wrong, **QUICK)
    assert vlp.open(tmp_path / "run").step >= 10


INTERRUPTED = """
import signal, sys, time, vlp
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have it ignored in the background
graph = vlp.Graph.family(families=3, seed=1)
try:
    vlp.train(graph, sys.argv[1], time="off", steps=10**8, eval_every=50, model="distmult", dim=8, vertical=False, threads=2,
              callback=lambda point: print("ready", flush=True))
except KeyboardInterrupt as stopped:
    assert isinstance(stopped, vlp.Stopped) and isinstance(stopped, vlp.Error), type(stopped)
    print(stopped)
    run = vlp.train(graph, stopped.folder, resume=True, steps=vlp.open(stopped.folder).step + 20)
    print("resumed", run.report.steps > run.report.call_steps > 0)
try:
    print("waiting", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("handler restored")
"""


def read_until(stream, text):
    output = ""
    while text not in output:
        line = stream.readline()
        assert line, output
        output += line
    return output


def test_interrupting_saves(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, tmp_path / "run"], stdout=subprocess.PIPE, text=True)
    limit = threading.Timer(180, process.kill)
    limit.start()
    read_until(process.stdout, "ready")
    process.send_signal(signal.SIGINT)
    output = read_until(process.stdout, "resumed True")
    assert f"it is saved in {tmp_path / 'run'}" in output and "resume=True" in output
    read_until(process.stdout, "waiting")
    process.send_signal(signal.SIGINT)
    assert "handler restored" in process.communicate()[0] and process.returncode == 0
    limit.cancel()


def test_bar_in_a_terminal(tmp_path):
    code = "import vlp; vlp.train(vlp.Graph.family(families=3, seed=1), time='off', steps=3000, model='distmult', dim=8, batch=64, negatives=4, threads=1)"
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen([sys.executable, "-c", code], stderr=theirs, stdout=theirs, env=environment)
    os.close(theirs)
    output = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            chunk = os.read(ours, 4096)
        except OSError:
            break
        if not chunk:
            break
        output += chunk
    assert process.wait() == 0
    text = output.decode()
    assert re.search(r"█+░+ +\d+%  \S+( k)?/s +\d+ s left", text), text
    assert "valid MRR" in text and text.endswith("\x1b[K") or "valid MRR" in text.splitlines()[-1]


def test_no_bar_without_a_terminal(capsys, caplog, family):
    with caplog.at_level(logging.INFO, "vlp"):
        vlp.train(family, steps=30, eval_every=10, **{**QUICK, "progress": None})
    assert capsys.readouterr().err == "" and "valid MRR" in caplog.text


def test_bar_in_a_notebook(monkeypatch, capsys):
    IPython = pytest.importorskip("IPython")
    shown = []
    monkeypatch.setattr(IPython, "get_ipython", lambda: types.SimpleNamespace(kernel=object()))

    class Handle:
        def update(self, element):
            shown.append(element.data)

    def display(element, display_id):
        assert display_id
        shown.append(element.data)
        return Handle()

    import IPython.display as module

    monkeypatch.setattr(module, "display", display)
    bar = _watch.make_bar(None)
    assert isinstance(bar, _watch.NotebookBar)
    bar.pause = 0
    for done in range(0, 101, 50):
        bar.progress("steps", done, 100)
    bar.log("a remark")
    assert '<progress value="50" max="100"' in shown[-2] and shown[-1] == "" and capsys.readouterr().out == "a remark\n"


def test_tune(family, tmp_path):
    trials = []
    options = {"trials": 4, "progress": False, "path_passes": 1, "path_layers": 2, "path_dim": 8, "threads": 2}
    search = vlp.tune(family, tmp_path / "search", callback=trials.append, **options)
    assert search.complete and search.trials == len(trials) == len(search.records()) == 4
    assert search.best.mrr == max(trial.mrr for trial in trials) and search.best.settings
    assert len(search.to_frame()) == 4 and os.path.exists(search.recipe)
    again = vlp.tune(family, tmp_path / "search", **options)
    assert again.call_trials == 0 and again.best.settings == search.best.settings and again.best.mrr == search.best.mrr
    with pytest.raises(vlp.ArgumentError, match="component"):
        vlp.tune(family, tmp_path / "other", component="head")


def test_settings_are_listed():
    names = {setting.name: setting for setting in vlp.settings()}
    assert {"dim", "model", "path", "seed", *SETTINGS} <= set(names) and names["dim"].help
