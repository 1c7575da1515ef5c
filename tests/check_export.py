"""Recomputes, from exported arrays and the data set's files alone, the filtered MRR of f_g of small runs of
every model and compares it with what `vlp eval` says. Nothing of vlp is used but its files.

    check_export.py PROGRAM
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# f_g of (head, relation, every entity) up to the margin. A relation is its rows of all its arrays; NORM is
# the order of the norm.


def complex_numbers(x):
    half = x.shape[-1] // 2
    return x[..., :half] + 1j * x[..., half:]


def hamilton(a, b):
    """The product of quaternions, all real parts first, then those of i, j and k."""
    a0, a1, a2, a3 = np.split(a, 4)
    b0, b1, b2, b3 = np.split(b, 4)
    return np.concatenate((
        a0 * b0 - a1 * b1 - a2 * b2 - a3 * b3,
        a0 * b1 + a1 * b0 + a2 * b3 - a3 * b2,
        a0 * b2 - a1 * b3 + a2 * b0 + a3 * b1,
        a0 * b3 + a1 * b2 - a2 * b1 + a3 * b0,
    ))


def project(x, normal):
    return x - np.outer(x @ normal, normal).reshape(x.shape)


def unit_parts(relation):
    assert np.allclose(np.square(relation.reshape(4, -1)).sum(axis=0), 1, atol=1e-5)
    return relation


def unit(normal):
    assert np.isclose(np.square(normal).sum(), 1, atol=1e-5)
    return normal


def rescal(head, entities, norm, relation):
    return entities @ (head @ relation.reshape(len(head), -1))


def transe(head, entities, norm, relation):
    return -np.linalg.norm(head + relation - entities, norm, axis=1)


def transr(head, entities, norm, relation, translation):
    matrix = relation.reshape(len(translation), -1)
    return -np.linalg.norm(matrix @ head + translation - entities @ matrix.T, norm, axis=1)


def distmult(head, entities, norm, relation):
    return entities @ (head * relation)


def complex_(head, entities, norm, relation):
    query = complex_numbers(head) * complex_numbers(relation)
    return (complex_numbers(entities).conj() @ query).real


def rotate(head, entities, norm, relation):  # phases in radians
    query = complex_numbers(head) * np.exp(1j * relation)
    return -np.abs(query - complex_numbers(entities)).sum(axis=1)


def pairre(head, entities, norm, relation, tail):
    return -np.abs(head * relation - entities * tail).sum(axis=1)


def transh(head, entities, norm, relation, normal):
    query = project(head, unit(normal)) + relation
    return -np.linalg.norm(query - project(entities, normal), norm, axis=1)


def quate(head, entities, norm, relation):
    return entities @ hamilton(head, unit_parts(relation))


MODELS = {  # formula, arrays of relations, settings
    "rescal": (rescal, ["relations"], []),
    "transe": (transe, ["relations"], ["norm=l1"]),
    "transr": (transr, ["relations", "translations"], ["norm=l2", "relation_dim=9"]),
    "distmult": (distmult, ["relations"], []),
    "complex": (complex_, ["relations"], []),
    "rotate": (rotate, ["relations"], []),
    "pairre": (pairre, ["relations", "relations_tail"], []),
    "transh": (transh, ["relations", "normals"], ["norm=l2"]),
    "quate": (quate, ["relations"], []),
}


def read_triples(path):
    return [tuple(line.rstrip("\r\n").split("\t")) for line in open(path, encoding="utf-8") if line.strip()]


def names(path):
    return {line.rstrip("\n").split("\t")[0]: i for i, line in enumerate(open(path, encoding="utf-8"))}


def load(arrays, name):
    return np.load(arrays / f"{name}.npy").astype(np.float64)


def mean_reciprocal_rank(model, arrays, run, data):
    formula, relation_arrays, settings = MODELS[model]
    norm = 2 if "norm=l2" in settings else 1
    entities = load(arrays, "entities")
    relations = [load(arrays, name) for name in relation_arrays]
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
            s = formula(entities[asked], entities, norm, *(rows[rel] for rows in relations))
            others = np.ones(len(s), bool)
            others[list(known[asked, rel])] = False
            above = (s[others] > s[answer]).sum()
            equal = (s[others] == s[answer]).sum()
            total += 1 / (1 + above + equal / 2)
            count += 1
    return total / count


def check_listed(program):
    """Every model that the program has is checked here."""
    out = subprocess.run([program, "train", "--settings"], check=True, capture_output=True, text=True).stdout
    line = next(line for line in out.splitlines() if line.startswith("model "))
    listed = line[line.rindex("(") + 1 : line.rindex(")")].replace(" or ", ", ").split(", ")
    if listed != [*MODELS, "none"]:
        sys.exit(f"the program has {listed}, and {list(MODELS)} are checked")


def main():
    program = sys.argv[1]
    check_listed(program)
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        data = scratch / "data"
        subprocess.run([program, "data", "family", data, "--families", "8", "-q"], check=True, stdout=subprocess.DEVNULL)
        for model in MODELS:
            run, arrays = scratch / model, scratch / f"{model}-npy"
            settings = ["steps=300", "batch=128", "negatives=32", "dim=16", "rate=0.05", "eval_every=0"]
            command = [program, "train", data, "-o", run, "-q", "--time", "off", "--model", model]
            for setting in settings + MODELS[model][2]:
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
