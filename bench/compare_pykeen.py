"""PyKEEN's LCWA training beside `vlp train` with loss = kvsall: CPU seconds to the same MRR, ComplEx of
complex dimension 200, one thread each, the same grid of settings for both.

    bench/compare_pykeen.py --python VENV/bin/python --data DIR --work DIR umls kinship

A configuration is evaluated every few epochs, until it has not improved on the validation split for some
evaluations. Rows of the table:
  validation    each side's best checkpoint on the validation split
  near          PyKEEN's cheapest checkpoint whose validation MRR is within 0.01 of its best
  best test     PyKEEN's cheapest checkpoint of its highest test MRR
Beside the last two, and again beside PyKEEN's first: our cheapest checkpoint with at least that test MRR,
which is a choice on the test split. Times of the grids depend on what else the machine does: time the
checkpoints of the table again, one side right after the other, before a ratio is quoted.

N3 is given as ours: PyKEEN's weight is that over the number of entities, since its loss is a mean over all
entities and ours a sum.

PyKEEN's seconds are those of its training loop, without imports, reading and evaluation
(bench/pykeen_lcwa.py); ours are user + system time of the whole `vlp train`, run again with that number of
steps: start, reading, training, evaluation on the validation split at the end, saving. Results of single
configurations are kept in the work folder, so that a run can be continued.

    bench/compare_pykeen.py ... --steps FB15k-237

times steps alone: PyKEEN's over the keys of the first 20,000 triples, with all entities; ours as the
difference between runs of 40 and 10 steps.
"""
import argparse
import itertools
import json
import math
import os
import resource
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def run_timed(command):
    """Standard output of a command, and its user and system seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cached(path, make):
    """The lines of a file of JSON lines, which `make` returns where it is not there yet."""
    if not os.path.exists(path):
        lines = make()
        with open(path + ".part", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        os.replace(path + ".part", path)
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def count_keys(folder, triples=None):
    """Keys of both directions, and their entities, of the first training triples."""
    keys = set()
    with open(os.path.join(folder, "train.txt"), encoding="utf-8") as file:
        for line in itertools.islice(file, triples):
            head, relation, tail = line.rstrip("\n").split("\t")
            keys |= {(head, relation, 0), (tail, relation, 1)}
    return len(keys), len({key[0] for key in keys})


class Comparison:
    def __init__(self, options, dataset):
        self.options, self.dataset, self.known = options, dataset, {}
        optimizers = [tuple(text.split(":")) for text in options.optimizers]
        self.grid = list(itertools.product(optimizers, options.batches, options.smoothings))
        self.folder = os.path.join(options.data, dataset)
        self.keys, self.entities = count_keys(self.folder)
        self.init = round(math.sqrt(2 / (self.entities + 200)), 4)  # Xavier, as PyKEEN's

    def pykeen(self, optimizer, batch, smoothing):
        kind, rate, n3 = optimizer

        def make():
            command = [self.options.python, os.path.join(HERE, "pykeen_lcwa.py"), self.folder, "--optimizer", kind,
                       "--rate", rate, "--n3", str(float(n3) / self.entities), "--batch", str(batch),
                       "--smoothing", smoothing, "--epochs", str(self.options.epochs),
                       "--every", str(self.options.every), "--patience", str(self.options.patience)]
            return [json.loads(line) for line in run_timed(command)[0].splitlines()]
        name = f"pykeen-{self.dataset}-{kind}-{rate}-{n3}-{batch}-{smoothing}.jsonl"
        return cached(os.path.join(self.options.work, name), make)

    def train(self, optimizer, batch, smoothing, steps, more):
        kind, rate, n3 = optimizer
        run = os.path.join(self.options.work, "run")
        shutil.rmtree(run, ignore_errors=True)
        settings = {"model": "complex", "dim": 200, "vertical": "off", "loss": "kvsall", "optimizer": kind,
                    "schedule": "constant", "precision": self.options.precision, "rate": rate, "n3": n3,
                    "batch": batch, "label_smoothing": smoothing,
                    "init_scale": self.init, "steps": steps, "save_every": 0, **more}
        command = [self.options.vlp, "train", self.folder, "-o", run, "--time", "off", "--threads", "1", "--device", "cpu", "-q"]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        return run, run_timed(command)[1]

    def ours(self, optimizer, batch, smoothing):
        def make():
            epoch = math.ceil(self.keys / min(batch, self.keys))
            run, _ = self.train(optimizer, batch, smoothing, self.options.epochs * epoch,
                                {"eval_every": self.options.every * epoch, "patience": self.options.patience})
            with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
            return [{"step": line["step"], "epoch": line["step"] // epoch, "valid": line["valid_mrr"]}
                    for line in lines]
        name = f"vlp-{self.options.precision}-{self.dataset}-{'-'.join(optimizer)}-{batch}-{smoothing}.jsonl"
        return cached(os.path.join(self.options.work, name), make)

    def tested(self, configuration, checkpoint):
        """A checkpoint of ours with its CPU seconds and test MRR, by a run of that many steps."""
        key = (configuration, checkpoint["step"])
        if key not in self.known:
            run, seconds = self.train(*configuration, checkpoint["step"], {"eval_every": 0})
            text, _ = run_timed([self.options.vlp, "eval", run, "--json", "--threads", "1", "--device", "cpu"])
            self.known[key] = dict(checkpoint, cpu_s=seconds, test=json.loads(text)["both"]["mrr"])
        return self.known[key]

    def measured(self, configuration, checkpoint):
        """The same, with the median seconds of three runs."""
        point = self.tested(configuration, checkpoint)
        again = [self.train(*configuration, point["step"], {"eval_every": 0})[1] for _ in range(2)]
        return dict(point, cpu_s=sorted([point["cpu_s"], *again])[1])

    def cheapest(self, test):
        """Our cheapest checkpoint with at least this test MRR: the fewest rows of logits first."""
        points = [(c, p) for c in self.grid for p in self.ours(*c)]
        level = max(p["valid"] for _, p in points) - 0.03  # no need to look further below
        points = [item for item in points if item[1]["valid"] >= level]
        for c, p in sorted(points, key=lambda item: item[1]["step"] * min(item[0][1], self.keys)):
            if self.tested(c, p)["test"] >= test:
                return c, self.measured(c, p)
        return None

    def compare(self):
        theirs = [(c, p) for c in self.grid for p in self.pykeen(*c)]
        best = max(theirs, key=lambda item: item[1]["valid"])
        near = min((item for item in theirs if item[1]["valid"] >= best[1]["valid"] - 0.01),
                   key=lambda item: item[1]["cpu_s"])
        highest = max(theirs, key=lambda item: item[1]["test"])
        own = max(((c, p) for c in self.grid for p in self.ours(*c)), key=lambda item: item[1]["valid"])
        own = own[0], self.measured(*own)
        for row, point, ours in (("validation", best, own), ("validation", best, None), ("near", near, None),
                                 ("best test", highest, None)):
            ours = ours or self.cheapest(point[1]["test"])
            self.report(row, "PyKEEN", *point)
            if ours:
                self.report(row, "vlp", *ours, ratio=point[1]["cpu_s"] / ours[1]["cpu_s"])
            else:
                print(f"| {self.dataset} | {row} | vlp | does not reach it |")

    def time_steps(self, batch):
        """CPU milliseconds of a step: PyKEEN's and ours."""
        triples = 20000
        steps = math.ceil(count_keys(self.folder, triples)[0] / batch)
        text, _ = run_timed([self.options.python, os.path.join(HERE, "pykeen_lcwa.py"), self.folder, "--triples",
                             str(triples), "--epochs", "1", "--every", "0", "--batch", str(batch)])
        theirs = json.loads(text)["cpu_s"] / steps
        few, more = (self.train(("adam", "0.01", "0"), batch, "0", count, {"eval_every": 0})[1] for count in (10, 40))
        ours = (more - few) / 30
        print(f"| {self.dataset} | {batch} | {1e3 * theirs:.0f} | {1e3 * ours:.0f} | {theirs / ours:.1f} |",
              flush=True)

    def report(self, row, who, configuration, point, ratio=None):
        (kind, rate, n3), batch, smoothing = configuration
        print(f"| {self.dataset} | {row} | {who} | {kind}, {rate}, {n3}, {batch}, {smoothing} | {point['epoch']} | "
              f"{point['valid']:.4f} | {point['test']:.4f} | {point['cpu_s']:.2f} | "
              f"{'' if ratio is None else f'{ratio:.0f}'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="a Python with PyKEEN")
    parser.add_argument("--vlp", default=os.path.join(HERE, "../build/vlp"))
    parser.add_argument("--data", required=True, help="folder of data sets: train.txt, valid.txt, test.txt")
    parser.add_argument("--work", required=True)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--every", type=int, default=5, help="epochs between evaluations")
    parser.add_argument("--patience", type=int, default=4)
    parser.add_argument("--optimizers", nargs="+", help="optimizer:rate:N3",
                        default=["adam:0.01:0", "adam:0.001:0", "adagrad:0.1:0", "adagrad:0.1:0.1"])
    parser.add_argument("--batches", nargs="+", type=int, default=[256, 128])
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32", help="of ours")
    parser.add_argument("--smoothings", nargs="+", default=["0", "0.1"])
    parser.add_argument("--steps", nargs="+", default=[], help="data sets whose steps are timed")
    parser.add_argument("datasets", nargs="*")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    if options.datasets:
        print("| data set | row | | optimizer, rate, N3, batch, smoothing | epochs | validation MRR | test MRR | CPU s "
              "| ratio |")
        print("|---|---|---|---|---|---|---|---|---|")
    for dataset in options.datasets:
        Comparison(options, dataset).compare()
    if options.steps:
        print("| data set | batch | PyKEEN, ms per step | vlp, ms per step | ratio |")
        print("|---|---|---|---|---|")
    for dataset, batch in itertools.product(options.steps, options.batches):
        Comparison(options, dataset).time_steps(batch)


if __name__ == "__main__":
    main()
