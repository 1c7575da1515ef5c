"""The package as it is installed: types, documentation, examples."""

import doctest
import importlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import vlp
from vlp import _drawing

MODULES = ["_graph", "_training", "_run", "_answers", "_evaluation"]


def test_version_and_types(source):
    header = (source / "include" / "vlp.h").read_text()
    assert vlp.__version__ == ".".join(re.findall(r"#define VLP_VERSION_\w+ (\d+)", header))
    assert (pathlib.Path(vlp.__file__).parent / "py.typed").exists()


def test_types_are_strict(source):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "--config-file", source / "pyproject.toml"]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    module = importlib.import_module(f"vlp.{name}")
    failed, _ = doctest.testmod(module, extraglobs={"vlp": vlp})
    assert failed == 0


def test_everything_public_is_documented():
    for name in vlp.__all__:
        thing = getattr(vlp, name)
        assert name == "__version__" or thing.__doc__, name
        for key, value in vars(thing).items() if isinstance(thing, type) else ():
            if callable(value) and not key.startswith("_") and key not in ("to_dict", "count", "index"):
                assert value.__doc__, f"{name}.{key}"


# ---- What people read runs as it is ----


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.fixture
def workplace(source, tmp_path, monkeypatch):
    shutil.copytree(source / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_readme(source, workplace):
    found = blocks(source / "README.md")
    assert len(found) >= 1
    for block in found:
        exec(compile(block, "README.md", "exec"), {})


def test_tutorial(source, workplace):
    names = {}
    found = blocks(source / "docs" / "python.md")
    assert len(found) >= 5
    for block in found:
        exec(compile(block, "python.md", "exec"), names)


def test_the_same_task_as_in_pykeen(source, workplace):
    (block,) = blocks(source / "docs" / "coming-from-pykeen.md")
    exec(compile(block, "coming-from-pykeen.md", "exec"), {})


def test_notebook(source, workplace):
    """Every code cell runs; the value of its last line has a rich view where the notebook shows one."""
    notebooks = sorted((source / "examples").glob("*.ipynb"))
    assert notebooks
    for path in notebooks:
        names = {}
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] != "code":
                continue
            *body, last = re.split(r"\n(?=\S)", "".join(cell["source"]).strip())
            exec("\n".join(body), names)
            try:
                value = eval(last, names)
            except SyntaxError:
                exec(last, names)
            else:
                assert value is None or hasattr(value, "_repr_html_") or repr(value)


def test_example_for_tensorboard(source, workplace, monkeypatch):
    """Against a writer that records what it gets."""
    written = []

    class SummaryWriter:
        def __init__(self, folder):
            pass

        def add_scalar(self, tag, value, step):
            written.append((tag, value, step))

        def close(self):
            written.append("closed")

    module = type(sys)("tensorboardX")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "tensorboardX", module)
    monkeypatch.setattr(sys, "argv", ["tensorboard.py", "examples/europe.tsv", "run", "--time", "off", "--steps", "40"])
    exec(compile((source / "examples" / "tensorboard.py").read_text(), "tensorboard.py", "exec"), {"__name__": "__main__"})
    assert written[-1] == "closed" and {"valid MRR"} < {tag for tag, *_ in written[:-1]}


# ---- Pictures ----


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear))


@pytest.mark.parametrize("colour", [_drawing.ANSWER, _drawing.RESTS])
@pytest.mark.parametrize("ground", ["#ffffff", "#111111", "#1e1e1e"])
def test_colours_are_seen_on_light_and_dark(colour, ground):
    light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3


def test_names_are_escaped():
    """Names that look like markup."""
    names = [("<b>", "&r", '"q"'), ("<b>", "s", "x"), ('"q"', "s", "x")] * 1
    graph = vlp.Graph.from_triples(names + [(f"e{i}", "&r", f"e{i + 1}") for i in range(10)], valid=[("x", "&r", "<b>")])
    run = vlp.train(graph, time="off", steps=5, dim=4, path=True, path_passes=1, threads=1, progress=False)
    page = run.explain("<b>", "&r", '"q"')._repr_html_() + run.predict("<b>", "&r")._repr_html_()
    assert "<b>" not in page.replace("<p><b>", "").replace("<p><b>&lt;", "") and "&lt;b&gt;" in page and "&amp;r" in page
