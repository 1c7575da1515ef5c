#!/usr/bin/env python3
"""The page of `vlp serve` in a real browser: searches, predicts, explains, asks what if, follows a triple, reads
the run and the map, meets errors; in light and dark, on a phone's width and a wide screen, by keyboard.

    check_page.py PROGRAM [PICTURES]    prints "ok ..." a check, leaves screenshots in the folder PICTURES;
                                        the exit code counts the failures
"""
import json
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the tree stays clean
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, BrowserError, find_browser  # noqa: E402
from errors import check_errors, check_hostile, check_server_gone, check_slow_answers, check_token  # noqa: E402
from lab import AUDIT, OVERLAP, PHONE, TRIPLES, WIDE, Test, check, failures, quote  # noqa: E402
from report import check_report  # noqa: E402
from setup import HOSTILE, Server, make_run, run_program  # noqa: E402


# ---- by keyboard ----

def check_search(test):
    browser = test.browser
    test.open("#/")
    check("the start lists the entities of largest degree", test.text(".tiles a").startswith("Europe"), test.text(".tiles a"))
    browser.key("Tab")
    check("the first stop of Tab is the skip link, in sight", browser.evaluate(
        "document.activeElement.id === 'skip' && document.activeElement.getBoundingClientRect().top >= 0"))
    browser.key("Enter")
    check("the skip link leads to the content", browser.evaluate("document.activeElement.id === 'main'"))
    browser.key("Tab")
    check("the first control of the content is the search", browser.evaluate("document.activeElement.getAttribute('role') === 'combobox'"))
    check("the focus is visible", browser.evaluate("getComputedStyle(document.activeElement).outlineStyle !== 'none'"))
    browser.type("ger")
    browser.wait("document.querySelector('[role=option]')?.innerText.includes('Germany')")
    check("suggestions have label, name and gloss", all(part in test.text("[role=option]") for part in ("Germany", "germany", "Central Europe")))
    state = "(() => { const box = document.activeElement; return [box.getAttribute('aria-expanded'), document.getElementById(box.getAttribute('aria-activedescendant'))?.getAttribute('aria-selected') ?? null]; })()"
    check("the list is open, nothing is active", browser.evaluate(state) == ["true", None], browser.evaluate(state))
    browser.key("ArrowDown")
    check("an arrow makes the first suggestion active", browser.evaluate(state) == ["true", "true"], browser.evaluate(state))
    check("no accessibility problem with the list open", not browser.evaluate(AUDIT), browser.evaluate(AUDIT))
    test.picture("suggestions-light-1400")
    browser.key("Escape")
    check("Escape closes the list", browser.evaluate(state) == ["false", None], browser.evaluate(state))
    browser.key("ArrowDown")
    browser.wait("document.activeElement.getAttribute('aria-activedescendant')")
    browser.key("Enter")
    browser.wait("location.hash.startsWith('#/entity')")
    test.ready()
    check("Enter opens the entity", test.hash() == "#/entity?name=germany" and test.text("h1") == "Germany", test.hash())
    check("its gloss and facts are shown", "Central Europe" in test.text(".left") and "borders" in test.text(".around"))


def check_pointer(test):
    browser = test.browser
    test.open("#/")
    browser.click("[role=combobox]")
    browser.wait("document.querySelectorAll('[role=option]').length > 3")
    browser.click("[role=option]:nth-child(2)")
    browser.wait("location.hash.startsWith('#/entity')")
    check("a click opens the suggestions, another picks one", test.hash() == "#/entity?name=germany", test.hash())


def check_fast_typing(test):
    """Enter right behind the last key takes the suggestions of this text, not of an earlier one."""
    browser = test.browser
    test.open("#/")
    browser.evaluate("document.querySelector('[role=combobox]').focus()")
    browser.type("austria")
    browser.key("Enter")
    browser.wait("location.hash.startsWith('#/entity')")
    check("Enter right behind typing takes what was typed", test.hash() == "#/entity?name=austria", test.hash())
    test.ready()
    browser.evaluate("document.querySelector('[role=combobox]').focus()")
    browser.type("zzzzqqqq")
    browser.wait("document.querySelector('.suggestion-note')")
    check("nothing found is a sentence", "Nothing is called" in test.text(".suggestion-note"), test.text(".suggestion-note"))


def check_relation(test):
    browser = test.browser
    test.open("#/entity?name=germany")
    browser.evaluate("document.querySelectorAll('[role=combobox]')[1].focus()")
    browser.key("ArrowDown")
    browser.wait("document.querySelectorAll('[role=option]').length > 3")
    own = test.server.get("/api/entity?name=germany")["relations"]
    groups = browser.evaluate("""[...document.querySelectorAll('.suggestions:not([hidden]) > li')].map((node) => node.className || "option")""")
    first = groups[1:].index("suggestion-group")
    check("relations of the entity come first, in each direction", first == len(own), groups)
    check("all relations are offered in both directions", groups.count("option") == 2 * len(test.server.get("/api/relations")["relations"]), groups)
    browser.type("bord")
    browser.wait("document.querySelectorAll('[role=option]').length === 2")
    browser.key("Enter")
    browser.wait("location.hash.startsWith('#/ask')")
    test.ready()
    check("a relation gives the query", test.hash() in ("#/ask?head=germany&relation=borders", "#/ask?tail=germany&relation=borders"), test.hash())


# ---- answers ----

def answers(test):
    return test.browser.evaluate("""[...document.querySelectorAll('a.answer')].map((node) =>
        [node.dataset.answer, node.querySelector('.score').lastChild.data, Boolean(node.querySelector('.badge'))])""")


def predicted(test, *options):
    result = json.loads(run_program(test.program, "predict", test.run, "germany", "borders", "?", "--json", *options))
    return [[item["entity"], item["score"], item["known"]] for item in result["predictions"]]


def same_answers(shown, expected):
    return len(shown) == len(expected) and all(a[0] == b[0] and abs(float(a[1].replace("−", "-")) - b[1]) < 0.0051 and a[2] == b[2]
                                               for a, b in zip(shown, expected))


def check_answers(test):
    browser = test.browser
    test.open("#/ask?head=germany&relation=borders")
    check("the heading is the query", test.text("h1").replace("\n", " ") == "Germany borders ?", test.text("h1"))
    check("the answers are those of vlp predict, known ones marked", same_answers(answers(test), predicted(test, "--known")), answers(test))
    check("each answer has a bar for each component that is not 0", browser.evaluate("""[...document.querySelectorAll('a.answer')].every((node) =>
        node.querySelectorAll('.bar').length >= 2 && node.querySelectorAll('.bar').length <= 3)"""))
    browser.click("#hide-known")
    browser.wait("location.hash.includes('known=hide') && !document.querySelector('a.answer .badge')")
    test.ready()
    check("known answers can be hidden", same_answers(answers(test), predicted(test)), answers(test))
    check("the focus stays on the box", browser.evaluate("document.activeElement.id") == "hide-known")
    browser.evaluate("document.querySelector('button.more').focus()")
    browser.key("Enter")
    browser.wait("document.querySelectorAll('a.answer').length === 20")
    test.ready()
    check("the focus goes on to the first new answer", browser.evaluate("[...document.querySelectorAll('a.answer')].indexOf(document.activeElement)") == 10)
    check("more answers on demand", same_answers(answers(test), predicted(test, "-k", "20")))
    test.go("#/ask?head=germany&relation=borders")
    browser.evaluate("document.querySelector('#direction-out').focus()")
    browser.key("ArrowRight")
    browser.wait("location.hash.includes('tail=germany')")
    test.ready()
    check("the direction turns by keyboard", test.text("h1").replace("\n", " ") == "? borders Germany", test.text("h1"))
    browser.evaluate("history.back()")
    browser.wait("location.hash.includes('head=germany')")
    test.ready()
    check("back leads to the query before", test.text("h1").replace("\n", " ") == "Germany borders ?", test.text("h1"))


def check_bars(test):
    """Negative components go left of zero; the scale is common to all answers."""
    shape = test.browser.evaluate("""(async () => {
        const { bars, barRange } = await import("/answers.js");
        const components = [{ key: "horizontal" }, { key: "vertical" }, { key: "path" }];
        const weights = { horizontal: 2, vertical: 1, path: 1 };
        const answers = [{ horizontal: -1, vertical: 3, path: 1 }, { horizontal: 0.5, vertical: -4, path: 0 }];
        const range = barRange(answers, components, weights);
        return [range, answers.map((answer) => [...bars(answer, components, weights, range).querySelectorAll("rect")]
            .map((rect) => [rect.getAttribute("class"), Number(rect.getAttribute("x")), Number(rect.getAttribute("width"))]))];
    })()""")
    expected = [{"low": -4, "high": 4}, [
        [["bar-ground", 0, 240], ["bar horizontal", 60, 60], ["bar vertical", 120, 90], ["bar path", 210, 30], ["bar-zero", 119.5, 1], ["bar-sum", 179, 2]],
        [["bar-ground", 0, 240], ["bar horizontal", 120, 30], ["bar vertical", 0, 120], ["bar-zero", 119.5, 1], ["bar-sum", 29, 2]]]]
    check("bars stack by sign and weight", shape == expected, shape)


# ---- why ----

def check_why(test):
    browser, server = test.browser, test.server
    test.open("#/ask?head=germany&relation=borders&known=hide")
    name = browser.evaluate("document.querySelector('a.answer').dataset.answer")
    browser.evaluate("document.querySelector('a.answer').focus()")
    browser.key("Enter")
    browser.wait("document.querySelector('.why h2')")
    test.ready()
    expected = server.get(f"/api/explain?head=germany&relation=borders&answer={quote(name)}&paths=3")
    check("an answer is picked by keyboard and keeps the focus", browser.evaluate("document.activeElement.getAttribute('aria-current') === 'true'"))
    check("its rank is that of the API", f"Rank {expected['prediction']['rank']:g} of" in test.text(".why"), test.text(".why")[:80])
    check("all paths are drawn and listed", len(test.texts(".path-list li")) == len(expected["paths"]) > 0, test.texts(".path-list li"))
    first = expected["paths"][0]["triples"]
    words = " ".join(test.texts(".path-list li")[0].split())
    check("a path names its relations", all((step["triple"]["relation"]["label"] or step["triple"]["relation"]["name"]) in words for step in first), words)
    entities = {step["triple"][end]["name"] for path in expected["paths"] for step in path["triples"] for end in ("head", "tail")}
    check("every entity of the paths is in the graph", browser.evaluate("document.querySelectorAll('.graph-node').length") >= len(entities))
    overlaps = browser.evaluate(f"({OVERLAP})(document.querySelector('.path-graph'))")
    check("no text of the graph overlaps", overlaps == [], overlaps)
    triples = sum(len(path["triples"]) for path in expected["paths"])
    buttons = browser.evaluate("document.querySelectorAll('.path-list .edge-button').length")
    check("each triple of the paths can be put in question", buttons == triples, buttons)
    check("references are listed", len(test.texts(".references tbody tr")) == len(expected["references"]) > 0)
    if expected["without"]:
        check("what it rests on, with the rank it falls to", f"to {expected['without']['rank']:g}" in " ".join(test.text(".rests-on").split()), test.text(".rests-on"))
    test.picture("why-light-1400")
    browser.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    browser.click("li:nth-child(2) > a.answer")
    test.ready()
    check("another answer opens in sight", browser.evaluate("(() => { const { top } = document.querySelector('.why h2').getBoundingClientRect(); return top >= 0 && top < innerHeight; })()"))
    browser.evaluate("history.back()")
    browser.wait(f"document.querySelector('a.answer[aria-current]')?.dataset.answer === {json.dumps(name)}")
    test.ready()
    return name, expected


def what_if_numbers(test):
    """[[name, before, after]] of what the page shows."""
    rows = test.browser.evaluate("[...document.querySelectorAll('.change')].map((node) => [node.querySelector('dt').textContent, node.querySelector('dd').textContent])")
    numbers = []
    for name, text in rows:
        parts = [part.strip().replace("−", "-").replace(",", "") for part in text.replace("stays", "→").split("→")]
        numbers.append([name, float(parts[0]), float(parts[1] or parts[0])])
    return numbers


def check_what_if(test, answer, explanation):
    browser, server = test.browser, test.server
    triple = explanation["paths"][0]["triples"][0]["triple"]
    names = {key: triple[key]["name"] for key in ("head", "relation", "tail")}
    browser.click(".path-list .edge-button")
    browser.wait("document.querySelector('.changes')")
    test.ready()
    expected = server.post("/api/what-if", {"head": "germany", "relation": "borders", "answer": answer, "without": [names]})
    weights = server.get("/api/run")["weights"]
    shown = what_if_numbers(test)
    wanted = [["rank", expected["before"]["rank"], expected["after"]["rank"]], ["f", expected["before"]["score"], expected["after"]["score"]]]
    wanted += [[key, expected["before"][key] * weights[key], expected["after"][key] * weights[key]] for key in ("horizontal", "vertical", "path")]
    close = len(shown) == len(wanted) and all(a[0] == b[0] and abs(a[1] - b[1]) < 0.0051 and abs(a[2] - b[2]) < 0.0051 for a, b in zip(shown, wanted))
    check("what if one triple were not known, before and after, by component", close, f"{shown} {wanted}")
    check("the triple is marked in list and graph", browser.evaluate("document.querySelector('.path-list .edge-button').getAttribute('aria-pressed') === 'true'"
                                                                     " && document.querySelectorAll('.graph-edge.questioned').length > 0"))
    check("the result is told to screen readers", "Without them: rank" in (browser.evaluate("document.getElementById('live').textContent")))
    check("the result is in sight", browser.evaluate("document.querySelector('.what-if').getBoundingClientRect().bottom <= innerHeight"))
    test.picture("what-if-light-1400")
    state = test.hash()
    test.open(test.browser.evaluate("location.hash"))
    browser.wait("document.querySelector('.changes')")
    check("the address holds the whole state", what_if_numbers(test) == shown and test.hash() == state)
    check("the answer of the address is marked", browser.evaluate("document.querySelector('a.answer[aria-current]')?.dataset.answer") == answer)
    browser.evaluate("""document.querySelector('.graph-edge.questioned').dispatchEvent(new MouseEvent("click", { bubbles: true }))""")
    browser.wait("document.querySelector('.what-if').hidden")
    check("the graph takes a triple back", browser.evaluate("document.querySelectorAll('.questioned').length") == 0)
    if explanation["without"]:
        browser.click(".rests-on button:not(.edge-button)")
        browser.wait("document.querySelector('.changes')")
        test.ready()
        check("all triples it rests on at once give the rank it falls to", abs(what_if_numbers(test)[0][2] - explanation["without"]["rank"]) < 0.01,
              what_if_numbers(test))
        browser.evaluate("document.querySelector('.what-if-head button').focus()")
        browser.key("Enter")
        browser.wait("document.querySelector('.what-if').hidden")
        check("the focus stays in the explanation", browser.evaluate("document.querySelector('.why').contains(document.activeElement)"))


def check_follow(test):
    browser = test.browser
    name = browser.evaluate("document.querySelector('.path-list a').textContent")
    browser.click(".path-list a")
    browser.wait("location.hash.startsWith('#/entity')")
    test.ready()
    check("an entity of a triple leads to its page", test.text("h1") == name, f"{test.text('h1')} {name}")
    browser.evaluate("history.back()")
    browser.wait("location.hash.includes('answer=')")
    test.ready()
    check("back leads to the explanation", browser.evaluate("Boolean(document.querySelector('.why h2'))"))


def check_graph_layouts(test):
    """Random paths with long and short names: no two texts overlap, every edge goes right."""
    found = test.browser.evaluate("""(async () => {
        const { pathGraph } = await import("/paths.js");
        const { separate } = await import("/layout.js");
        const overlap = %s;
        let seed = 7;
        const random = (below) => { seed = (seed * 48271) %% 2147483647; return seed %% below; };
        const words = ["a", "city, metropolis, urban center", "Östliches_Reich", "/people/person/place_of_birth", "x".repeat(60), "日本語の長い名前です", "of"];
        const thing = (i) => ({ name: `n${i}`, label: i %% 3 ? words[i %% words.length] + i : null, description: null });
        const problems = [];
        const body = document.querySelector("main");
        for (let round = 0; round < 60; round += 1) {
            const size = 2 + random(9);
            const paths = Array.from({ length: 1 + random(8) }, () => {
                let at = 0;
                const length = 1 + random(6);
                const triples = Array.from({ length }, (_, step) => {
                    const next = step === length - 1 ? 1 : 2 + random(size);
                    const forward = random(2) === 1;
                    const [head, tail] = forward ? [at, next] : [next, at];
                    at = next;
                    return { triple: { head: thing(head), relation: thing(100 + random(4)), tail: thing(tail) }, forward };
                });
                return { weight: (1 + random(50)) / 100, triples };
            });
            const picture = pathGraph(paths, thing(0), thing(1), { available: 300 + random(800), restsOn: new Set(), toggle() {} });
            body.append(picture);
            problems.push(...overlap(picture).map((text) => `${round}: ${text}`));
            for (const line of picture.querySelectorAll(".line")) {
                const box = line.getBBox();
                if (!(box.width > 4) || box.x < -1) problems.push(`${round}: an edge of ${box.width} px`);
            }
            if (/NaN|undefined/.test(picture.outerHTML)) problems.push(`${round}: a number is missing`);
            picture.remove();
        }
        // separate() against the definition: in order, apart, and no farther from the wishes than a shift of one item gives.
        const ys = separate([0, 0, 0, 9], [10, 10, 10, 10], 2);
        if (JSON.stringify(ys) !== "[-15.75,-3.75,8.25,20.25]") problems.push(`separate: ${ys}`);
        return problems;
    })()""" % OVERLAP)
    check("60 random graphs have no overlapping text", found == [], found[:3])


# ---- facts, run, map ----

def check_facts(test):
    browser = test.browser
    test.open("#/entity?name=europe")
    total = test.server.get("/api/entity?name=europe")["total"]
    for _ in range(6):
        if not browser.evaluate("Boolean(document.querySelector('.group-more button'))"):
            break
        browser.click(".group-more button")
        test.ready()
    check("facts come in pages until all are there", len(test.texts(".facts li")) == total > 100, f"{len(test.texts('.facts li'))} of {total}")


def check_run(test):
    browser = test.browser
    test.open("#/run")
    browser.wait("document.querySelector('.breakdown')", 30)
    result = json.loads(run_program(test.program, "eval", test.run, "--json", "--by", "relation,side,mapping,distance"))
    check("the MRR is that of vlp eval", f"MRR {result['both']['mrr']:.3f}" in " ".join(test.text(".evaluation").split()), test.text(".evaluation")[:80])
    rows = [len(result[key]) for key in ("by_distance", "by_mapping", "by_side", "by_relation")]
    shown = browser.evaluate("[...document.querySelectorAll('.breakdown')].map((node) => node.querySelectorAll('tbody tr').length)")
    check("MRR by distance, mapping, side and relation", shown == rows, f"{shown} {rows}")
    history = test.server.get("/api/run")["history"]
    dots = browser.evaluate("document.querySelectorAll('.dot.score').length")
    check("the curve of the validation MRR has every point", dots == len(history) > 3, dots)
    trained = [sum(point[f"loss_{key}"] not in (0, None) for point in history) for key in ("horizontal", "vertical", "path")]
    shown = browser.evaluate("['horizontal', 'vertical', 'path'].map((key) => document.querySelectorAll(`.dot.${key}`).length)")
    check("a loss has points where its component was trained", shown == trained and len(history) not in trained, f"{shown} {trained}")
    check("curves of all losses", browser.evaluate("['horizontal', 'vertical', 'path'].every((key) => document.querySelector(`.curve.${key}`))"))
    check("the charts have axes", browser.evaluate("[...document.querySelectorAll('.chart')].every((node) => node.querySelectorAll('.tick').length >= 5 && node.querySelectorAll('.axis-name').length === 2)"))
    check("settings that were chosen are listed", "path_passes" in test.text(".settings") and "beta2" not in test.text(".settings"))
    browser.click("#all-settings")
    check("all settings on demand", "beta2" in test.text(".settings"))
    browser.click(".segments.links a:nth-child(2)")
    browser.wait("location.hash.includes('split=valid')")
    test.ready()
    browser.wait("document.querySelector('.breakdown')", 30)
    check("the validation split can be read as well", browser.evaluate("document.querySelector('.segments.links [aria-current]').textContent") == "validation")


CANVAS = "document.querySelector('canvas').toDataURL()"


def next_picture(test, before):
    """The map once it looks different, or after two seconds as it is."""
    deadline = time.monotonic() + 2
    while True:
        picture = test.browser.evaluate(CANVAS)
        if picture != before or time.monotonic() > deadline:
            return picture
        time.sleep(0.03)


def check_pinch(test):
    """Two fingers that move apart zoom into the map."""
    browser = test.browser
    browser.size(*PHONE, touch=True)
    test.open("#/map")
    browser.wait("document.querySelector('canvas')")
    time.sleep(0.2)
    before = browser.evaluate(CANVAS)
    box = browser.evaluate("(() => { const node = document.querySelector('canvas'); node.scrollIntoView({block: 'center'}); const box = node.getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]; })()")
    fingers = lambda apart: [{"x": box[0] - apart, "y": box[1], "id": 0}, {"x": box[0] + apart, "y": box[1], "id": 1}]
    browser.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=fingers(20))
    for apart in (30, 50, 80):
        browser.send("Input.dispatchTouchEvent", type="touchMove", touchPoints=fingers(apart))
    browser.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    check("two fingers zoom the map", next_picture(test, before) != before and test.hash() == "#/map")
    browser.size(*WIDE)


def check_map(test):
    browser = test.browser
    test.open("#/map")
    browser.wait("document.querySelector('canvas')")
    time.sleep(0.2)
    states = [browser.evaluate(CANVAS)]
    browser.evaluate("document.querySelector('canvas').focus()")
    for act in (lambda: browser.key("+"), lambda: browser.key("ArrowLeft"), lambda: browser.mouse("mouseWheel", 500, 500, deltaX=0, deltaY=-300),
                lambda: browser.click(".map-buttons button:last-child")):
        act()
        states.append(next_picture(test, states[-1]))
    check("keys, wheel and buttons move the map", all(a != b for a, b in zip(states, states[1:])) and len(set(states[:4])) == 4)
    browser.evaluate("document.querySelector('[role=combobox]').focus()")
    browser.type("danube")
    browser.key("Enter")
    browser.wait("document.querySelector('.map-side h2')")
    check("the search finds a point", test.text(".map-side h2") == "Danube, Donau" and test.hash() == "#/map?name=danube", test.hash())
    check("the point is marked", next_picture(test, states[-1]) != states[-1])
    check("what is near is listed", len(test.texts(".near li")) == 8)
    test.picture("map-light-1400")
    point = next(item for item in test.server.get("/api/map?limit=2000")["points"] if item["name"] == "austria")
    place = browser.evaluate("""(() => { // where the page draws it: the map fits into the canvas with 30 px around
        const box = document.querySelector("canvas").getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; })()""")
    points = test.server.get("/api/map?limit=2000")["points"]
    xs, ys = [item["x"] for item in points], [item["y"] for item in points]
    unit = min((place[2] - 60) / (max(xs) - min(xs)), (place[3] - 60) / (max(ys) - min(ys)))
    x = place[0] + place[2] / 2 + (point["x"] - (min(xs) + max(xs)) / 2) * unit
    y = place[1] + place[3] / 2 - (point["y"] - (min(ys) + max(ys)) / 2) * unit
    browser.mouse("mouseMoved", x, y)
    browser.wait("!document.querySelector('.map-tip').hidden")
    check("a point under the pointer has its name", test.text(".map-tip").startswith("Austria"), test.text(".map-tip"))
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    browser.mouse("mouseReleased", x, y, button="left", clickCount=1)
    browser.wait("location.hash.includes('austria')")
    check("a click picks it", True)


# ---- looks ----

STATES = {
    "start": "#/", "entity": "#/entity?name=germany", "answers": "#/ask?head=germany&relation=borders", "run": "#/run", "map": "#/map?name=danube",
}


def check_names(test, where):
    """Every control that the accessibility tree has, has a name."""
    roles = {"button", "link", "textbox", "combobox", "checkbox", "radio", "listbox", "region", "img", "image", "table", "progressbar", "navigation"}
    nameless = []
    for node in test.browser.accessibility():
        role = node.get("role", {}).get("value")
        if not node.get("ignored") and role in roles and not node.get("name", {}).get("value", "").strip():
            nameless.append(role)
    check(f"every control has a name ({where})", nameless == [], nameless)


def check_looks(test, answer, question):
    browser = test.browser
    states = {**STATES, "why": f"#/ask?head=germany&relation=borders&known=hide&answer={quote(answer)}&without={quote(question)}",
              "hostile": f"#/entity?name={quote(list(HOSTILE)[3])}", "error": "#/nowhere"}
    for scheme in ("light", "dark"):
        for size in (WIDE, PHONE):
            browser.size(*size, touch=size is PHONE)
            browser.media(scheme, "reduce" if scheme == "dark" else "no-preference")
            test.open("#/")
            for name, address in states.items():
                where = f"{name}, {scheme}, {size[0]} px"
                test.go(address)
                if name == "why":
                    browser.wait("document.querySelector('.changes')")
                if name == "run":
                    browser.wait("document.querySelector('.breakdown')", 30)
                problems = browser.evaluate(AUDIT)
                check(f"contrast, widths, ids, headings ({where})", problems == [], problems)
                if scheme == "light":
                    check_names(test, where)
                if name == "why" and size is PHONE:
                    browser.evaluate("document.querySelector('.why').scrollIntoView()")
                test.picture(f"{name}-{scheme}-{size[0]}")
    check("no motion where it is not wanted", browser.evaluate("""(() => { const node = document.createElement("span"); node.className = "spinner";
        document.body.append(node); const name = getComputedStyle(node).animationName; node.remove(); return name; })()""") == "none")
    browser.size(*WIDE)
    browser.media("light")


def check_theme(test):
    browser = test.browser
    test.open("#/")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = browser.evaluate(ground)
    browser.click("#theme")
    browser.click("#theme")
    dark = browser.evaluate(ground)
    test.open("#/run")
    check("the theme can be chosen, and stays", light != dark == browser.evaluate(ground) and test.text("#theme") == "Theme: dark", f"{light} {dark} {test.text('#theme')}")
    browser.click("#theme")
    check("and goes back to that of the system", browser.evaluate(ground) == light)


def check_tab_order(test):
    """Tab goes through the page from top to bottom, then from left to right, and never gets stuck."""
    browser = test.browser
    test.open("#/ask?head=germany&relation=borders")
    order = []
    for _ in range(24):
        browser.key("Tab")
        order.append(browser.evaluate("(() => { const node = document.activeElement; return node.id || node.dataset.answer || node.className || node.textContent; })()"))
    expected = ["skip", "brand", "Ask", "Map", "Run", "theme"]
    check("the order of the focus starts with the header", order[:6] == expected, order[:8])
    check("then the query, the answers", order[6].startswith("field") and order[7].startswith("field") and order[8] == "direction-out" and order[9] == "hide-known", order[6:10])
    check("no stop twice", len(set(order[:20])) == 20, order)


def main():
    program = os.path.realpath(sys.argv[1])
    pictures = os.path.realpath(sys.argv[2]) if len(sys.argv) > 2 else None
    if pictures:
        os.makedirs(pictures, exist_ok=True)
    path = find_browser()
    if not path:
        raise SystemExit("check_page: there is no chromium (scripts/deps installs it)")
    with tempfile.TemporaryDirectory(prefix="vlp-page-") as folder:
        run = make_run(program, TRIPLES, folder)
        with Browser(path) as browser:
            test = Test(browser, Server(program, run), program, run, pictures)
            try:
                browser.size(*WIDE)
                browser.media("light")
                for part in (check_search, check_pointer, check_fast_typing, check_relation, check_answers, check_bars, check_tab_order):
                    part(test)
                answer, explanation = check_why(test)
                check_what_if(test, answer, explanation)
                check_follow(test)
                for part in (check_graph_layouts, check_facts, check_run, check_map, check_pinch, check_errors, check_hostile, check_theme):
                    part(test)
                triple = explanation["paths"][0]["triples"][0]["triple"]
                check_looks(test, answer, json.dumps([triple[key]["name"] for key in ("head", "relation", "tail")]))
                check("nothing was logged as an error", browser.problems == [], browser.problems[:3])
                check_slow_answers(test)
                check_server_gone(test)
                check_token(test, folder)
                outside = [address for address in browser.requests if not address.startswith(("http://127.0.0.1:", "about:", "data:"))]
                check("no request left the server", len(browser.requests) > 100 and outside == [], outside[:3])
                check_report(test, folder)
            except BrowserError as error:
                check("the browser does what it is told", False, str(error))
                test.picture("failed")
            finally:
                test.server.stop()


if __name__ == "__main__":
    main()
    sys.exit(min(len(failures), 100))
