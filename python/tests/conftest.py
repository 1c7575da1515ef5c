"""What the tests share: a small generated graph, a run trained on it, the program to compare with."""

import json
import os
import pathlib
import subprocess

import pytest

import vlp

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

SETTINGS = {"model": "distmult", "dim": 16, "steps": 40, "batch": 64, "negatives": 8, "path": True, "path_passes": 1, "threads": 2, "seed": 3}


@pytest.fixture(scope="session")
def source():
    """The working tree, for what is not in the wheel."""
    return pathlib.Path(os.environ.get("VLP_SOURCE", pathlib.Path(__file__).parents[2])).resolve()


@pytest.fixture(scope="session")
def program():
    """Runs the program, and gives what it prints as JSON."""
    path = os.environ.get("VLP_PROGRAM")
    if not path:
        pytest.skip("VLP_PROGRAM does not name the program")

    def run(*arguments):
        command = [path, *map(str, arguments), "--json", "-q"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    return run


@pytest.fixture(scope="session")
def family():
    return vlp.Graph.family(families=3, seed=1)


@pytest.fixture(scope="session")
def family_folder(family, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "family"
    family.write(folder)
    return folder


@pytest.fixture(scope="session")
def run_folder(family, tmp_path_factory):
    """A run with all three components."""
    folder = tmp_path_factory.mktemp("run") / "run"
    vlp.train(family, folder, time="off", progress=False, **SETTINGS).close()
    return folder


@pytest.fixture(scope="session")
def run(run_folder):
    return vlp.open(run_folder, threads=2)


@pytest.fixture(scope="session")
def query(family):
    """A test triple by name."""
    return tuple(family.named(family.test[:1])[0])


def nine_digits(value):
    """Numbers as the program's JSON has them."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: nine_digits(each) for key, each in value.items()}
    return [nine_digits(each) for each in value] if isinstance(value, (list, tuple)) else value
