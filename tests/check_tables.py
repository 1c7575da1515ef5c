#!/usr/bin/env python3
"""The tables of results/, and scripts/reproduce that makes them.

What is committed: every mean is that of its rows, every row has a recipe, and page and figures are what the
rows give. The script itself, over small generated data with trainings cut short: all tables, a kill between
two rows, rows of another machine, and rows that are not computed twice. And every recipe trains.

    check_tables.py PROGRAM     prints "ok ..." a check; the exit code counts the failures
"""
import csv
import fcntl
import filecmp
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

program = os.path.realpath(sys.argv[1])
os.chdir(os.path.dirname(os.path.abspath(__file__)) + "/..")
sys.dont_write_bytecode = True
sys.path.insert(0, "scripts")
from reproduction import page  # noqa: E402
from reproduction.store import Results  # noqa: E402
from reproduction.tables import TABLES, stale  # noqa: E402

failures = 0
SHORT = ["steps=6", "dim=4", "batch=16", "negatives=4", "decay_at=0", "path_passes=0.001", "path_warmup=0",
         "path_layers=3", "eval_every=0"]


def check(what, good, detail=""):
    global failures
    print(("ok " if good else "FAILED ") + what + (f": {detail}" if detail and not good else ""))
    failures += not good


# ---- What a folder of results holds -----------------------------------------------------------------------


def wrong_means(path, table):
    """Rows of a file whose mean is not that of the rows with the same other keys, or is missing."""
    rows = list(csv.DictReader(open(path, newline="")))
    if not table.means:
        return [row for row in rows if row["seed"] == "mean"]
    others = [key for key in table.keys if key != "seed"]
    wrong = []
    for key in {tuple(row[name] for name in others) for row in rows}:
        group = [row for row in rows if tuple(row[name] for name in others) == key]
        means = [row for row in group if row["seed"] == "mean"]
        seeds = [row for row in group if row["seed"] != "mean"]
        if len(means) != 1 or not seeds:
            wrong.append(key)
            continue
        for name, digits in table.figures.items():
            if digits is None or means[0][name] == "":
                continue
            mean = sum(float(row[name]) for row in seeds) / len(seeds)
            if abs(float(means[0][name]) - mean) > 0.5000001 * 10 ** -digits:
                wrong.append((key, name, means[0][name], mean))
    return wrong


def unknown_rows(path, table, seeds):
    """Rows that no experiment gives, and those whose recipe is not there."""
    wrong = []
    known = {}
    for experiment in table.experiments(seeds):
        for model in table.models(experiment):
            known.setdefault(model, set()).add((experiment.data if "data" in table.keys else None, experiment.seed,
                                                tuple(experiment.recipes())))
    for row in csv.DictReader(open(path, newline="")):
        found = [recipes for data, seed, recipes in known.get(row["model"], ())
                 if data in (None, row.get("data")) and row["seed"] in (seed, "mean")]
        # A plain base stands beside the aggregators over it.
        if table.name == "references" and row["references"] == "0" and f"{row['model']}-vlp" in known:
            found = [recipes for _, _, recipes in known[f"{row['model']}-vlp"]]
        if not found or not all(os.path.exists(f"recipes/{name}.ini") for name in found[0]):
            wrong.append(list(row.values())[:4])
    return wrong


def faults(folder):
    """What is wrong with a folder of results."""
    found = []
    results = Results(folder, TABLES)
    for path in sorted(glob.glob(f"{folder}/*.csv")):
        name = os.path.basename(path)[:-4]
        if name == "explanations":
            continue
        if name not in TABLES:
            found.append(f"{name}: no such table")
            continue
        table = TABLES[name]
        rows = results.read(name)
        # Rows of one seed may have any; those of a list begin with it.
        seeds = sorted({row["seed"] for row in rows} - {"mean"})
        known = [unknown_rows(path, table, [seed, *seeds]) for seed in seeds]
        if not rows or all(known):
            found.append(f"{name}: {known[0][:3] if known else 'no rows'}")
        if wrong_means(path, table):
            found.append(f"{name}: means {wrong_means(path, table)[:3]}")
    for experiment in TABLES["runs"].experiments(sorted({row["seed"] for row in results.read("runs")}) or ["0"]):
        if stale(results, experiment):
            found.append(f"{experiment.name} on {experiment.data}: its recipe has changed since (scripts/reproduce --renew)")
    if folder == "results" and page.with_summary(open("README.md").read(), results) != open("README.md").read():
        found.append("README.md has another table than the rows give (scripts/reproduce page)")
    wanted = page.contents(results)
    for name, text in wanted.items():
        path = f"{folder}/{name}"
        if not os.path.exists(path) or open(path).read() != text:
            found.append(f"{name} is not what the rows give (scripts/reproduce page)")
    for path in glob.glob(f"{folder}/*.svg"):
        if os.path.basename(path) not in wanted:
            found.append(f"{path} is of no table")
    return found


check("committed results", not faults("results"), faults("results"))
columns = open("results/main.csv").readline().strip() if os.path.exists("results/main.csv") else None
check("columns of main.csv", columns in (None, "model,data,seed,mrr,hits@1,hits@3,hits@10,seconds"), columns)
sizes = {path: os.path.getsize(path) for path in glob.glob("results/*")}
check("results are small", all(size < 200_000 for size in sizes.values())
      and all(path.endswith((".csv", ".md", ".svg")) for path in sizes), sizes)

# ---- The script -------------------------------------------------------------------------------------------

scratch = tempfile.mkdtemp()
os.mkdir(f"{scratch}/build")
os.symlink(program, f"{scratch}/build/vlp")
environment = {**os.environ, "VLP_BENCH_DATA": f"{scratch}/data", "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}


def vlp(*arguments):
    return subprocess.run([program, *arguments], env=environment, capture_output=True, text=True)


def command(table, *arguments, results="results"):
    sets = [part for setting in SHORT for part in ("--set", setting)]
    return ["scripts/reproduce", *([table, f"{scratch}/build"] if table else []), "--device", "cpu", "--results",
            f"{scratch}/{results}", *sets, *arguments]


def reproduce(table, *arguments, results="results", quiet=False):
    """The lines that it prints; None where it failed."""
    done = subprocess.run(command(table, *arguments, results=results), env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        print("" if quiet else done.stderr[-2000:], end="")
        return None
    return done.stdout.splitlines()


def read(name, results="results"):
    return list(csv.DictReader(open(f"{scratch}/{results}/{name}.csv", newline="")))


def check_kill():
    """Killed when its first rows are out, it goes on with what is missing."""
    both = ("--seeds", "0 1", "--rows", "rotate-vlp wn18rr")
    process = subprocess.Popen(command("main", *both), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True)
    first = process.stdout.readline()
    process.kill()
    process.communicate()
    rows = read("main")
    check("rows are written at once", first.startswith("@row main rotate,WN18RR,0,") and rows
          and {row["seed"] for row in rows} <= {"0", "mean"}, first)
    lines = reproduce("main", *both)
    check("the rest after a kill", lines is not None and {row["seed"] for row in read("main")} == {"0", "1", "mean"}
          and not any(line.startswith("@row main rotate,WN18RR,0,") for line in lines), lines)
    check("nothing is computed twice", reproduce("main", *both) == [])
    folder = os.open(f"{scratch}/results", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    check("one call at a time", reproduce("main", *both, quiet=True) is None)
    os.close(folder)


def check_resume():
    """Killed in the middle of a training, with the training itself, it resumes that."""
    arguments = ("main", "--seeds", "7", "--rows", "rotate-vlp wn18rr", "--set", "steps=1500", "--set", "batch=1024",
                 "--set", "save_every=20")
    run = f"{scratch}/build/reproduce/WN18RR/rotate-vlp-7"
    process = subprocess.Popen(command(*arguments, results="resumed"), env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while process.poll() is None and not os.path.exists(f"{run}/state.safetensors"):
        time.sleep(0.01)
    process.kill()
    process.wait()
    lines = reproduce(*arguments, results="resumed") or []
    log = open(f"{run}/train.log").read()
    check("a training is resumed", "resuming at step" in log and any(line.startswith("@row main rotate-vlp") for line in lines),
          log)


def check_tables():
    printed = []
    for table, seeds, rows in (
            ("main", "0", "path, rotate-vlp fb15k-237, complex-adv wn18rr, transr-vlp wn18rr"),
            ("references", "0", "rotate-vlp n0, rotate-vlp n2"),
            ("red", "0", "rotate wn18rr uniform, complex wn18rr"),
            ("selection", "0", "wn18rr random, wn18rr none, wn18rr mass, fb15k-237 cap"),
            ("inductive", "0", "wn18rr_v1"),
            ("family", "0", "")):
        lines = reproduce(table, "--seeds", seeds, "--rows", rows)
        new = [line for line in lines or [] if line.startswith(f"@row {table} ")]
        check(f"table {table}", bool(new) and os.path.exists(f"{scratch}/results/{table}.csv"), lines)
        printed += lines or []
    for table in ("gain", "distance", "relation", "mapping", "cost"):
        check(f"table {table} comes with main", len(read(table)) > 1 and
              reproduce(table, "--rows", "rotate-vlp 0, path wn18rr 0") == [])
    main, red = read("main"), read("red")
    check("a base and its VLP are of one run", all(
        any(row["model"] == model for row in main) for model in ("rotate", "rotate-vlp", "path", "rotate-vlp+path")))
    alone = {row["model"]: row for row in main if row["data"] == "WN18RR" and row["seed"] == "0"}
    gain = [row for row in read("gain") if row["model"] == "rotate-vlp" and row["data"] == "WN18RR"][0]
    check("a gain is f less f_g", abs(float(alone["rotate-vlp"]["mrr"]) - float(alone["rotate"]["mrr"])
                                      - float(gain["gain"])) < 2e-4 and float(gain["low"]) <= float(gain["high"]), gain)
    adversarial = [row for row in red if row["model"] == "complex" and row["negatives"] == "self-adversarial"]
    check("red takes main's self-adversarial run", adversarial and
          adversarial[0]["mrr"] == alone["complex-adv"]["mrr"], adversarial)
    check("what was written holds together", not faults(f"{scratch}/results"), faults(f"{scratch}/results"))
    return printed


def check_damage():
    """The checks above see a mean that is not, a row of no recipe, and a page of other rows."""
    for name, old, new in (("main.csv", r"rotate-vlp,WN18RR,mean,0\.", "rotate-vlp,WN18RR,mean,1."),
                           ("main.csv", "transr,", "nonsense,"), ("runs.csv", "(rotate-vlp,WN18RR,0,).*", r"\1another"),
                           ("README.md", r"\| RotatE \|", "| RotatF |")):
        shutil.rmtree(f"{scratch}/damaged", ignore_errors=True)
        shutil.copytree(f"{scratch}/results", f"{scratch}/damaged")
        text = open(f"{scratch}/damaged/{name}").read()
        damaged = re.sub(old, new, text)
        open(f"{scratch}/damaged/{name}", "w").write(damaged)
        check(f"damage of {name} is seen", damaged != text and faults(f"{scratch}/damaged"))


def check_device():
    """The same on a machine that is lent: rows come back in a file, runs stay there."""
    os.mkdir(f"{scratch}/out")
    arguments = command("selection", "--rows", "fb15k-237 none", results="lent")[3:]
    done = subprocess.run(["scripts/device", "tables", f"{scratch}/build", "selection", "--work", f"{scratch}/there",
                           *arguments], env={**environment, "OUT": f"{scratch}/out"}, capture_output=True, text=True)
    rows = open(f"{scratch}/out/rows").read()
    check("rows of a lent machine", done.returncode == 0 and rows == done.stdout and
          "@row selection rotate-vlp,FB15k-237,none,0," in rows and os.path.isdir(f"{scratch}/there/FB15k-237"), done)
    check("they are merged", reproduce(None, "--merge", f"{scratch}/out/rows") == ["2 rows added"] and
          any(row["selection"] == "none" and row["data"] == "FB15k-237" for row in read("selection")))


def check_merge(printed):
    with open(f"{scratch}/printed", "w") as file:
        file.write("something else\n" + "\n".join(printed) + "\n")
    check("rows of another machine", reproduce(None, "--merge", f"{scratch}/printed", results="merged") is not None)
    same = [name for name in ("selection", "inductive", "family", "mapping")
            if filecmp.cmp(f"{scratch}/results/{name}.csv", f"{scratch}/merged/{name}.csv", False)]
    check("they make the same files", len(same) == 4, same)
    line = next(line for line in printed if line.startswith("@row selection "))
    with open(f"{scratch}/printed", "w") as file:
        file.write(re.sub(r",0\.", ",0.9", line) + "\n")
    check("other figures for a row are refused",
          reproduce(None, "--merge", f"{scratch}/printed", results="merged", quiet=True) is None)
    with open(f"{scratch}/printed", "w") as file:
        file.write(line + ",1\n")
    check("a row of another shape is refused",
          reproduce(None, "--merge", f"{scratch}/printed", results="merged", quiet=True) is None)


def check_renewal():
    """Rows of a recipe that has changed are refused, and replaced when that is asked for."""
    path = f"{scratch}/results/runs.csv"
    text = re.sub("(rotate-vlp-random,WN18RR,0,).*", r"\1another", open(path).read())
    open(path, "w").write(text)
    rows = ("--seeds", "0", "--rows", "wn18rr random")
    check("rows of another recipe are refused", reproduce("selection", *rows, quiet=True) is None)
    lines = reproduce("selection", "--renew", *rows) or []
    check("they are renewed", [line[:39] for line in lines if "selection" in line] ==
          ["@row selection rotate-vlp,WN18RR,random"] and not faults(f"{scratch}/results"), lines)


def check_plan():
    lines = reproduce("main", "--dry-run", "--seeds", "0 1", "--rows", "rotate-vlp fb15k-237") or []
    check("a plan", len(lines) == 2 and "seed 1" in lines[0] and "about" in lines[0] and lines[1].startswith("1 trainings"),
          lines)
    refused = subprocess.run(["scripts/reproduce", "main", f"{scratch}/build", "--set", "steps=1"], env=environment,
                             capture_output=True, text=True)
    check("other settings do not go into results/", refused.returncode == 2 and "--results" in refused.stderr)


def check_recipes():
    """Each reads, agrees with itself, and trains."""
    wrong = []
    for path in sorted(glob.glob("recipes/*.ini")):
        sets = [part for setting in [*SHORT[1:], "steps=2", "eval_triples=8"] for part in ("--set", setting)]
        if "candidates" in open(path).read():
            sets += ["--set", "candidates=20"]
        if "relation_dim" in open(path).read():
            sets += ["--set", "relation_dim=3"]
        done = vlp("train", f"{scratch}/data/WN18RR", "-o", f"{scratch}/run", "-q", "--device", "cpu", "--recipe", path, *sets)
        shutil.rmtree(f"{scratch}/run", ignore_errors=True)
        if done.returncode != 0:
            wrong.append((path, done.stderr))
    check("every recipe trains", not wrong, wrong)
    wanted = {name for table in TABLES.values() for one in table.experiments(["0"]) for name in one.recipes()}
    check("every row has a recipe", all(os.path.exists(f"recipes/{name}.ini") for name in wanted), wanted)


try:
    for name in ("WN18RR", "FB15k-237", "inductive/WN18RR_v1", "inductive/WN18RR_v1_ind"):
        os.makedirs(os.path.dirname(f"{scratch}/data/{name}"), exist_ok=True)
        vlp("data", "family", f"{scratch}/data/{name}", "--families", "6", "--generations", "3", "--seed", str(len(name)), "-q")
    check_recipes()
    check_kill()
    check_resume()
    printed = check_tables()
    check_damage()
    check_merge(printed)
    check_device()
    check_renewal()
    check_plan()
finally:
    shutil.rmtree(scratch)
sys.exit(failures)
