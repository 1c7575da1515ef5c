"""What the tables are made of: the experiments of each, and the rows that an experiment gives.

An experiment of `main` also gives rows of gain, distance, relation, mapping and cost: a run is evaluated once,
and all tables take theirs from that."""
import os

from . import paper
from .runs import Experiment
from .store import Table

DATA = {"WN18RR": "wn18rr", "FB15k-237": "fb15k-237"}  # folder to the beginning of its recipes
PAPER = ("distmult", "complex", "rotate")
OTHERS = ("rescal", "transe", "transh", "transr", "pairre", "quate")
SUM = {"WN18RR": "rotate", "FB15k-237": "complex"}  # what the path model is added to, as the recipes have it
REFERENCES = (0, 2, 4, 6, 8, 10)
SELECTION = {
    "none": ("references=0",),
    "random": ("references_choice=random", "references_per_head=0"),
    "own-edge": ("references_own_edge=on", "references_per_head=0"),
    "ties-random": ("references_choice=nearest-random", "references_per_head=0"),
    "mass": ("references_choice=nearest", "references_per_head=0"),
    "cap": ("references_choice=nearest", "references_per_head=1"),
}
RED = {
    "red": ("negatives_from=red", "weights=red"),
    "without-pre": ("negatives_from=uniform", "weights=red"),
    "without-post": ("negatives_from=red", "weights=uniform"),
    "self-adversarial": (),
    "uniform": ("negatives_from=uniform", "weights=uniform"),
}
# An aggregator alone over finished embeddings, the same for all of a sweep.
SWEEP = ("trains=aggregator", "steps=8000", "decay_at=0", "save_every=0", "eval_every=0")

# ---- main, and what comes with it -------------------------------------------------------------------------


def with_vlp(model, data, seed):
    sides = {"test": []}
    if (model, data) == ("rotate", "FB15k-237"):  # for `mapping`
        sides |= {"head": ["--side", "head"], "tail": ["--side", "tail"]}
    return Experiment(f"{model}-vlp", data, seed, f"{DATA[data]}-{model}-vlp", models=(model, f"{model}-vlp"),
                      evaluations=sides)


def adversarial(model, data, seed):
    return Experiment(f"{model}-adv", data, seed, f"{DATA[data]}-{model}-adv",
                      models=(f"{model}-adv", f"{model}-adv-vlp"), variant="self-adversarial")


def with_path(data, seed):
    base = with_vlp(SUM[data], data, seed)
    sides = {"test": [], "head": ["--side", "head"], "tail": ["--side", "tail"]}
    return Experiment("path", data, seed, "", ("trains=path",), base, DATA[data],
                      models=("path", f"{SUM[data]}-vlp+path"),
                      evaluations=sides if data == "FB15k-237" else {"test": []})


def with_path_by_edges(seed):
    """On FB15k-237, without the knowledge that valid and test hold no pair that train links."""
    data = "FB15k-237"
    return Experiment("path-edge", data, seed, "", ("trains=path",), with_vlp(SUM[data], data, seed), f"{DATA[data]}-edge",
                      models=("path-edge", f"{SUM[data]}-vlp+path-edge"))


def main_experiments(seeds):
    out = []
    for data in DATA:
        for seed in seeds:
            out += [with_vlp(model, data, seed) for model in PAPER]
            out.append(with_path(data, seed))
        if data == "FB15k-237":
            out += [with_path_by_edges(seed) for seed in seeds]
        out += [adversarial(model, data, seeds[0]) for model in PAPER]
        out += [with_vlp(model, data, seeds[0]) for model in OTHERS]
    return out


def is_main(experiment):
    return experiment.name in {"path", "path-edge", *(f"{m}-vlp" for m in PAPER + OTHERS), *(f"{m}-adv" for m in PAPER)}


def component(experiment, model):
    """What of its run a model's rows are: a component alone, or f (None)."""
    if model.startswith("path"):
        return "path"
    return None if model.endswith("-vlp") or "+path" in model else "horizontal"


def figures(evaluation, which):
    return evaluation["both"] if which is None else evaluation[which]


def main_rows(experiment, result, base):
    for model in experiment.models:
        seconds = result["cost"]["seconds"]
        if "+path" in model:
            seconds += base["cost"]["seconds"]
        found = figures(result["evaluations"]["test"], component(experiment, model))
        yield {"model": model, "data": experiment.data, "seed": experiment.seed, **found, "seconds": seconds}


def gain_rows(experiment, result, base):
    evaluation = result["evaluations"]["test"]
    over = {"horizontal": experiment.base.models[0], "path": experiment.models[0]} if experiment.base else \
        {"horizontal": experiment.models[0]}
    for part, name in over.items():
        low, gain, high = evaluation["gain"][part]
        yield {"model": experiment.models[-1], "over": name, "data": experiment.data, "seed": experiment.seed,
               "gain": gain, "low": low, "high": high}


def cost_rows(experiment, result, base):
    yield {"model": experiment.name, "data": experiment.data, "seed": experiment.seed, **result["cost"]}


def breakdown(groups, label, experiment, models, **more):
    for model in models:
        which = component(experiment, model)
        for group in groups:
            value = group[label]
            yield {"model": model, "data": experiment.data, "seed": experiment.seed, **more,
                   label: "none" if value is None else value, "queries": group["queries"],
                   "mrr": group["mrr" if which is None else which]}


def distance_rows(experiment, result, base):
    return breakdown(result["evaluations"]["test"]["by_distance"], "distance", experiment, experiment.models)


def relation_rows(experiment, result, base):
    rows = breakdown(result["evaluations"]["test"]["by_relation"], "relation", experiment, experiment.models)
    return ({**row, "relation": row["relation"].lstrip("_")} for row in rows)


def mapping_rows(experiment, result, base):
    for side in ("head", "tail"):
        yield from breakdown(result["evaluations"][side]["by_mapping"], "mapping", experiment, experiment.models,
                             side=side)


def of_main(experiment):
    return experiment.models if is_main(experiment) else ()


def of_distance(experiment):
    names = {f"{model}-vlp" for model in PAPER} | {"path"}
    return experiment.models if experiment.name in names else ()


def of_breakdown(data):
    def models(experiment):
        there = experiment.data == data and experiment.name in ("rotate-vlp", "path")
        return experiment.models if there else ()
    return models


def run_rows(experiment, result, base):
    yield {"model": experiment.name, "data": experiment.data, "seed": experiment.seed, "settings": experiment.digest()}


def of_cost(experiment):
    return (experiment.name,) if is_main(experiment) else ()


# ---- Sweeps: aggregators over finished embeddings ---------------------------------------------------------


def sweep(model, data, seed, name, sets):
    base = with_vlp(model, data, seed)
    return Experiment(f"{model}-vlp-{name}", data, seed, "", SWEEP + tuple(sets), base, models=base.models,
                      variant=name)


def reference_experiments(seeds):
    return [sweep(model, "WN18RR", seeds[0], f"n{count}", [f"references={count}"])
            for model in PAPER for count in REFERENCES]


def reference_rows(experiment, result, base):
    """With N = 0 also the plain base, which is the paper's N = 0."""
    evaluation = result["evaluations"]["test"]
    count = experiment.variant[1:]
    for model in experiment.models if count == "0" else experiment.models[1:]:
        yield {"model": model, "data": experiment.data, "seed": experiment.seed, "references": count,
               **figures(evaluation, component(experiment, model)),
               "vertical": evaluation["vertical"]["mrr"] if model.endswith("-vlp") else None,
               "seconds": result["cost"]["seconds"]}


def of_references(experiment):
    is_one = experiment.variant[:1] == "n" and experiment.variant[1:].isdigit()
    return experiment.models[1:] if is_one else ()


def selection_experiments(seeds):
    return [sweep("rotate", data, seeds[0], name, sets) for data in DATA for name, sets in SELECTION.items()]


def selection_rows(experiment, result, base):
    evaluation = result["evaluations"]["test"]
    low, gain, high = evaluation["gain"]["horizontal"]
    yield {"model": experiment.models[1], "data": experiment.data, "seed": experiment.seed,
           "selection": experiment.variant, **evaluation["both"], "horizontal": evaluation["horizontal"]["mrr"],
           "vertical": evaluation["vertical"]["mrr"], "gain": gain, "low": low, "high": high,
           "seconds": result["cost"]["seconds"]}


def of_selection(experiment):
    return experiment.models[1:] if experiment.base and experiment.variant in SELECTION else ()


# ---- Negatives --------------------------------------------------------------------------------------------


def red_experiments(seeds):
    out = []
    for data in DATA:
        for model in PAPER:
            for name, sets in RED.items():
                one = adversarial(model, data, seeds[0])
                out.append(one if not sets else Experiment(f"{model}-{name}", data, seeds[0], one.recipe, sets,
                                                           models=(model, f"{model}-vlp"), variant=name))
    return out


def red_rows(experiment, result, base):
    plain = experiment.models[0].removesuffix("-adv")
    for model in (plain, f"{plain}-vlp"):
        yield {"model": model, "data": experiment.data, "seed": experiment.seed, "negatives": experiment.variant,
               **figures(result["evaluations"]["test"], component(experiment, model)),
               "seconds": result["cost"]["seconds"]}


def of_red(experiment):
    plain = experiment.models[0].removesuffix("-adv")
    return (plain, f"{plain}-vlp") if not experiment.base and experiment.variant in RED else ()


# ---- The path model elsewhere -----------------------------------------------------------------------------


def family_folders(shop, seed):
    """The generated data set of a seed, and one for each number of steps: the triples of that number are its
    test split, and the others go to its validation split, so that the filter is the same."""
    folder = f"{shop.work}/family/data-{seed}"
    if not os.path.exists(f"{folder}/hops.tsv"):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        shop.vlp("data", "family", folder, "--seed", seed, "-q")
    lines = {split: open(f"{folder}/{split}.txt").read().splitlines() for split in ("train", "valid", "test")}
    steps = [line.split("\t")[-1] for line in open(f"{folder}/hops.tsv").read().splitlines()]
    folders = {"all": folder}
    for wanted in sorted(set(steps)):
        folders[wanted] = part = f"{folder}-{wanted}"
        os.makedirs(part, exist_ok=True)
        splits = {"train": lines["train"],
                  "valid": lines["valid"] + [t for t, s in zip(lines["test"], steps) if s != wanted],
                  "test": [t for t, s in zip(lines["test"], steps) if s == wanted]}
        for split, triples in splits.items():
            with open(f"{part}/{split}.txt", "w") as file:
                file.write("\n".join(triples) + "\n")
    return folders


def family_experiments(seeds):
    def evaluations(seed):
        return lambda shop: {"valid": ["--split", "valid"],
                             **{steps: ["--graph", part] for steps, part in family_folders(shop, seed).items()}}
    return [Experiment(recipe, "family", seed, recipe, models=models,
                       folder=lambda shop, seed=seed: family_folders(shop, seed)["all"],
                       evaluations=evaluations(seed))
            for recipe, models in {"family": ("rotate", "rotate-vlp"), "family-path": ("path",)}.items()
            for seed in seeds]


def family_rows(experiment, result, base):
    for model in experiment.models:
        for steps, evaluation in result["evaluations"].items():
            yield {"model": model, "seed": experiment.seed, "steps": steps,
                   "triples": evaluation["queries"] // 2, "mrr": figures(evaluation, component(experiment, model))["mrr"]}


# Recipe, and path_passes by the size of the graph.
INDUCTIVE = {
    "WN18RR_v1": ("wn18rr", 6), "WN18RR_v2": ("wn18rr", 2), "WN18RR_v3": ("wn18rr", 1), "WN18RR_v4": ("wn18rr", 4),
    "fb237_v1": ("fb237", 6), "fb237_v2": ("fb237", 3), "fb237_v3": ("fb237", 2), "fb237_v4": ("fb237", 1.5),
}
assert INDUCTIVE.keys() == paper.INDUCTIVE.keys()


def inductive_experiments(seeds):
    """A path model trained on one graph answers queries over another, which has the same relations and none of
    the same entities."""
    def evaluations(name):
        return lambda shop: {"test": ["--graph", f"{shop.data}/inductive/{name}_ind", "--among", "50"]}
    return [Experiment("inductive", name, seed, f"inductive-{recipe}", (f"path_passes={passes}",), models=("path",),
                       folder=lambda shop, name=name: f"{shop.data}/inductive/{name}",
                       evaluations=evaluations(name))
            for name, (recipe, passes) in INDUCTIVE.items() for seed in seeds]


def inductive_rows(experiment, result, base):
    found = result["evaluations"]["test"]
    low, high = found["mrr_interval"]
    among = found["among"]
    yield {"model": "path", "data": experiment.data, "seed": experiment.seed, "triples": found["queries"] // 2,
           "mrr": found["both"]["mrr"], "low": low, "high": high, "pagerank": found["baseline_pagerank"]["mrr"],
           "hits@10/50": among["hits@10"], "hits_low": among["hits@10_interval"][0],
           "hits_high": among["hits@10_interval"][1], "hits_pagerank": among["baseline_pagerank"]}


# ---- The tables -------------------------------------------------------------------------------------------

RUN = ("model", "data", "seed")
METRICS = {"mrr": 4, "hits@1": 4, "hits@3": 4, "hits@10": 4}
INTERVAL = {"gain": 4, "low": 4, "high": 4}
GROUP = {"queries": 0, "mrr": 4}


def only(name):
    return lambda experiment: experiment.models if experiment.name.startswith(name) else ()


TABLES = {table.name: table for table in (
    Table("main", RUN, {**METRICS, "seconds": 1}, main_experiments, main_rows, of_main),
    Table("gain", ("model", "over", "data", "seed"), INTERVAL, main_experiments, gain_rows,
          lambda experiment: of_main(experiment)[-1:]),
    Table("distance", ("model", "data", "distance", "seed"), GROUP,
          lambda seeds: [one for one in main_experiments(seeds) if of_distance(one)], distance_rows, of_distance),
    Table("relation", ("model", "data", "relation", "seed"), GROUP,
          lambda seeds: [one for one in main_experiments(seeds) if of_breakdown("WN18RR")(one)], relation_rows,
          of_breakdown("WN18RR")),
    Table("mapping", ("model", "data", "side", "mapping", "seed"), GROUP,
          lambda seeds: [one for one in main_experiments(seeds) if of_breakdown("FB15k-237")(one)], mapping_rows,
          of_breakdown("FB15k-237")),
    Table("references", ("model", "data", "references", "seed"), {**METRICS, "vertical": 4, "seconds": 1},
          reference_experiments, reference_rows, of_references),
    Table("red", ("model", "data", "negatives", "seed"), {**METRICS, "seconds": 1}, red_experiments, red_rows, of_red),
    Table("selection", ("model", "data", "selection", "seed"),
          {**METRICS, "horizontal": 4, "vertical": 4, **INTERVAL, "seconds": 1}, selection_experiments,
          selection_rows, of_selection),
    Table("cost", RUN, {"device": None, "seconds": 1, "parameters": 0, "host_mib": 0, "device_mib": 0, "joules": 0},
          main_experiments, cost_rows, of_cost, means=False),
    Table("family", ("model", "steps", "seed"), {"triples": 0, "mrr": 4}, family_experiments, family_rows,
          only("family")),
    # Of all experiments: a digest of the recipe and the settings that its rows are of.
    Table("runs", RUN, {"settings": None},
          lambda seeds: [one for table in TABLES.values() if table.name != "runs" for one in table.experiments(seeds)],
          run_rows, lambda experiment: (experiment.name,), means=False),
    Table("inductive", RUN, {"triples": 0, "mrr": 4, "low": 4, "high": 4, "pagerank": 4, "hits@10/50": 4,
                             "hits_low": 4, "hits_high": 4, "hits_pagerank": 4},
          inductive_experiments, inductive_rows, only("inductive")),
)}


def identity(table, experiment, model):
    """What a row of the table says of the experiment, in whatever group: whether there is one says whether it
    was computed."""
    found = {"model": model, "seed": experiment.seed}
    if "data" in table.keys:
        found["data"] = experiment.data
    for column in ("references", "selection", "negatives"):
        if column in table.keys:
            found[column] = experiment.variant.removeprefix("n") if column == "references" else experiment.variant
    return found


def stale(results, experiment):
    """Whether its rows are of a recipe that has changed since."""
    return any((row["model"], row["data"], row["seed"]) == (experiment.name, experiment.data, experiment.seed)
               and row["settings"] != experiment.digest() for row in results.read("runs"))


def remove(results, experiment):
    """Its rows, of all tables."""
    for table in TABLES.values():
        for model in table.models(experiment):
            results.remove(table.name, **identity(table, experiment, model))
    if experiment.variant == "n0":  # with it came the plain base
        results.remove("references", model=experiment.models[0], data=experiment.data, seed=experiment.seed)


def missing(results, table, experiment):
    """Whether rows that an experiment gives the table are not there."""
    return any(not results.has(table.name, **identity(table, experiment, model)) for model in table.models(experiment))


def unfinished(results, experiment):
    """Whether rows that an experiment gives, in whatever table, are not there."""
    return any(missing(results, table, experiment) for table in TABLES.values())
