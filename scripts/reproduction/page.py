"""results/README.md and the figures: what the rows say, the paper's figures beside ours. Both are functions of
the CSV files alone."""
import csv
import math
import os

from . import paper, svg
from .runs import replace
from .store import MEAN, natural
from .tables import DATA, OTHERS, PAPER, REFERENCES, RED, SELECTION, SUM

NAMES = {"distmult": "DistMult", "complex": "ComplEx", "rotate": "RotatE", "rescal": "RESCAL", "transe": "TransE",
         "transh": "TransH", "transr": "TransR", "pairre": "PairRE", "quate": "QuatE", "path": "path model"}
LEAK_NOTE = ("[^leak]: The authors' code looks up the distance between the query's entity and the true answer while it "
             "ranks, and lets that choose the score. This figure rests on it; ours do not.")


def name_of(model):
    first, *rest = model.replace("+path", " + path").split("-", 1)
    if first in NAMES:
        return NAMES[first] + ("-" + rest[0].replace("adv", "Adv").replace("vlp", "VLP") if rest else "")
    return model


def short(value, digits=3):
    """.476, as the literature writes it; "" for none."""
    if value is None or value == "":
        return ""
    text = f"{float(value):.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def signed(value, digits=3):
    return ("+" if float(value) >= 0 else "") + short(value, digits)


def wilson(share, count):
    """The 95% interval of a share."""
    z = 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return f"{short(middle - reach)} to {short(middle + reach)}"


def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


class Page:
    def __init__(self, results):
        self.results = results
        self.leaks = False
        self.figures = {}

    def rows(self, name, **wanted):
        return [row for row in self.results.read(name) if all(row[key] == value for key, value in wanted.items())]

    def one(self, name, **wanted):
        """The mean over seeds; None where nothing was computed."""
        found = self.rows(name, seed=MEAN, **wanted)
        return found[0] if found else None

    def spread(self, name, column, **wanted):
        """ "3 seeds, .491 to .494", or "1 seed". """
        values = [float(row[column]) for row in self.rows(name, **wanted) if row["seed"] != MEAN]
        if len(values) < 2:
            return f"{len(values)} seed"
        return f"{len(values)} seeds, {short(min(values), 4)} to {short(max(values), 4)}"

    def from_paper(self, value, data, model):
        leak = (data, model) in paper.LEAK and value is not None
        self.leaks = self.leaks or leak
        return short(value) + ("[^leak]" if leak else "")

    def figure(self, name, text):
        self.figures[name] = text
        return ["", f"![{name}]({name}.svg)"]

    # ---- main ----

    def main_line(self, data, model):
        row = self.one("main", data=data, model=model)
        if not row:
            return None
        published = paper.MAIN[data].get(model, (None,) * 4)
        gains = []
        for gain in self.rows("gain", data=data, model=model, seed=MEAN):
            gains.append(f"{signed(gain['gain'], 4)} ({signed(gain['low'], 4)} to {signed(gain['high'], 4)}) over "
                         + name_of(gain["over"]))
        beside = self.from_paper(published[0], data, model)
        if beside:
            beside += f" ({signed(float(row['mrr']) - published[0], 4)})"
        return [name_of(model), short(row["mrr"], 4), beside,
                *(f"{short(row[key])} ({short(figure)})" if figure is not None else short(row[key])
                  for key, figure in zip(("hits@1", "hits@3", "hits@10"), published[1:])),
                self.spread("main", "mrr", data=data, model=model), "; ".join(gains)]

    def main(self):
        order = [name for model in PAPER for name in (f"{model}-adv", f"{model}-adv-vlp", model, f"{model}-vlp")]
        order += [name for model in OTHERS for name in (model, f"{model}-vlp")]
        out = []
        for data in DATA:
            lines = [self.main_line(data, model) for model in [*order, "path", f"{SUM[data]}-vlp+path", "path-edge",
                                                               f"{SUM[data]}-vlp+path-edge"]]
            lines = [line for line in lines if line]
            if lines:
                out += ["", f"**{data}**", "", *table(
                    ["model", "MRR", "paper", "H@1", "H@3", "H@10", "MRR by seed", "gain in MRR, 95%"], lines)]
        return out and [
            "Test split. Beside the paper's MRR, ours less it; Hits with the paper's in brackets. A model and its VLP "
            "row are f_g alone and f of one run, with one loss, "
            "dimension and number of steps. `-Adv` has the paper's loss: uniform negatives, self-adversarial "
            "weights. Gains: paired bootstrap over test triples, bounds averaged over seeds. An interval that "
            "includes 0 is no gain. The path model of FB15k-237 is trained by pairs: every triple between two entities is "
            "hidden, since valid and test hold no pair that train links; `path model-edge` hides the answer's triple "
            "alone, as on WN18RR.", *out]

    # ---- Breakdowns ----

    def distance_block(self, data, published):
        models = [name for model in PAPER for name in (model, f"{model}-vlp")] + ["path", f"{SUM[data]}-vlp+path"]
        found = {model: {row["distance"]: row for row in self.rows("distance", data=data, model=model, seed=MEAN)}
                 for model in models}
        models = [model for model in models if found[model]]
        if not models:
            return []
        places = sorted(found[models[0]], key=natural)
        total = sum(float(found[models[0]][place]["queries"]) for place in places)
        near = sum(float(found[models[0]][place]["queries"]) for place in places if place in ("1", "2", "3", "4"))
        lines = []
        for model in models:
            ours = [float(found[model][place]["mrr"]) for place in places]
            lines.append([name_of(model), *map(short, ours)])
            if model in published:
                self.leaks = self.leaks or (data, model) in paper.LEAK
                mark = "[^leak]" if (data, model) in paper.LEAK else ""
                by_place = dict(zip("1234", published[model]))
                lines.append([f"paper's{mark}", *(short(by_place.get(place)) for place in places)])
            base = model.removesuffix("-vlp")
            if model.endswith("-vlp") and base in models:
                plain = [float(found[base][place]["mrr"]) for place in places]
                lines.append(["relative gain", *(f"{100 * (new / old - 1):+.1f}%" if old > 0 else ""
                                                 for new, old in zip(ours, plain))])
        shares = [float(found[models[0]][place]["queries"]) / total for place in places]
        of_near = [float(found[models[0]][place]["queries"]) / near if near and place in ("1", "2", "3", "4") else None
                   for place in places]
        lines.append(["share of the queries", *(f"{100 * share:.1f}%" for share in shares)])
        lines.append(["share within 4 hops", *("" if share is None else f"{100 * share:.1f}%" for share in of_near)])
        drawn = [(name_of(model), [float(found[model][place]["mrr"]) for place in places]) for model in models
                 if model in ("rotate", "rotate-vlp", "complex", "complex-vlp", "path")][:6]
        chart = self.figure(f"distance-{DATA[data]}", svg.bars(
            f"MRR by distance, {data}; diamonds: share of the queries", "hops from head entity to answer", "MRR",
            ["no path" if place == "none" else place for place in places], drawn, shares)) if drawn else []
        return ["", f"**{data}**", "", *table(["", *("no path" if p == "none" else p for p in places)], lines), *chart]

    def distance(self):
        out = self.distance_block("WN18RR", paper.DISTANCE) + self.distance_block("FB15k-237", paper.DISTANCE_FB)
        return out and ["MRR by the distance between head entity and answer in the training graph. The paper leaves out test "
                        "triples farther than 4 hops.", *out]

    def relation(self):
        models = ["rotate", "rotate-vlp", "path", "rotate-vlp+path"]
        lines = []
        for name, (plain, vlp) in paper.RELATION.items():
            rows = [self.one("relation", data="WN18RR", relation=name, model=model) for model in models]
            if any(rows):
                self.leaks = True
                lines.append([name, next(row for row in rows if row)["queries"],
                              *(short(row and row["mrr"]) for row in rows), short(plain), short(vlp) + "[^leak]"])
        return lines and ["", *table(["relation", "queries", *map(name_of, models), "paper: RotatE", "paper: RotatE-VLP"],
                                     lines)]

    def mapping(self):
        models = ["rotate", "rotate-vlp", "path", "complex-vlp+path"]
        lines = []
        for (side, mapping), published in paper.MAPPING.items():
            rows = [self.one("mapping", data="FB15k-237", side=side, mapping=mapping, model=model) for model in models]
            if any(rows):
                lines.append([f"{side} entity", mapping, next(row for row in rows if row)["queries"],
                              *(short(row and row["mrr"]) for row in rows), *map(short, published)])
        return lines and ["", *table(["predicted", "mapping", "queries", *map(name_of, models), "paper: RotatE",
                                      "paper: RotatE-VLP"], lines)]

    # ---- Sweeps ----

    def references(self):
        lines, series = [], []
        for color, base in enumerate(reversed(PAPER)):
            model = f"{base}-vlp"
            found = {int(row["references"]): row for row in self.rows("references", data="WN18RR", model=model, seed=MEAN)}
            plain = self.one("references", data="WN18RR", model=base, references="0")
            if not found:
                continue
            self.leaks = True
            lines.append([name_of(model), short(plain and plain["mrr"], 4),
                          *(short(found.get(n) and found[n]["mrr"], 4) for n in REFERENCES)])
            published = paper.REFERENCES[model]
            lines.append(["paper's", short(published[0]), "", *(short(published[n]) + "[^leak]" for n in REFERENCES[1:])])
            series.append((name_of(model), {n: float(row["mrr"]) for n, row in found.items()}, color, "line"))
            series.append(("paper's", published, color, "dotted"))
            if plain:
                series.append(("base", {0: float(plain["mrr"])}, color, "hollow"))
        return lines and ["Aggregators trained over one finished run per model. The paper's N = 0 is the plain base; the "
                          "aggregator without references stands beside it.", "",
                          *table(["", "base", *(f"N = {n}" for n in REFERENCES)], lines),
                          *self.figure("references", svg.lines("MRR by references, WN18RR; dotted: paper's, circle: base",
                                                               "references N", "MRR", series))]

    def red(self):
        lines = []
        for model in [name for base in PAPER for name in (base, f"{base}-vlp")]:
            for negatives in RED:
                cells = []
                for i, data in enumerate(DATA):
                    row = self.one("red", data=data, model=model, negatives=negatives)
                    published = paper.RED.get((model, negatives), (None,) * 4)[2 * i:2 * i + 2]
                    cells += [short(row and row["mrr"], 4), self.from_paper(published[0], data, model),
                              short(row and row["hits@10"]), short(published[1])]
                if any(cells[0::4]):
                    lines.append([name_of(model), negatives, *cells])
        titles = [f"{data} {what}" for data in DATA for what in ("MRR", "paper", "H@10", "paper")]
        return lines and ["The paper's loss and dimensions (`recipes/*-adv.ini`), fewer steps. Without post-sampling: all "
                          "negatives weigh the same; self-adversarial and uniform also draw them uniformly.", "",
                          *table(["model", "negatives", *titles], lines)]

    def selection(self):
        words = {"none": "aggregator without references", "random": "random references of the relation",
                 "own-edge": "nearest, the query's own edge kept for distances",
                 "ties-random": "nearest, own edge out, ties at random", "mass": "nearest, own edge out, ties by mass",
                 "cap": "the same, at most one per head entity"}
        out = []
        for data in DATA:
            found = {name: self.one("selection", data=data, model="rotate-vlp", selection=name) for name in SELECTION}
            lines = [[words[name], short(row["mrr"], 4), short(row["vertical"], 4), short(row["horizontal"], 4),
                      f"{signed(row['gain'], 4)} ({signed(row['low'], 4)} to {signed(row['high'], 4)})"]
                     for name, row in found.items() if row]
            if lines:
                out += ["", f"**{data}**", "", *table(["references", "MRR of f", "f_c alone", "f_g alone",
                                                       "gain over f_g, 95%"], lines)]
                none, mass = found["none"], found["mass"]
                if none and mass:
                    out += ["", f"Of the gain of {signed(mass['gain'], 4)} with the default rule, the aggregator alone gives "
                                f"{signed(none['gain'], 4)}: what its references add is "
                                f"{signed(float(mass['mrr']) - float(none['mrr']), 4)}."]
        return out and ["RotatE-VLP, aggregators trained over one finished run: how much of the gain is copying, and "
                        "how much is the extra layer.", *out]

    # ---- cost, and the path model elsewhere ----

    def cost(self):
        rows = self.results.read("cost")
        lines = [[name_of(row["model"]), row["data"], row["seed"], row["device"], row["seconds"],
                  f"{float(row['parameters']) / 1e6:.2f}", row["device_mib"], row["host_mib"],
                  f"{float(row['joules']) / 1000:.1f}" if row["joules"] else ""] for row in rows]
        return lines and ["Of the whole `vlp train`, with reading, references and validation; energy is that of the card over "
                          "this time.", "",
                          *table(["run", "data", "seed", "device", "seconds", "million parameters", "GPU MiB", "host MiB",
                                  "kJ"], lines),
                          "", "Times of others:", "", *table(["what", "on", "time"], [list(row) for row in paper.TIMES])]

    def family(self):
        models = ["rotate", "rotate-vlp", "path"]
        steps = sorted({row["steps"] for row in self.results.read("family")}, key=natural)
        lines = []
        for step in steps:
            rows = [self.one("family", model=model, steps=step) for model in models]
            label = {"all": "all", "valid": "validation, all"}.get(step, step)
            lines.append([label, next(row for row in rows if row)["triples"], *(short(row and row["mrr"], 4) for row in rows),
                          self.spread("family", "mrr", model="path", steps=step)])
        return lines and ["`vlp data family`: test triples follow from train in 1 to 4 steps. Data and training have the "
                          "same seed; MRR, mean of the seeds.", "",
                          *table(["steps", "triples", *map(name_of, models), "path model by seed"], lines)]

    def inductive(self):
        lines = []
        for name, (nbfnet, redgnn) in paper.INDUCTIVE.items():
            row = self.one("inductive", data=name)
            if row:
                lines.append([name, row["triples"], f"{short(row['mrr'])} ({short(row['low'])} to {short(row['high'])})",
                              short(redgnn), short(row["pagerank"]),
                              f"{short(row['hits@10/50'])} ({short(row['hits_low'])} to {short(row['hits_high'])})",
                              short(nbfnet), short(row["hits_pagerank"]), self.spread("inductive", "mrr", data=name)])
        return lines and ["GraIL's splits: a path model trained on one graph answers queries over another, with the same "
                          "relations and none of the same entities. MRR among all entities of that graph; Hits@10/50: "
                          "expected among 50 random candidates.", "",
                          *table(["split", "triples", "MRR", "RED-GNN", "PageRank", "Hits@10/50", "NBFNet", "PageRank",
                                  "MRR by seed"], lines)]

    def explanations(self):
        path = f"{self.results.folder}/explanations.csv"
        lines = []
        for row in csv.DictReader(open(path, newline="")) if os.path.exists(path) else ():
            share, count = float(row["falls"]), int(row["predictions"])
            lines.append([row["run"], row["ranked_by"], row["taken_out"], str(count), short(share),
                          wilson(share, count) if count else "", short(row["falls_random"]), f"{float(row['triples']):.2f}",
                          ", ".join(row[key] for key in ("one", "two", "three", "four")), f"{float(row['scorings']):.0f}"])
        return lines and ["Test predictions at rank 1 that lose it without the known triples of their explanation, and without "
                          "as many random ones ([how](../docs/explanations.md)).", "",
                          *table(["run", "ranked by", "taken out", "predictions", "lose rank 1", "95%", "random triples",
                                  "mean size", "found with 1, 2, 3, 4", "scorings"], lines)]

    def text(self):
        titles = {"main": "Main results", "distance": "By distance", "relation": "By relation, WN18RR",
                  "mapping": "By mapping, FB15k-237", "references": "By the number of references, WN18RR",
                  "red": "Negatives: ReD and its parts", "selection": "What the references add",
                  "cost": "Cost", "family": "Generated family", "inductive": "New entities",
                  "explanations": "Explanations"}
        out = ["# Results", "",
               "Written by `scripts/reproduce` from the CSV files beside it; [how, and what differs from the "
               "paper](../docs/reproduction.md). Filtered, ranks realistic, both sides, every entity a candidate; "
               "weights of the sum chosen on the validation split."]
        for name, title in titles.items():
            body = getattr(self, name)()
            where = "" if name in ("family", "explanations") else " --device cuda"
            out += ["", f"## {title}", ""]
            out += body or [f"Not computed yet: `scripts/reproduce {name}{where}`."]
        if self.leaks:
            out += ["", LEAK_NOTE]
        text = "\n".join(out) + "\n"
        while "\n\n\n" in text:
            text = text.replace("\n\n\n", "\n\n")
        return text


def contents(results):
    """{file name: text} of the page and its figures."""
    page = Page(results)
    text = page.text()
    return {"README.md": text, **{f"{name}.svg": figure for name, figure in page.figures.items()}}


BEGIN, END = "<!-- results/main.csv, by scripts/reproduce page -->\n", "<!-- end -->\n"


def summary(results):
    """The main table in short, as the project's README has it."""
    page, lines = Page(results), []
    for data in DATA:
        best = f"{SUM[data]}-vlp+path"
        for model in (*(name for one in PAPER for name in (one, f"{one}-vlp")), "path", best, "path-edge", f"{best}-edge"):
            row = page.one("main", data=data, model=model)
            if row:
                seeds = len([one for one in page.rows("main", data=data, model=model) if one["seed"] != MEAN])
                lines.append([data, name_of(model), short(row["mrr"], 4), short(row["hits@1"]), short(row["hits@10"]),
                              f"{float(row['seconds']):.0f} s", str(seeds)])
    return "\n".join(table(["data", "model", "MRR", "H@1", "H@10", "training", "seeds"], lines)) + "\n"


def with_summary(text, results):
    """The README with its table renewed."""
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:start] + "\n" + summary(results) + "\n" + text[end:]


def write(results):
    os.makedirs(results.folder, exist_ok=True)
    for name, text in contents(results).items():
        replace(f"{results.folder}/{name}", text)
    if os.path.realpath(results.folder) == os.path.realpath("results"):
        text = open("README.md").read()
        renewed = with_summary(text, results)
        if renewed != text:
            replace("README.md", renewed)
