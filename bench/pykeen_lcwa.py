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


def realistic_mrr(model, factories, split, filters, rows=1024):
    """MRR straight from the definition: both sides, known answers filtered, mean of the optimistic and
    the pessimistic rank, `rows` triples at a time. Holds PyKEEN's own evaluation to ours, and is faster on
    a large graph."""
    known = {}
    for name in filters:
        for h, r, t in factories[name].mapped_triples.tolist():
            known.setdefault((h, r, 0), set()).add(t)
            known.setdefault((t, r, 1), set()).add(h)
    total, triples = 0.0, factories[split].mapped_triples
    for start in range(0, len(triples), rows):
        some = triples[start:start + rows]
        with torch.no_grad():
            tails = model.predict_t(some[:, :2]).numpy()
            heads = model.predict_h(some[:, 1:]).numpy()
        for i, (h, r, t) in enumerate(some.tolist()):
            for scores, answer, key in ((tails[i], t, (h, r, 0)), (heads[i], h, (t, r, 1))):
                others = scores[list(known[key])]
                above = (scores > scores[answer]).sum() - (others > scores[answer]).sum()
                equal = (scores == scores[answer]).sum() - (others == scores[answer]).sum()
                total += 1 / (1 + above + equal / 2)
    return total / (2 * len(triples))


class Checkpoints(TrainingCallback):
    """Evaluates every few epochs, with the clock stopped."""

    def __init__(self, options, factories):
        super().__init__()
        self.options, self.factories = options, factories
        self.started, self.paused = time.process_time(), 0.0
        self.best, self.waited, self.steps, self.epoch = -1.0, 0, 0, 0

    def mrr(self, split, filters):
        if self.options.definition:
            return realistic_mrr(self.model, self.factories, split, [*filters, split])
        metrics = RankBasedEvaluator(filtered=True).evaluate(
            model=self.model, mapped_triples=self.factories[split].mapped_triples, batch_size=256,
            additional_filter_triples=[self.factories[name].mapped_triples for name in filters], use_tqdm=False)
        return metrics.get_metric("both.realistic.inverse_harmonic_mean_rank")

    def pre_batch(self, **kwargs):
        if self.options.every_steps and self.steps and self.steps % self.options.every_steps == 0:
            self.evaluate(self.epoch, None)

    def post_batch(self, epoch, batch, **kwargs):
        self.steps += 1
        self.epoch = epoch

    def post_epoch(self, epoch, epoch_loss, **kwargs):
        if self.options.every == 0 and self.options.every_steps == 0:
            print(json.dumps({"epoch": epoch, "cpu_s": time.process_time() - self.started, "loss": epoch_loss}))
        if self.options.every == 0 or epoch % self.options.every and epoch != self.options.epochs:
            return
        self.evaluate(epoch, epoch_loss)

    def evaluate(self, epoch, loss):
        now = time.process_time()
        line = {"epoch": epoch, "step": self.steps, "cpu_s": now - self.started - self.paused, "loss": loss,
                "valid": self.mrr("valid", ["train"]), "test": self.mrr("test", ["train", "valid"])}
        if self.options.check:
            line["test_by_definition"] = realistic_mrr(self.model, self.factories, "test",
                                                       ["train", "valid", "test"])
        print(json.dumps(line), flush=True)
        self.waited = 0 if line["valid"] > self.best else self.waited + 1
        self.best = max(self.best, line["valid"])
        if self.options.patience and self.waited >= self.options.patience:
            raise SystemExit(0)
        self.model.train()
        self.paused += time.process_time() - now


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--dim", type=int, default=200)
    parser.add_argument("--optimizer", choices=("adam", "adagrad"), default="adam")
    parser.add_argument("--n3", type=float, default=0.0, help="weight of the mean sum of cubes of moduli of a row")
    parser.add_argument("--rate", type=float, default=1e-2)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--smoothing", type=float, default=0.0)
    parser.add_argument("--loss", default="bceaftersigmoid")
    parser.add_argument("--init", default="xavier_normal")
    parser.add_argument("--inverse", type=int, default=1, help="1: inverse triples, so that both sides are trained")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--every", type=int, default=5, help="epochs between evaluations; 0: none")
    parser.add_argument("--every-steps", type=int, default=0, help="steps between evaluations; 0: none")
    parser.add_argument("--triples", type=int, default=None, help="train on the first of them only, to time steps")
    parser.add_argument("--patience", type=int, default=0, help="checkpoints without a better validation MRR; 0: never")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--definition", action="store_true", help="the MRR by its definition in place of PyKEEN's")
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
                    entity_initializer=options.init, relation_initializer=options.init,
                    regularizer="powersum" if options.n3 else None,
                    regularizer_kwargs={"weight": options.n3, "p": 3.0, "normalize": False} if options.n3 else None,
                    random_seed=options.seed)
    model = model.to("cpu")
    optimizer = {"adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad}[options.optimizer]
    loop = LCWATrainingLoop(model=model, triples_factory=factories["train"],
                            optimizer=optimizer(model.parameters(), lr=options.rate))
    loop.train(factories["train"], num_epochs=options.epochs, batch_size=options.batch,
               label_smoothing=options.smoothing, use_tqdm=False, callbacks=Checkpoints(options, factories))


if __name__ == "__main__":
    main()
