"""What all checks of the page share: how a result is printed, and the page with its server and its run."""
import json
import os
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
TRIPLES = os.path.join(HERE, "..", "..", "examples", "europe.tsv")
WIDE, PHONE = (1400, 900), (360, 740)
BUSY = "document.querySelector('[aria-busy], .loading')"
failures = []


def check(what, good, detail=""):
    print(("ok " if good else "FAILED ") + what + (f": {detail}" if detail and not good else ""), flush=True)
    if not good:
        failures.append(what)


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


AUDIT, OVERLAP = read("audit.js"), read("overlap.js")


def quote(text):
    return urllib.parse.quote(text, safe="")


class Test:
    """The browser, the server and the run that all checks share."""

    def __init__(self, browser, server, program, run, pictures):
        self.browser, self.server, self.program, self.run, self.pictures = browser, server, program, run, pictures

    def open(self, address):
        self.browser.open(f"{self.server.url}/{address}")
        self.ready()

    def go(self, address):
        """Follows an address within the page."""
        self.browser.evaluate(f"location.hash = {json.dumps(address)}")
        self.ready()

    def ready(self):
        time.sleep(0.05)
        self.browser.wait(f"document.querySelector('main').children.length > 0 && !{BUSY}", 30)

    def text(self, selector):
        return self.browser.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")

    def texts(self, selector):
        return self.browser.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((node) => node.innerText.trim())")

    def hash(self):
        return urllib.parse.unquote_plus(self.browser.evaluate("location.hash"))

    def picture(self, name):
        if self.pictures:
            self.browser.screenshot(os.path.join(self.pictures, f"{name}.png"))
