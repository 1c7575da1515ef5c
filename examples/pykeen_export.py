#!/usr/bin/env python3
"""Writes the embeddings of a PyKEEN model as the arrays that `vlp train DIR --base FOLDER` takes.

    python examples/pykeen_export.py RESULT FOLDER

RESULT is what PyKEEN's `pipeline(...).save_to_directory(RESULT)` left: trained_model.pkl and
training_triples/. FOLDER gets entities.npy, relations.npy, entities.tsv, relations.tsv. Then

    vlp train DIR --base FOLDER --model distmult -o RUN

trains a vertical aggregator over them; DIR holds the same triples for train. A PyKEEN model with inverse
triples brings its own inverse relations; without, vlp derives them.

TransE, DistMult, ComplEx and RESCAL have the same score in both programs. PyKEEN's RotatE takes the
Euclidean norm over all complex numbers where the paper sums their moduli, and is refused.
"""
import pathlib
import sys

import numpy as np
import torch
from pykeen.triples import TriplesFactory

KNOWN = {"TransE": "transe", "DistMult": "distmult", "ComplEx": "complex", "RESCAL": "rescal"}


def rows(representation):
    """A table as real numbers, a row each; complex ones as real parts, then imaginary parts."""
    values = representation(indices=None).detach().cpu()
    if torch.is_complex(values):
        values = torch.cat([values.real, values.imag], dim=-1)
    return np.ascontiguousarray(values.reshape(len(values), -1).numpy(), dtype=np.float32)


def main(result, folder):
    result, folder = pathlib.Path(result), pathlib.Path(folder)
    model = torch.load(result / "trained_model.pkl", map_location="cpu", weights_only=False)
    triples = TriplesFactory.from_path_binary(result / "training_triples")
    kind = type(model).__name__
    if kind not in KNOWN:
        sys.exit(f"pykeen_export: {kind} has no counterpart with the same score; known are {', '.join(KNOWN)}")
    folder.mkdir(parents=True, exist_ok=True)
    entities = rows(model.entity_representations[0])
    relations = rows(model.relation_representations[0])
    count = triples.num_relations // 2 if triples.create_inverse_triples else triples.num_relations
    if triples.create_inverse_triples:  # PyKEEN puts each inverse behind its relation
        relations = np.concatenate([relations[0::2], relations[1::2]])
    np.save(folder / "entities.npy", entities)
    np.save(folder / "relations.npy", relations)
    names = {number: name for name, number in triples.entity_to_id.items()}
    (folder / "entities.tsv").write_text("".join(f"{names[i]}\n" for i in range(len(entities))), "utf-8")
    names = {number: name for name, number in triples.relation_to_id.items()}
    (folder / "relations.tsv").write_text("".join(f"{names[i]}\n" for i in range(count)), "utf-8")
    norm = f" --set norm=l{model.interaction.p}" if kind == "TransE" else ""
    print(f"vlp train DIR --base {folder} --model {KNOWN[kind]}{norm} -o RUN")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
