"""PyKEEN's LCWA training of ComplEx: validation and test MRR over CPU seconds, one thread.

One configuration per call; prints a line of JSON per checkpoint. bench/compare_pykeen.py runs a grid of
these beside `vlp train` with loss = kvsall. Needs PyKEEN in the Python that runs it.

CPU seconds are those of training alone: imports, reading and evaluation are not counted.
"""
import argparse
import json
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from pykeen.evaluation import RankBasedEvaluator
from pykeen.models import ComplEx
from pykeen.training import LCWATrainingLoop
from pykeen.training.callbacks import TrainingCallback
from pykeen.triples import TriplesFactory


def read_splits(folder):
    """Triples of names, and one numbering for all splits: every entity is a candidate."""
    splits = {}
    for name in ("train", "valid", "test"):
        with open(os.path.join(folder, name + ".txt"), encoding="utf-8") as file:
            splits[name] = np.array([line.rstrip("\n").split("\t") for line in file if line.strip()])
    everything = np.concatenate(list(splits.values()))
    entities = {e: i for i, e in enumerate(sorted(set(everything[:, 0]) | set(everything[:, 2])))}
    relations = {r: i for i, r in enumerate(sorted(set(everything[:, 1])))}
    return splits, entities, relations


def realistic_mrr(model, factories, split, filters):
    """MRR straight from the definition: both sides, known answers filtered, mean of the optimistic and
    the pessimistic rank. Holds PyKEEN's own evaluation to ours."""
    known = {}
    for name in filters:
        for h, r, t in factories[name].mapped_triples.tolist():
            known.setdefault((h, r, 0), set()).add(t)
            known.setdefault((t, r, 1), set()).add(h)
    total, triples = 0.0, factories[split].mapped_triples
    with torch.no_grad():
        tails = model.predict_t(triples[:, :2]).numpy()
        heads = model.predict_h(triples[:, 1:]).numpy()
    for i, (h, r, t) in enumerate(triples.tolist()):
        for scores, answer, key in ((tails[i], t, (h, r, 0)), (heads[i], h, (t, r, 1))):
            others = np.ones(len(scores), dtype=bool)
            others[list(known[key])] = False
            above, equal = (scores[others] > scores[answer]).sum(), (scores[others] == scores[answer]).sum()
            total += 1 / (1 + above + equal / 2)
    return total / (2 * len(triples))


class Checkpoints(TrainingCallback):
    """Evaluates every few epochs, with the clock stopped."""

    def __init__(self, options, factories):
        super().__init__()
        self.options, self.factories = options, factories
        self.started, self.paused = time.process_time(), 0.0
        self.best, self.waited = -1.0, 0

    def mrr(self, split, filters):
        metrics = RankBasedEvaluator(filtered=True).evaluate(
            model=self.model, mapped_triples=self.factories[split].mapped_triples, batch_size=256,
            additional_filter_triples=[self.factories[name].mapped_triples for name in filters], use_tqdm=False)
        return metrics.get_metric("both.realistic.inverse_harmonic_mean_rank")

    def post_epoch(self, epoch, epoch_loss, **kwargs):
        if self.options.every == 0:
            print(json.dumps({"epoch": epoch, "cpu_s": time.process_time() - self.started, "loss": epoch_loss}))
        if self.options.every == 0 or epoch % self.options.every and epoch != self.options.epochs:
            return
        now = time.process_time()
        line = {"epoch": epoch, "cpu_s": now - self.started - self.paused, "loss": epoch_loss,
                "valid": self.mrr("valid", ["train"]), "test": self.mrr("test", ["train", "valid"])}
        if self.options.check:
            line["test_by_definition"] = realistic_mrr(self.model, self.factories, "test",
                                                       ["train", "valid", "test"])
        print(json.dumps(line), flush=True)
        self.waited = 0 if line["valid"] > self.best else self.waited + 1
        self.best = max(self.best, line["valid"])
        if self.options.patience and self.waited >= self.options.patience:
            raise SystemExit(0)
        self.paused += time.process_time() - now


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--dim", type=int, default=200)
    parser.add_argument("--rate", type=float, default=1e-2)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--smoothing", type=float, default=0.0)
    parser.add_argument("--loss", default="bceaftersigmoid")
    parser.add_argument("--init", default="xavier_normal")
    parser.add_argument("--inverse", type=int, default=1, help="1: inverse triples, so that both sides are trained")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--every", type=int, default=5, help="epochs between evaluations; 0: none")
    parser.add_argument("--triples", type=int, default=None, help="train on the first of them only, to time steps")
    parser.add_argument("--patience", type=int, default=0, help="checkpoints without a better validation MRR; 0: never")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="also the MRR by its definition")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    splits, entities, relations = read_splits(options.folder)
    splits["train"] = splits["train"][:options.triples]
    factories = {name: TriplesFactory.from_labeled_triples(
        triples, entity_to_id=entities, relation_to_id=relations,
        create_inverse_triples=bool(options.inverse) and name == "train") for name, triples in splits.items()}
    model = ComplEx(triples_factory=factories["train"], embedding_dim=options.dim, loss=options.loss,
                    entity_initializer=options.init, relation_initializer=options.init, regularizer=None,
                    random_seed=options.seed)
    model = model.to("cpu")
    loop = LCWATrainingLoop(model=model, triples_factory=factories["train"],
                            optimizer=torch.optim.Adam(model.parameters(), lr=options.rate))
    loop.train(factories["train"], num_epochs=options.epochs, batch_size=options.batch,
               label_smoothing=options.smoothing, use_tqdm=False, callbacks=Checkpoints(options, factories))


if __name__ == "__main__":
    main()
