"""What the tests of the page need: a small labelled run with all components, and servers on it."""
import json
import os
import signal
import subprocess
import time
import urllib.request

# Names that would break a page that does not take care. They are head entities of one known triple each.
IMAGE = "<img src=x onerror=window.owned=1>"
HOSTILE = {
    IMAGE: ("<script>window.owned=2</script> \"quoted\" & 'single'", "</bdi></main><style>*{display:none}</style>"),
    "javascript:window.owned=3": ("&lt;already&gt; &amp; not", "a name that looks like an address"),
    "שלום_עולם": ("مرحبا\u202eبالعالم", "right to left, with an override"),
    "long_" + "very_" * 40 + "name": ("A label that goes on and on, " * 8, "and a gloss that does as well; " * 12),
}
LABELS = {
    "germany": ("Germany", "a country in Central Europe; \"Germany borders nine countries\""),
    "france": ("France", "a country in Western Europe with coasts on the Atlantic and the Mediterranean"),
    "austria": ("Austria", "a country in the Alps"),
    "danube": ("Danube, Donau", "the second longest river of Europe"),
    "europe": ("Europe", "the continent that all others here are part of"),
    "flows_through": ("flows through", "a river and a country"),
}


def run_program(program, *arguments, cwd=None):
    done = subprocess.run([program, *arguments], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{arguments} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def make_run(program, triples, folder):
    """Trains all components on a copy of the triples, with a hub and the names above; gives the run's folder."""
    data, run = os.path.join(folder, "data"), os.path.join(folder, "europe")
    run_program(program, "data", "split", triples, data, "-q", "--seed", "0")
    names = set()
    with open(triples, encoding="utf-8") as file:
        for line in file:
            names.update(line.rstrip("\n").split("\t")[::2])
    with open(os.path.join(data, "train.txt"), "a", encoding="utf-8") as file:
        for name in sorted(names) + list(HOSTILE):
            file.write(f"{name}\tpart_of\teurope\n")
        for name in HOSTILE:
            file.write(f"germany\tborders\t{name}\n")
    with open(os.path.join(data, "labels.tsv"), "w", encoding="utf-8") as file:
        for name, (label, gloss) in {**LABELS, **HOSTILE}.items():
            file.write(f"{name}\t{label}\t{gloss}\n")
    settings = ["model=complex", "dim=32", "steps=400", "references=8", "eval_every=50", "negatives=32", "batch=128", "rate=0.01",
                "path=on", "path_layers=3", "path_dim=16", "path_passes=6"]
    options = [part for setting in settings for part in ("--set", setting)]
    run_program(program, "train", data, "-o", run, "--time", "off", "--threads", "2", "-q", *options)
    return run


class Server:
    """`vlp serve` on a run, at any free port or a given one."""

    def __init__(self, program, run, *options, port=0):
        self.process = subprocess.Popen([program, "serve", run, "--port", str(port), "--json", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"vlp serve ended with {self.process.wait()} before it was ready")
        self.url = json.loads(line)["url"].rstrip("/")
        self.port = int(self.url.rsplit(":", 1)[1])

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def post(self, path, value):
        request = urllib.request.Request(self.url + path, json.dumps(value).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def pause(self):
        """Stops all threads, and returns once they have stopped."""
        self.process.send_signal(signal.SIGSTOP)
        tasks = f"/proc/{self.process.pid}/task"
        states = {}
        while not states or set(states.values()) != {"T"}:
            states = {}
            for task in os.listdir(tasks):
                with open(f"{tasks}/{task}/stat", encoding="utf-8") as file:
                    states[task] = file.read().rpartition(")")[2].split()[0]
            time.sleep(0.01)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=20)
        self.process.stdout.close()
