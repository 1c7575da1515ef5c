"""Whether explanations are faithful: random test predictions at rank 1, and the share of them that loses rank
1 when the explanation's known triples, at most four, are taken out of the graph; beside it as many random
triples of those on walks from the query's entity to the answer.

Environment: RUNS: finished runs with a path model, instead of that of recipes/wn18rr-path-cpu.ini, which is
trained where it is not there yet. PREDICTIONS=500. The seed is the first of --seeds."""
import csv
import io
import os
import subprocess

from .runs import Experiment, replace


def compute(shop, folder, seed):
    """Writes explanations.csv."""
    bench = f"{shop.build}/bench/bench_explanations"
    if not os.access(bench, os.X_OK):
        raise SystemExit(f"reproduce: there is no {bench}; make builds it, by that name")
    runs = os.environ.get("RUNS", "").split()
    if not runs:
        one = Experiment("path-cpu", "WN18RR", seed, "wn18rr-path-cpu", models=("path",))
        shop.train(one)
        runs = [shop.place(one)]
    rows = []
    for run in runs:
        out = subprocess.run([bench, run, os.environ.get("PREDICTIONS", "500"), seed], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        rows += [{"run": os.path.basename(run.rstrip("/")), **row} for row in csv.DictReader(io.StringIO(out))]
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    os.makedirs(folder, exist_ok=True)
    replace(f"{folder}/explanations.csv", text.getvalue())
