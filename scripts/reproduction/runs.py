"""Trains and evaluates experiments: a recipe, or changes to a finished run, on a data set with a seed.

What is known of an experiment is in WORK/DATA/NAME-SEED.json beside its run folder: what was asked for, what
it cost, and the evaluations. One that was asked for in the same way is not computed again; an interrupted
training is resumed."""
import contextlib
import ctypes
import dataclasses
import hashlib
import json
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import typing


@dataclasses.dataclass(frozen=True)
class Experiment:
    name: str  # of the folder, with the seed
    data: str  # as in the tables
    seed: str
    recipe: str  # of recipes/, without .ini; of the base where there is one and `over` is empty
    sets: tuple = ()
    base: "typing.Optional[Experiment]" = None
    over: str = ""  # a recipe that is read over the base's settings
    models: tuple = ()  # what its rows are called: the base's name where f_g alone is one, f's, f_p's
    variant: str = ""
    folder: "typing.Optional[typing.Callable]" = None  # of the data set, given the workshop; None: DATA
    # Name to arguments of `vlp eval`, or a function of the workshop that gives such a dictionary.
    evaluations: "typing.Any" = None

    def words(self):
        """What a filter may name it by."""
        words = {self.name, self.data, self.seed, self.variant, *self.models}
        return {word.lower() for word in words if word}

    def recipes(self):
        return [name for name in (self.over, self.recipe, *(self.base.recipes() if self.base else ())) if name]

    def sources(self):
        """All that decides its result but the program and the data, as text."""
        own = [name for name in (self.over, self.recipe) if name]
        base = self.base.sources() if self.base else None
        return [self.name, self.data, self.seed, [settings(name) for name in own], list(self.sets), base]

    def digest(self):
        return hashlib.sha256(json.dumps(self.sources()).encode()).hexdigest()[:16]


def settings(recipe):
    """The lines of a recipe that are settings."""
    lines = (line.strip() for line in open(f"recipes/{recipe}.ini"))
    return [line for line in lines if line and line[0] not in ";["]


class Workshop:
    """Where experiments are computed, and with what."""

    def __init__(self, build, data, device="auto", sets=(), work=None):
        self.build, self.data, self.device = build, data, device
        self.sets = tuple(sets)  # besides those of an experiment: tests cut trainings short
        self.work = work or f"{build}/reproduce"

    def vlp(self, *arguments):
        return subprocess.run([f"{self.build}/vlp", *arguments], check=True, stdout=subprocess.PIPE).stdout

    def place(self, experiment):
        return f"{self.work}/{experiment.data}/{experiment.name}-{experiment.seed}"

    def data_folder(self, experiment):
        folder = experiment.folder(self) if experiment.folder else f"{self.data}/{experiment.data}"
        if not os.path.isdir(folder):
            raise SystemExit(f"reproduce: {folder} is not there; VLP_BENCH_DATA says where benchmark data is")
        return folder

    def asked(self, experiment):
        return [experiment.sources(), list(self.sets)]

    def finished(self, experiment):
        """The result of an earlier call, where the same was asked for; None otherwise."""
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            result = json.load(open(self.place(experiment) + ".json"))
            if result["asked"] == self.asked(experiment):
                return result
        return None

    def compute(self, experiment):
        """{"cost": ..., "evaluations": {name: what vlp eval --json prints}}."""
        result = self.finished(experiment)
        evaluations = experiment.evaluations or {"test": []}
        if callable(evaluations):
            evaluations = evaluations(self)
        if result and set(evaluations) <= set(result["evaluations"]):
            return result
        self.train(experiment)
        run, known = self.place(experiment), json.load(open(self.place(experiment) + ".cost"))
        result = {"asked": self.asked(experiment), "cost": known["cost"], "evaluations": {}}
        result["cost"]["parameters"] = parameters(f"{run}/model.safetensors")
        for name, arguments in evaluations.items():
            text = self.vlp("eval", run, "--json", "-q", "--device", self.device, *arguments)
            result["evaluations"][name] = json.loads(text)
        replace(run + ".json", json.dumps(result))
        return result

    def train(self, experiment):
        """Leaves a finished run, and its cost beside it."""
        run, cost = self.place(experiment), self.place(experiment) + ".cost"
        asked = self.asked(experiment)
        known = {}
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            known = json.load(open(cost))
        if known.get("asked") != asked:  # the recipe has changed: nothing of it can be used
            shutil.rmtree(run, ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                os.remove(run + ".json")
            known = {"asked": asked, "done": False, "cost": {}}
        if known["done"] and os.path.isdir(run):
            return
        command = [f"{self.build}/vlp", "train", self.data_folder(experiment), "-o", run, "--resume"]
        if experiment.base:
            self.compute(experiment.base)
            command += ["--base", self.place(experiment.base)]
        recipe = experiment.over if experiment.base else experiment.recipe
        if recipe:
            command += ["--recipe", f"recipes/{recipe}.ini"]
        for setting in (*experiment.sets, *self.sets):
            command += ["--set", setting]
        command += ["--seed", experiment.seed, "--device", self.device]
        os.makedirs(os.path.dirname(run), exist_ok=True)
        replace(cost, json.dumps(known))  # so that it can be resumed from now on
        meter = Meter(known["cost"], lambda found: replace(cost, json.dumps({**known, "cost": found})))
        meter.run(command)
        replace(cost, json.dumps({**known, "cost": meter.cost, "done": True}))


# ---- Cost -------------------------------------------------------------------------------------------------


def ask_gpu():
    """(name, power in W or None, memory in MiB or None) of the first GPU; None where there is none."""
    command = ["nvidia-smi", "--query-gpu=name,power.draw,memory.used", "--format=csv,noheader,nounits", "-i", "0"]
    try:
        found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    name, *figures = [part.strip() for part in found.strip().split(",")]
    values = []
    for text in figures:
        try:
            values.append(float(text))
        except ValueError:  # "[N/A]": the card does not tell
            values.append(None)
    return name, *values


def end_with_parent():
    """A training whose caller was killed would keep its run locked."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Meter:
    """Runs a command; adds to `cost`: seconds, peak memory of the process and of the GPU in MiB, joules. What
    it used so far is saved while it runs, so that an interrupted training is counted."""

    def __init__(self, cost, save):
        self.cost = {"seconds": 0.0, "host_mib": 0.0, "device": "CPU", "device_mib": None, "joules": None, **cost}
        self.save = save

    def watch(self, ended):
        last = begun = time.monotonic()
        before, saved = self.cost["seconds"], begun
        gpu = ask_gpu()
        while gpu and not ended.wait(0.2):
            now, there = time.monotonic(), ask_gpu()
            if not there:
                break
            name, power, memory = there
            self.cost["device"] = name
            if power is not None:
                self.cost["joules"] = (self.cost["joules"] or 0.0) + power * (now - last)
            if memory is not None:
                self.cost["device_mib"] = max(self.cost["device_mib"] or 0.0, memory)
            last = now
            if now - saved > 5:
                self.save({**self.cost, "seconds": before + now - begun})
                saved = now
        while not ended.wait(5):
            self.save({**self.cost, "seconds": before + time.monotonic() - begun})

    def run(self, command, output=None):
        """output: where the command's goes; None: to standard error."""
        ended = threading.Event()
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=output or sys.stderr, preexec_fn=end_with_parent)
        watcher = threading.Thread(target=self.watch, args=(ended,))
        watcher.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:  # Ctrl-C: the program saves and ends
            process.wait()
            raise
        finally:
            ended.set()
            watcher.join()
        self.cost["seconds"] += time.monotonic() - begun
        self.cost["host_mib"] = max(self.cost["host_mib"], used.ru_maxrss / 1024)
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            raise SystemExit(f"reproduce: exit {code} of {' '.join(command)}")


def parameters(path):
    """The numbers in a file of weights."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")


def replace(path, text):
    """Writes a file whole or not at all."""
    with open(path + ".partial", "w", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".partial", path)
