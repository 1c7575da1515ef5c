// The page of `vlp serve`: reads the address (the part behind #), shows the view it names, and turns
// unknown ones into sentences. A view is a function (container, {signal}) that gives update(path, parameters), called
// for every address of the view; the signal is aborted when another view opens.
import {el, announce, address} from "./dom.js";
import {get} from "./api.js";
import {setTitle} from "./status.js";
import {askView} from "./ask.js";
import {runView} from "./run.js";
import {mapView} from "./map.js";

const main = document.getElementById("main");
let current = { name: null, view: null, abort: null };

const VIEWS = {
    "/": { name: "ask", open: askView },
    "/ask": { name: "ask", open: askView },
    "/entity": { name: "ask", open: askView },
    "/map": { name: "map", open: mapView },
    "/run": { name: "run", open: runView },
};

/** The address as {path, parameters}. */
function readAddress() {
    const text = location.hash.replace(/^#/, "") || "/";
    const at = text.indexOf("?");
    const path = at < 0 ? text : text.slice(0, at);
    return { path, parameters: new URLSearchParams(at < 0 ? "" : text.slice(at + 1)) };
}

function unknownAddress(path) {
    setTitle("Not found");
    const message = `There is no page “${path}” here.`;
    announce(message);
    main.replaceChildren(
        el("div", { class: "notice error", role: "alert" }, el("h1", null, "Not found"), el("p", null, message),
            el("p", null, el("a", { href: "#/" }, "Ask a query"), " or look at ", el("a", { href: "#/run" }, "the run"),
                ".")));
}

function closeCurrent() {
    current.abort?.abort();
    current = { name: null, view: null, abort: null };
}

function navigate() {
    const { path, parameters } = readAddress();
    const target = Object.hasOwn(VIEWS, path) ? VIEWS[path] : null;
    for (const link of document.querySelectorAll("nav a")) {
        if (link.dataset.view === target?.name)
            link.setAttribute("aria-current", "page");
        else
            link.removeAttribute("aria-current");
    }
    if (!target) {
        closeCurrent();
        unknownAddress(path);
        return;
    }
    if (current.name === target.name) {
        current.view.update(path, parameters);
        return;
    }
    const first = current.abort === null && document.activeElement === document.body;
    closeCurrent();
    const abort = new AbortController();
    const view = target.open(main, { signal: abort.signal });
    current = { name: target.name, view, abort };
    view.update(path, parameters);
    window.scrollTo(0, 0);
    if (!first) main.focus({ preventScroll: true });
}

async function showRunName() {
    const place = document.getElementById("run-name");
    try {
        const health = await get("/api/health");
        place.textContent = health.run;
        place.title = `vlp ${health.version}`;
    } catch (_) {
        place.textContent = "";  // the view below says what is wrong
    }
}

document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
});
window.addEventListener("hashchange", navigate);
if (!location.hash) history.replaceState(null, "", address("/"));
document.addEventListener("tokenchange", () => void showRunName());
void showRunName();
navigate();
