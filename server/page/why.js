// Why an answer has its score: components, paths, the triples it rests on, references, and what would be
// if some of these triples were not known.
import {
    el,
    address,
    announce,
    count,
    fixed,
    rank,
    digitsFor,
    plural,
    title,
    entityLink,
    entityText,
    entityAddress,
    relationText,
    tripleKey,
    tripleWords,
    componentsOf,
    weighted,
    weight,
    symbol,
} from "./dom.js";
import {get, post} from "./api.js";
import {load} from "./status.js";
import {bars, barRange} from "./answers.js";
import {pathGraph} from "./paths.js";

const MOST_REMOVED = 16;
const REFERENCES_SHOWN = 8;

/** Triples of an address: JSON lists of three names. What is malformed is left out. */
function readTriples(texts) {
    return texts.slice(0, MOST_REMOVED).flatMap((text) => {
        try {
            const names = JSON.parse(text);
            if (!Array.isArray(names) || names.length !== 3 || !names.every((name) => typeof name === "string"))
                return [];
            const [head, relation, tail] = names.map((name) => ({ name, label: null, description: null }));
            return [{ head, relation, tail }];
        } catch (_) {
            return [];
        }
    });
}

/** A relation as a button between two entities, which puts its triple in question. */
function edgeButton(triple, forward, toggle) {
    return el("button", {
        type: "button",
        class: `edge-button ${forward ? "forward" : "backward"}`,
        "data-triple": tripleKey(triple),
        "aria-pressed": "false",
        "aria-label": `${title(triple.relation)}: what if ${tripleWords(triple)} were not known`,
        onclick: () => toggle(triple),
    },
        relationText(triple.relation));
}

function tripleRow(triple, toggle) {
    return el("span", { class: "triple" }, entityLink(triple.head, 60), " ", edgeButton(triple, true, toggle), " ",
        entityLink(triple.tail, 60));
}

/** A path in a line: entities, and between them the relations in the direction of their triples. */
function pathLine(path, source, toggle) {
    const parts = [entityLink(source, 40)];
    for (const { triple, forward } of path.triples) {
        parts.push(" ", edgeButton(triple, forward, toggle), " ", entityLink(forward ? triple.tail : triple.head, 40));
    }
    return el("li", null,
        el("span", { class: "weight number", title: "Estimated share of f_p that depends on this path" },
            fixed(path.weight, 2)),
        el("span", { class: "chain" }, parts));
}

function componentTable(prediction, weights) {
    const components = componentsOf(prediction);
    const values = components.map(({ key }) => weighted(prediction, key, weights));
    const digits = digitsFor([...values, prediction.score]);
    const range = barRange(components.map(({ key }) => ({ [key]: prediction[key] })), components, weights);
    const product = (key) => `${weight(weights[key])} × ${fixed(prediction[key], digits)}`;
    const row = (component, i) => {
        const { key, letter } = component;
        return el("tr", null,
            el("th", { scope: "row" }, el("span", { class: `swatch ${key}` }), key, " ", symbol(letter)),
            el("td", { class: "number quiet" }, (weights?.[key] ?? 1) === 1 ? "" : product(key)),
            el("td", { class: "bar-cell" }, bars({ [key]: prediction[key] }, [component], weights, range)),
            el("td", { class: "number" }, fixed(values[i], digits)));
    };
    const sum = el("tr", { class: "sum" }, el("th", { scope: "row" }, "score ", symbol()), el("td"), el("td"),
        el("td", { class: "number" }, fixed(prediction.score, digits)));
    return el("table", { class: "components" }, el("caption", { class: "hidden" }, "The score by component"),
        el("tbody", null, components.map(row), components.length > 1 ? sum : null));
}

function pathsSection(explanation, source, width, parameters, toggle) {
    const { paths, prediction, without } = explanation;
    if (!Number.isFinite(prediction.path)) return null;
    const heading = el("h3", null, "Paths of known triples");
    if (paths.length === 0) {
        return el("section", null, heading,
            el("p", { class: "quiet" }, "No path of known triples leads from ", entityText(source),
                " to this answer within the layers of the path model."));
    }
    const restsOn = new Set((without?.triples ?? []).map(tripleKey));
    const frame = el("div", { class: "graph-frame", tabindex: "0", role: "region", "aria-label": "Paths as a graph" },
        pathGraph(paths, source, prediction.entity, { available: width, restsOn, toggle }));
    return el("section", null, heading,
        el("p", { class: "quiet" }, "The wider a line, the larger the share of ", symbol("p"),
            " that depends on it. Press a relation to ask what if its triple were not known."),
        frame,
        Number(frame.firstChild.getAttribute("width")) > width
            ? el("p", { class: "quiet" }, "The graph is wider than this panel: scroll it sideways.")
            : null,
        el("ol", { class: "path-list" }, paths.map((path) => pathLine(path, source, toggle))),
        paths.length < 8 && !parameters.paths
            ? el("p", null, el("a", { href: address("/ask", {...parameters, paths: 8 }) }, "Look for up to 8 paths"))
            : null);
}

function restsSection(explanation, toggle, askAll) {
    const { without, prediction } = explanation;
    if (!Number.isFinite(prediction.path)) return null;
    const heading = el("h3", null, "What it rests on");
    if (!without) {
        return el("section", null, heading,
            el("p", { class: "quiet" },
                "No set of at most four known triples was found without which it falls: it has more grounds."));
    }
    const digits = digitsFor([prediction.score, without.score]);
    const alone = without.triples.length === 1;
    const which = alone ? "this known triple" : `these ${without.triples.length} known triples`;
    return el("section", { class: "rests-on" }, heading,
        el("p", null, `Without ${which} it falls from rank `,
            el("strong", { class: "number" }, rank(without.rank_before ?? prediction.rank)), " to ",
            el("strong", { class: "number" }, rank(without.rank)),
            `, f from ${fixed(prediction.score, digits)} to ${fixed(without.score, digits)}:`),
        el("ul", { class: "triples" }, without.triples.map((triple) => el("li", null, tripleRow(triple, toggle)))),
        el("p", null,
            el("button", { type: "button", onclick: () => askAll(without.triples) },
                alone ? "What if it were not known?" : "What if none of them were known?")));
}

function referencesSection(explanation, weights, toggle) {
    const { references, prediction } = explanation;
    if (!Number.isFinite(prediction.vertical) || !references) return null;
    const heading = el("h3", null, "References");
    if (references.length === 0)
        return el("section", null, heading,
            el("p", { class: "quiet" }, "The relation has no known triple near this entity."));
    const largest = Math.max(1e-12, ...references.map((reference) => Math.abs(reference.contribution)));
    const digits = largest >= 0.1 ? 3 : 4;
    const component = [{ key: "vertical" }];
    const range = { low: -largest, high: largest };
    const rows =
        references.map(({ triple, distance, contribution }) => el("tr", null, el("td", null, tripleRow(triple, toggle)),
                           el("td", { class: "number" }, count(distance)),
                           el("td", { class: "bar-cell" }, bars({ vertical: contribution }, component, null, range)),
                           el("td", { class: "number" }, fixed(contribution, digits))));
    const table = (lines) =>
        el("table", { class: "references" }, el("caption", { class: "hidden" }, "References with their contributions"),
            el("thead", null,
                el("tr", null, el("th", { scope: "col" }, "Known triple"),
                    el("th", { scope: "col", class: "number" }, "Distance"),
                    el("th", { scope: "col", colspan: "2", class: "number" }, "Contribution"))),
            el("tbody", null, lines));
    return el("section", null, heading,
        el("p", { class: "quiet" },
            weights?.vertical === 0
                ? "The vertical component has the weight 0 in this run: references do not change the score."
                : "The nearest known triples of this relation. A contribution is what the score loses without " +
                    "the reference; they do not add up."),
        el("div", { class: "scroll" }, table(rows.slice(0, REFERENCES_SHOWN))),
        rows.length > REFERENCES_SHOWN
            ? el("details", null, el("summary", null, `${rows.length - REFERENCES_SHOWN} more references`),
                el("div", { class: "scroll" }, table(rows.slice(REFERENCES_SHOWN))))
            : null);
}

/** "rank 1 → 12", and whether that is worse: a larger rank, a smaller score. */
function change(name, before, after, show, className = "") {
    const moved = show(before) !== show(after);
    const worse = name === "rank" ? after > before : after < before;
    return el("div", { class: `change ${className} ${moved ? (worse ? "worse" : "better") : "same"}` },
        el("dt", null, name),
        el("dd", { class: "number" }, show(before),
            moved ? [el("span", { "aria-label": "to", role: "img" }, " → "), el("strong", null, show(after))]
                  : el("span", { class: "quiet" }, " stays")));
}

function whatIfResult(result, weights) {
    const { before, after } = result;
    const digits = digitsFor([before.score, after.score]);
    const scores = [before.score, after.score].map((score) => fixed(score, digits)).join(" to ");
    announce(`Without them: rank ${rank(before.rank)} to ${rank(after.rank)}, score ${scores}.`);
    return el("dl", { class: "changes" }, change("rank", before.rank, after.rank, rank, "large"),
        change("f", before.score, after.score, (value) => fixed(value, digits), "large"),
        componentsOf(before).map(
            ({ key }) => change([el("span", { class: `swatch ${key}` }), key], weighted(before, key, weights),
                weighted(after, key, weights), (value) => fixed(value, digits))));
}

/** The head of an explanation: what is explained, its rank, and what it is. */
function explanationHead(prediction, entities) {
    const { entity, known } = prediction;
    return [
        el("h2", { tabindex: "-1" }, "Why ", entityText(entity, 60), "?"),
        el("p", { class: "entity-meta" },
            el("span", null, "Rank ", el("strong", { class: "number" }, rank(prediction.rank)),
                ` of ${count(entities)} when other known answers are left out`),
            known ? el("span", { class: "badge" }, "known") : null,
            el("a", { href: entityAddress(entity) }, "Facts of ", entityText(entity, 40))),
        entity.description ? el("p", { class: "gloss-full" }, el("bdi", null, entity.description)) : null,
        known ? el("p", { class: "quiet" }, "This triple is known. It was left out of the graph for the explanation.")
              : null,
    ];
}

/** All triples of an explanation. */
function triplesOf({ paths, without, references }) {
    return [
        ...paths.flatMap((path) => path.triples.map(({ triple }) => triple)),
        ...(without?.triples ?? []),
        ...(references ?? []).map(({ triple }) => triple),
    ];
}

/** The triples in question, each with a button that puts it back, above the place for the result. */
function questionHead(triples, setWithout, toggle) {
    const chip = (triple) => {
        const name = `Put back: ${tripleWords(triple)}`;
        const back =
            el("button", { type: "button", class: "plain", "aria-label": name, onclick: () => toggle(triple) }, "×");
        return el("li", null, el("span", null, tripleWords(triple)), back);
    };
    const words = triples.length === 1 ? "this triple" : `these ${triples.length} triples`;
    return [
        el("div", { class: "what-if-head" }, el("h3", null, `If ${words} were not known`),
            el("button", { type: "button", class: "plain", onclick: () => setWithout([]) }, "Clear")),
        el("ul", { class: "chips" }, triples.map(chip)),
    ];
}

/** Asks for the answer of an address without some triples. */
async function askWithout(parameters, triples, signal) {
    const side = parameters.head ? "head" : "tail";
    const { relation, answer } = parameters;
    const without = triples.map((triple) => {
        return { head: triple.head.name, relation: triple.relation.name, tail: triple.tail.name };
    });
    const [result, run] = await Promise.all([
        post("/api/what-if", { [side]: parameters[side], relation, answer, without }, { signal }),
        get("/api/run", {}, { signal }),
    ]);
    return whatIfResult(result, run.weights);
}

/**
 * The panel that explains an answer. update(state, parameters) draws what the address names, where that
 * has changed; a state of null closes the panel.
 */
export function whyView(container, signal) {
    const body = el("div", { class: "why-body" });
    const question = el("section", { class: "what-if", "aria-label": "What if", hidden: true });
    let key = null;
    let parameters = {};
    let seen = new Map();

    const setWithout = (triples) => {
        location.hash = address("/ask", {...parameters, without: triples.map(tripleKey) });
    };
    const asked = () => readTriples(parameters.without ?? []);
    function toggle(triple) {
        const triples = asked();
        const rest = triples.filter((other) => tripleKey(other) !== tripleKey(triple));
        if (rest.length < triples.length)
            setWithout(rest);
        else if (triples.length < MOST_REMOVED)
            setWithout([...triples, triple]);
        else
            announce(`At most ${MOST_REMOVED} triples can be in question.`);
    }

    async function explain(state, inner) {
        const side = state.direction === "out" ? "head" : "tail";
        const query = { [side]: state.entity, relation: state.relation, answer: state.answer, paths: state.paths ?? 3 };
        const [explanation, run] = await Promise.all([
            get("/api/explain", query, { signal: inner, seconds: 120 }),
            get("/api/run", {}, { signal: inner }),
        ]);
        const { prediction } = explanation;
        const source = explanation.query.head ?? explanation.query.tail;
        seen = new Map(triplesOf(explanation).map((triple) => [tripleKey(triple), triple]));
        const found = plural(explanation.paths.length, "path");
        announce(`Why ${title(prediction.entity)}: rank ${rank(prediction.rank)}, ${found}.`);
        return [
            ...explanationHead(prediction, run.data.entities),
            componentTable(prediction, run.weights),
            pathsSection(explanation, source, Math.max(300, container.clientWidth - 40), parameters, toggle),
            restsSection(explanation, toggle, setWithout),
            referencesSection(explanation, run.weights, toggle),
        ];
    }

    /** Marks the triples in question, and asks for the answer without them. */
    function drawWhatIf() {
        const triples = asked().map((triple) => seen.get(tripleKey(triple)) ?? triple);
        const keys = new Set(triples.map(tripleKey));
        for (const node of body.querySelectorAll("[data-triple]")) {
            const pressed = keys.has(node.dataset.triple);
            node.classList.toggle("questioned", pressed);
            if (node.tagName === "BUTTON") node.setAttribute("aria-pressed", String(pressed));
        }
        const focused = question.contains(document.activeElement);
        const result = el("div", { class: "what-if-result" });
        question.hidden = triples.length === 0;
        question.replaceChildren(...(question.hidden ? [] : [...questionHead(triples, setWithout, toggle), result]));
        // The button that was pressed is gone: the focus stays near.
        if (focused) (question.querySelector("button") ?? body.querySelector("h2"))?.focus({ preventScroll: true });
        if (question.hidden) return;
        void load(result, "Answering again without them…", (inner) => askWithout(parameters, triples, inner), signal);
    }

    /** Opens another explanation, or none. */
    function open(state, stacked) {
        seen = new Map();
        question.hidden = true;
        container.hidden = !state;
        if (!state) {
            body.replaceChildren();
            container.replaceChildren();
            return;
        }
        if (!body.isConnected) container.replaceChildren(body, question);
        const work = (inner) => explain(state, inner);
        void load(body, "Looking for what this answer rests on…", work, signal, drawWhatIf);
        // Where the panels are stacked, or the page was scrolled, the explanation would open out of sight.
        if (stacked || container.getBoundingClientRect().top < 0) container.scrollIntoView({ block: "start" });
    }

    return {
        update(state, next) {
            const before = parameters;
            parameters = next;
            const wanted =
                state && JSON.stringify([state.entity, state.direction, state.relation, state.answer, state.paths]);
            if (wanted !== key) {
                key = wanted;
                open(state, before.relation && matchMedia("(max-width: 62rem)").matches);
            } else if (state && JSON.stringify(before.without) !== JSON.stringify(next.without))
                drawWhatIf();
        },
    };
}
