"""Checks of what goes wrong: unknown names, slow answers, a server that is gone or wants a token, hostile names."""
import json
import os

from lab import check, quote
from setup import HOSTILE, IMAGE, Server


def check_errors(test):
    browser, server = test.browser, test.server
    for address, words in (("#/nowhere", "There is no page"), ("#/entity?name=no_such_entity", "no_such_entity"),
                           ("#/ask?head=germany&relation=no_such_relation", "no_such_relation"), ("#/ask?head=no_such&relation=borders", "no_such"),
                           ("#/map?name=no_such_entity", "no_such_entity"), ("#constructor", "There is no page")):
        test.open(address)
        browser.wait("document.querySelector('[role=alert]')")
        text = test.text("[role=alert]") or ""
        check(f"{address} has one heading", browser.evaluate("document.querySelectorAll('h1').length") == 1)
        check(f"{address} gives a sentence", words in text and "." in text and not text.startswith("{"), text)
        if address == "#/nowhere":
            test.picture("error-light-1400")
    test.open("#/ask?head=germany&relation=borders&answer=austria&without=nonsense&k=many")
    check("a malformed address is read as far as it goes", len(test.texts("a.answer")) == 10 and browser.evaluate("document.querySelector('.what-if').hidden"))
    browser.problems = [problem for problem in browser.problems if problem[0] != "network"]  # the browser logs every 404


def check_slow_answers(test):
    """Answers that a small graph does not give: work in the background, a busy server, none in time."""
    browser = test.browser
    test.open("#/")
    browser.evaluate("""(() => { const real = window.fetch; const left = { evaluation: 2, entity: 1 };
        window.fetch = (address, options) => {
            const name = String(address).match(/^\\/api\\/(\\w+)/)?.[1];
            if (!(left[name] > 0)) return real(address, options);
            left[name] -= 1;
            return Promise.resolve(name === "entity" ? new Response("<html>", { status: 503 })
                : new Response(JSON.stringify({ state: "running", done: 1007, total: 4400 }), { status: 202 }));
        }; })()""")
    browser.evaluate("location.hash = '#/run'")
    browser.wait("document.querySelector('progress')")
    check("the progress of an evaluation is shown", "1,007 of 4,400 queries" in test.text(".progress") and browser.evaluate("document.querySelector('progress').value") == 1007)
    browser.wait("document.querySelector('.breakdown')")
    browser.evaluate("location.hash = '#/entity?name=slovenia'")
    browser.wait("document.querySelector('[role=alert] button')")
    check("a busy server is a sentence", "busy" in test.text("[role=alert]"), test.text("[role=alert]"))
    browser.click("[role=alert] button")
    browser.wait("document.querySelector('h1')?.textContent === 'slovenia'")
    test.server.pause()
    try:
        browser.evaluate("location.hash = '#/entity?name=croatia'")
        browser.wait("document.querySelector('[aria-busy] .loading')")
        check("waiting is shown", test.text(".loading") == "Reading the entity…", test.text(".loading"))
        message = browser.evaluate("import('/api.js').then((api) => api.get('/api/entities', { q: 'late' }, { seconds: 0.3 })).catch((error) => error.message)")
        check("no answer in time is a sentence", "did not answer within 0.3 seconds" in message, message)
    finally:
        test.server.resume()
    browser.wait("document.querySelector('h1')?.textContent === 'croatia'")
    check("and the answer is shown when it comes", True)
    browser.problems = [problem for problem in browser.problems if problem[0] != "network"]


def check_server_gone(test):
    browser = test.browser
    test.open("#/entity?name=germany")
    test.server.stop()
    browser.evaluate("location.hash = '#/entity?name=france'")
    browser.wait("document.querySelector('[role=alert]')")
    check("a server that is gone is a sentence", "does not answer" in test.text("[role=alert]"), test.text("[role=alert]"))
    check("the field names what was asked for", browser.evaluate("document.querySelector('[role=combobox]').value") == "france")
    test.picture("server-gone-light-1400")
    test.server = Server(test.program, test.run, port=test.server.port)
    browser.click("[role=alert] button")
    browser.wait("document.querySelector('h1')?.textContent === 'France'")
    browser.wait("document.querySelector('.fact-group')")
    check("trying again works once it is back", True)
    browser.problems = [problem for problem in browser.problems if problem[0] != "network"]


def check_token(test, folder):
    browser = test.browser
    path = os.path.join(folder, "token")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
        file.write("0123456789abcdef-token\n")
    server = Server(test.program, test.run, "--token-file", path)
    try:
        browser.open(server.url + "/#/entity?name=germany")
        browser.wait("document.querySelector('input[type=password]')")
        check("a server with a token asks for it", "asks for a token" in browser.evaluate("document.querySelector('form').innerText"))
        browser.evaluate("document.querySelector('input[type=password]').focus()")
        browser.type("wrong-token-0123456789")
        browser.key("Enter")
        browser.wait("document.body.innerText.includes('does not accept')")
        browser.evaluate("document.querySelector('input[type=password]').focus()")
        browser.type("0123456789abcdef-token")
        browser.key("Enter")
        browser.wait("document.querySelector('h1')?.textContent === 'Germany'")
        check("the right token opens the page", True)
    finally:
        server.stop()
    browser.problems = [problem for problem in browser.problems if problem[0] != "network"]


def check_hostile(test):
    browser = test.browser
    for name, (label, gloss) in HOSTILE.items():
        test.open(f"#/entity?name={quote(name)}")
        check(f"{name[:24]} is text", test.browser.evaluate("document.querySelector('h1').textContent.trim()") == label.strip() and gloss.strip() in test.browser.evaluate("document.querySelector('.left').textContent"),
              test.text("h1"))
    test.open(f"#/ask?head=germany&relation=borders&answer={quote(IMAGE)}&without={quote(json.dumps([IMAGE, 'part_of', 'europe']))}")
    browser.wait("document.querySelector('.changes, .what-if [role=alert]')")
    check("no name becomes an element or a script", browser.evaluate("window.owned === undefined && document.querySelectorAll('main img, main script, main style').length === 0"))
    test.picture("hostile-light-1400")
