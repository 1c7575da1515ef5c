"""Recomputes, from exported arrays and the data set's files alone, the filtered MRR of f_g of small runs and
compares it with what `vlp eval` says. Nothing of vlp is used but its files.

    check_export.py PROGRAM
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def read_triples(path):
    return [tuple(line.rstrip("\r\n").split("\t")) for line in open(path, encoding="utf-8") if line.strip()]


def names(path):
    return {line.rstrip("\n").split("\t")[0]: i for i, line in enumerate(open(path, encoding="utf-8"))}


def scores(model, head, relation, entities):
    """f_g of (head, relation, every entity), in double precision."""
    half = entities.shape[1] // 2
    if model == "distmult":
        return entities @ (head * relation)
    if model == "transe":
        return -np.abs(head + relation - entities).sum(axis=1)
    h = head[:half] + 1j * head[half:]
    e = entities[:, :half] + 1j * entities[:, half:]
    if model == "complex":
        r = relation[:half] + 1j * relation[half:]
        return (e.conj() @ (h * r)).real
    return -np.abs(h * np.exp(1j * relation) - e).sum(axis=1)  # rotate: phases in radians


def mean_reciprocal_rank(model, arrays, run, data):
    entities = np.load(arrays / "entities.npy").astype(np.float64)
    relations = np.load(arrays / "relations.npy").astype(np.float64)
    entity, relation = names(run / "entities.tsv"), names(run / "relations.tsv")
    known = {}
    for split in ("train", "valid", "test"):
        for h, r, t in read_triples(data / f"{split}.txt"):
            known.setdefault((entity[h], relation[r]), set()).add(entity[t])
            known.setdefault((entity[t], relation[r] + len(relation)), set()).add(entity[h])
    total, count = 0.0, 0
    for h, r, t in read_triples(data / "test.txt"):
        for asked, rel, answer in (
            (entity[h], relation[r], entity[t]),
            (entity[t], relation[r] + len(relation), entity[h]),
        ):
            s = scores(model, entities[asked], relations[rel], entities)
            others = np.ones(len(s), bool)
            others[list(known[asked, rel])] = False
            above = (s[others] > s[answer]).sum()
            equal = (s[others] == s[answer]).sum()
            total += 1 / (1 + above + equal / 2)
            count += 1
    return total / count


def main():
    program = sys.argv[1]
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        data = scratch / "data"
        subprocess.run([program, "data", "family", data, "--families", "8", "-q"], check=True, stdout=subprocess.DEVNULL)
        for model in ("distmult", "complex", "rotate", "transe"):
            run, arrays = scratch / model, scratch / f"{model}-npy"
            settings = ["steps=150", "batch=128", "negatives=32", "dim=16", "rate=0.02", "eval_every=0"]
            command = [program, "train", data, "-o", run, "-q", "--model", model]
            for setting in settings:
                command += ["--set", setting]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            subprocess.run([program, "export", run, "--npy", arrays, "-q"], check=True)
            out = subprocess.run([program, "eval", run, "--json", "-q"], check=True, capture_output=True)
            said = json.loads(out.stdout)["horizontal"]["mrr"]
            found = mean_reciprocal_rank(model, arrays, run, data)
            good = abs(said - found) <= 1e-4 and said > 0.05
            failed += not good
            print(f"{model:10} vlp eval {said:.6f}, from the arrays {found:.6f}{'' if good else '  DIFFERS'}")
    sys.exit(failed)


main()
