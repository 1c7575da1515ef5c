#!/usr/bin/env python3
"""The page that `vlp report` writes, looked at from outside: valid and balanced HTML, names of any kind
escaped, nothing loaded, figures equal to those of `vlp eval`, colours with enough contrast, same bytes.

    check_report.py PROGRAM     prints "ok ..." a check; the exit code counts the failures
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from html.parser import HTMLParser

program = os.path.realpath(sys.argv[1])
failures = 0


def check(what, good, detail=""):
    global failures
    print(("ok " if good else "FAILED ") + what + (f": {detail}" if detail and not good else ""))
    failures += not good


def run(*arguments, cwd):
    done = subprocess.run([program, *arguments], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{arguments} ended with {done.returncode}: {done.stderr}")
    return done.stdout


# Names that would break a page that does not take care.
NASTY = [
    '<script>alert(1)</script>',
    '</title></style></svg><b>bold',
    '"quoted" & \'single\'',
    '&lt;already&gt; &amp; not',
    'שלום עולם',
    'مرحبا\u202eبالعالم',
    '👩‍🔬 scientist 🧪',
    '日本語の長い長い長い長い名前',
    'e\u0301 combining \u0085 control',
    'a' * 300,
]

VOID = {"meta", "link", "br", "hr", "img", "input"}
SHAPES = {"circle", "rect", "line", "path"}  # of SVG, where a tag may close itself


class Page(HTMLParser):
    """Checks that tags are balanced; collects text, ids, attributes."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.problems, self.ids, self.links = [], [], [], []
        self.text, self.tags, self.declarations = [], {}, []
        self.images, self.tables, self.cells = [], [], []

    def handle_decl(self, declaration):
        self.declarations.append(declaration)

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        if len(names) != len(set(names)):
            self.problems.append(f"<{tag}> has an attribute twice")
        given = dict(attributes)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if "id" in given:
            self.ids.append(given["id"])
        for name in ("href", "src", "srcset", "action", "xlink:href"):
            if name in given:
                self.links.append(given[name])
        if any(name.startswith("on") for name in names):
            self.problems.append(f"<{tag}> has a handler")
        if tag == "svg":
            self.images.append(given)
        if tag == "th" and "scope" not in given:
            self.problems.append("<th> without scope")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        if tag not in SHAPES or "svg" not in self.open:
            self.problems.append(f"<{tag}/> closes itself")
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"</{tag}> closes {self.open[-3:]} at {self.getpos()}")
        else:
            self.open.pop()

    def handle_data(self, data):
        self.text.append((self.open[-1] if self.open else None, data))


def parse(path):
    with open(path, encoding="utf-8", errors="strict") as file:
        source = file.read()
    page = Page()
    page.feed(source)
    page.close()
    return source, page


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def write_nasty(folder):
    """A ring of entities with difficult names and labels."""
    os.makedirs(folder)
    names = [f"e{i}" for i in range(24)]
    triples = [(names[i], "next <&\"'>", names[(i + 1) % 24]) for i in range(24)]
    triples += [(names[i], "two on", names[(i + 2) % 24]) for i in range(24)]
    held = triples[3::12]
    with open(f"{folder}/train.txt", "w", encoding="utf-8") as file:
        file.writelines("\t".join(t) + "\n" for t in triples if t not in held)
    for split in ("valid", "test"):
        with open(f"{folder}/{split}.txt", "w", encoding="utf-8") as file:
            file.writelines("\t".join(t) + "\n" for t in held)
    with open(f"{folder}/labels.tsv", "w", encoding="utf-8") as file:
        for i, name in enumerate(names):
            file.write(f"{name}\t{NASTY[i % len(NASTY)]} {i}\n")
        file.write("two on\tsecond <next> \u2192\n")


TRAIN = ["-q", "--set", "batch=32", "--set", "negatives=8", "--set", "dim=8", "--set", "rate=0.02",
         "--set", "eval_every=20", "--set", "references=4", "--set", "threads=2"]


def check_page(title, path):
    source, page = parse(path)
    check(f"{title}: tags are balanced", not page.problems and not page.open,
          f"{page.problems[:3]} {page.open}")
    check(f"{title}: it is HTML 5", page.declarations == ["DOCTYPE html"])
    check(f"{title}: no id comes twice", len(page.ids) == len(set(page.ids)))
    inside = {f"#{identity}" for identity in page.ids}
    check(f"{title}: links stay inside", all(link in inside or link == "data:," for link in page.links),
          str(page.links))
    check(f"{title}: no script, nothing imported",
          "script" not in page.tags and "@import" not in source and "url(" not in source)
    check(f"{title}: every picture is named or hidden",
          all(image.get("aria-hidden") == "true" or image.get("aria-label") for image in page.images))
    check(f"{title}: no character that HTML forbids",
          not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]", source))
    return source, page


def check_contrast(source):
    light, dark = re.findall(r":root\{([^}]*)\}", source)[:2]
    for mode, block in (("light", light), ("dark", dark)):
        colours = dict(re.findall(r"--([a-z0-9]+):(#[0-9a-f]{6})", block))
        for ground in ("ground", "panel"):
            low = {name: round(contrast(value, colours[ground]), 2) for name, value in colours.items()
                   if name not in ("ground", "panel", "line")
                   and contrast(value, colours[ground]) < 4.5}
            check(f"{mode}: text and lines on {ground} have a contrast of 4.5", not low, str(low))


def figures_of(source):
    """The figures with a caption: caption without markup, and the source of the figure."""
    return [(re.sub("<[^>]*>", "", caption), figure) for figure, caption in
            re.findall(r"(<figure[^>]*><figcaption>(.*?)</figcaption>.*?</figure>)", source, re.S)]


def check_curves(work):
    """Losses only while their component is trained; a huge first one does not flatten the others."""
    run("train", "people", "-o", "both", "--time", "off", "--set", "steps=60", *TRAIN, "--set", "path=on",
        "--set", "path_layers=2", "--set", "path_passes=4", "--set", "eval_every=5", cwd=work)
    run("report", "both", "-o", "both.html", "-q", cwd=work)
    source, _ = check_page("embeddings and paths", f"{work}/both.html")
    figures = dict(figures_of(source))
    for title, low, high in (("Loss of the embeddings", 1, 60), ("Loss of the path model", 61, 10**9)):
        points = re.findall(r"<title>([0-9.e+-]+) at ([0-9.e+]+)</title>", figures.get(title, ""))
        check(f"{title}: only of the steps that train it",
              len(points) > 1 and all(float(y) > 0 and low <= float(x) <= high for y, x in points),
              str(points))

    path = f"{work}/both/metrics.jsonl"
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    first = json.loads(lines[0])
    first["loss_horizontal"] *= 1000
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([json.dumps(first, separators=(",", ":")), *lines[1:]]) + "\n")
    run("report", "both", "-o", "huge.html", "-q", cwd=work)
    source, _ = check_page("a huge first loss", f"{work}/huge.html")
    name, figure = next((pair for pair in figures_of(source) if "embeddings" in pair[0]), ("", ""))
    heights = [float(y) for y, value in re.findall(r'<circle [^>]* cy="([0-9.]+)"[^>]*><title>([0-9.]+)', figure)
               if float(value) < first["loss_horizontal"] / 10]
    check("a huge first loss leaves the others apart", heights and max(heights) - min(heights) > 50,
          str(heights))
    check("what is above the axis is marked and named",
          "1 value above" in name and f"{first['loss_horizontal']:.4g} at 5" in figure, name)


def check_examples(work):
    """The filtered rank of a held-out answer is its position in the list less the other true ones."""
    run("report", "both", "-o", "family.html", "-q", "--examples", "40", cwd=work)
    source, _ = check_page("many examples", f"{work}/family.html")
    articles = re.findall(r'<article class="example">(.*?)</article>', source, re.S)
    seen, wrong, explained = 0, [], 0
    for article in articles:
        rows = re.findall(r"<li>(.*?)</li>", article.split("</ol>")[0], re.S)
        scores = [re.search(r'soft small">([^<]*)<', row).group(1) for row in rows]
        held, rank, after = re.search(r"Held-out answer: (.*?), <b>filtered rank ([0-9,.]+)</b>(.*?)</p>",
                                      article, re.S).groups()
        position = next((i for i, row in enumerate(rows) if row.startswith(held)), None)
        if position is None or scores.count(scores[position]) > 1:
            continue
        above = sum("held out, true" in row for row in rows[:position])
        seen += 1
        if float(rank.replace(",", "")) != position + 1 - above:
            wrong.append((position, above, rank))
        explained += ("does not count the other true answers" in after) == (above > 0)
    check("every example names the filtered rank", len(articles) == 40)
    check("the filtered rank is the position less other true answers", seen > 5 and not wrong, str(wrong))
    check("it is explained where the two differ", explained == seen, f"{explained} of {seen}")
    short = [(title, text) for title, text in re.findall(r"<title>([^<]*)</title>([^<]*)</text>", source)
             if text.endswith("…")]
    check("shortened labels are there in full on hover",
          len(re.findall(r">[^<]*…</text>", source)) == len(short) > 0
          and all(text[:-1] in title for title, text in short), str(short[:3]))


def check_path_alone(work):
    run("train", "people", "-o", "paths", "-q", "--time", "off", "--set", "model=none", "--set", "path=on",
        "--set", "vertical=off", "--set", "path_layers=2", "--set", "path_passes=0.2", cwd=work)
    run("report", "paths", "-o", "paths.html", "-q", "--examples", "2", cwd=work)
    source, _ = check_page("paths alone", f"{work}/paths.html")
    check("a run of paths alone is called that",
          "f = f<sub>p</sub></b><span>the run has no embeddings" in source and "none, dim" not in source)
    check("one evaluation is no curve", "There is no curve" in source)


def main():
    with tempfile.TemporaryDirectory() as work:
        write_nasty(f"{work}/nasty & <odd>")
        for name, more in (("one", ["--seed", "1"]), ("two", ["--seed", "2", "--set", "vertical=off"])):
            run("train", "nasty & <odd>", "-o", name, "--time", "off", "--set", "steps=60", *TRAIN, *more, cwd=work)
        run("data", "family", "people", "--families", "4", "--generations", "3", "-q", cwd=work)
        run("train", "people", "-o", "family", "--time", "off", "--set", "steps=40", *TRAIN, cwd=work)

        run("report", "one", "-o", "one.html", "-q", "--examples", "8", cwd=work)
        run("report", "one", "-o", "again.html", "-q", "--examples", "8", "--threads", "1", cwd=work)
        run("report", "one", "two", "-o", "two.html", "-q", cwd=work)
        run("report", "one", "family", "two", "-o", "mixed.html", "-q", "--title", "<&> \"t\" \udcff",
            cwd=work)
        with open(f"{work}/one.html", "rb") as left, open(f"{work}/again.html", "rb") as right:
            check("same run, same bytes, at any number of threads", left.read() == right.read())

        source, page = check_page("one run", f"{work}/one.html")
        check_contrast(source)
        texts = [text for tag, text in page.text if tag in ("bdi", "title")]
        seen = [name for name in NASTY if any(name.replace("\x85", "\ufffd") in text for text in texts)]
        check("labels of every kind are there as text", len(seen) >= len(NASTY) - 2, str(seen))
        check("relations are shown by their labels",
              any("second <next> \u2192" in text for text in texts) and "two on" not in texts)
        check("the data set's name is text", any("nasty & <odd>" in text for text in texts))

        check_curves(work)
        check_examples(work)
        check_path_alone(work)

        figures = json.loads(run("eval", "one", "--json", "-q", cwd=work))
        cells = [text for tag, text in page.text if tag in ("td", "b")]
        for part in ("both", "head", "tail", "horizontal", "vertical", "baseline_frequency",
                     "baseline_vote"):
            for key in ("mrr", "hits@10"):
                shown = f"{figures[part][key]:.4f}"
                check(f"{part} {key} is that of vlp eval", shown in cells, shown)

        _, page = check_page("two runs", f"{work}/two.html")
        other = json.loads(run("eval", "two", "--json", "-q", cwd=work))
        gain = other["both"]["mrr"] - figures["both"]["mrr"]
        shown = ("−" if gain < 0 else "+") + f"{abs(gain):.4f}"
        check("the difference between runs is that of their MRRs",
              shown in [text for tag, text in page.text if tag == "td"], shown)
        source, page = check_page("runs on two data sets", f"{work}/mixed.html")
        check("runs on different data sets are not paired, and it says so",
              "there are no paired intervals between them" in source)
        check("the title is escaped", ("title", "<&> \"t\" \ufffd") in page.text)
    return failures


sys.exit(main())
