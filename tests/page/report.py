"""The page that `vlp report` writes, in the browser: contrast, widths, and graphs side by side where there is space."""
import os

from lab import AUDIT, PHONE, WIDE, check
from setup import run_program

VERY_WIDE = (1900, 1000)
# For each example with two graphs: whether the second is beside the first, else below it.
BESIDE = """[...document.querySelectorAll(".example")].map((example) => [...example.querySelectorAll("figure.graph")])
    .filter((graphs) => graphs.length === 2).map(([a, b]) => [a.getBoundingClientRect(), b.getBoundingClientRect()])
    .map(([a, b]) => b.left >= a.right ? "beside" : b.top >= a.bottom ? "below" : "over")"""


def check_report(test, folder):
    path = os.path.join(folder, "report.html")
    run_program(test.program, "report", test.run, "-o", path, "-q")
    for scheme in ("light", "dark"):
        for size, place in ((VERY_WIDE, "beside"), (WIDE, "below"), (PHONE, "below")):
            test.browser.size(*size, touch=size is PHONE)
            test.browser.media(scheme)
            test.browser.open("file://" + path)
            where = f"report, {scheme}, {size[0]} px"
            problems = test.browser.evaluate(AUDIT)
            check(f"contrast, widths, ids, headings ({where})", problems == [], problems)
            places = test.browser.evaluate(BESIDE)
            check(f"graphs are {place} each other ({where})", len(places) > 2 and set(places) == {place}, places)
            test.browser.evaluate("document.querySelector('#examples').scrollIntoView()")
            test.picture(f"report-{scheme}-{size[0]}")
