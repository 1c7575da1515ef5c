// Building blocks of every view: elements, numbers, and how entities, relations and triples look. Names
// come from data sets and are hostile input: text enters the document as text nodes and attributes alone.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
    for (const [key, value] of Object.entries(properties ?? {})) {
        if (value === null || value === undefined || value === false) continue;
        if (key.startsWith("on"))
            node.addEventListener(key.slice(2), value);
        else
            node.setAttribute(key, value === true ? "" : String(value));
    }
    for (const child of children.flat(Infinity)) {
        if (child === null || child === undefined || child === false) continue;
        node.append(child instanceof Node ? child : String(child));
    }
    return node;
}

/** An HTML element: attributes by name, listeners as onclick and the like, children as nodes or text. */
export function el(tag, properties, ...children) { return fill(document.createElement(tag), properties, children); }

/** The same for an element of SVG. */
export function svg(tag, properties, ...children) {
    return fill(document.createElementNS(SVG, tag), properties, children);
}

let ids = 0;
/** An id that no other element has. */
export function uniqueId(prefix) {
    ids += 1;
    return `${prefix}-${ids}`;
}

/** Tells screen readers what has changed. */
export function announce(text) { document.getElementById("live").textContent = text; }

/** A box that scrolls sideways where its content is too wide; the keyboard can reach and scroll it. */
export function scroller(name, ...children) {
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, children);
}

/* ---- numbers ---- */

const MINUS = "\u2212";

/** A number with thousands separators, a true minus, and so many digits behind the point. */
export function fixed(value, digits) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const text =
        Math.abs(value).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return value < 0 && /[1-9]/.test(text) ? MINUS + text : text;
}

export const count = (value) => fixed(value, 0);

/** A rank: a mean over ties may end in .5. */
export function rank(value) { return fixed(value, Number.isInteger(value) ? 0 : 1); }

/** A weight: at most three digits behind the point, no zeros at the end. */
export const weight = (value) => value.toLocaleString("en-US", {maximumFractionDigits: 3});

/** Digits behind the point that suit a column of these values. */
export function digitsFor(values) {
    const largest = Math.max(0, ...values.filter(Number.isFinite).map(Math.abs));
    if (largest >= 1000) return 0;
    if (largest >= 100) return 1;
    if (largest >= 10) return 2;
    return 3;
}

/** "1 triple", "2 triples". */
export function plural(number, noun, several = `${noun}s`) {
    return `${count(number)} ${number === 1 ? noun : several}`;
}

/* ---- addresses ---- */

/** An address of this page: "#/ask?head=Q42". Lists give a key several times; empty values are left out. */
export function address(path, parameters = {}) {
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(parameters)) {
        for (const item of Array.isArray(value) ? value : [value]) {
            if (item !== null && item !== undefined && item !== "") search.append(key, item);
        }
    }
    const text = search.toString();
    return `#${path}${text ? `?${text}` : ""}`;
}

export const entityAddress = (entity) => address("/entity", {name: entity.name});

/* ---- components ---- */

/** The parts of the score, in the order in which they are drawn. */
export const COMPONENTS = [
    {key: "horizontal", letter: "g", about: "embeddings"},
    {key: "vertical", letter: "c", about: "the vertical aggregator over references"},
    {key: "path", letter: "p", about: "paths of known triples"},
];

/** f with the letter of a component below. */
export function symbol(letter) { return el("var", { class: "symbol" }, "f", letter ? el("sub", null, letter) : null); }

/** f as a sum: f = 0.32 f_g + f_c, with more nodes before and behind each term if wanted. */
export function formula(components, weights, before = () => null, behind = () => null) {
    return [
        symbol(), " = ", components.map(({ key, letter }, index) => {
            const factor = weights?.[key] ?? 1;
            return [
                index > 0 ? " " : null,
                el("span", { class: "term" }, index > 0 ? "+ " : null, before(key),
                    factor === 1 ? null : `${weight(factor)} `, symbol(letter), behind(key))
            ];
        })
    ];
}

/** The components that an answer has. */
export function componentsOf(answer) { return COMPONENTS.filter(({ key }) => Number.isFinite(answer?.[key])); }

/** A component as it enters f: its value times its weight. */
export function weighted(answer, key, weights) {
    const value = answer[key];
    return Number.isFinite(value) ? value * (weights?.[key] ?? 1) : null;
}

/* ---- entities, relations, triples ---- */

export const title = (thing) => thing.label || thing.name;

/** Text cut to a length, at a word where one ends near. */
export function shorten(text, length) {
    const symbols = Array.from(text);
    if (symbols.length <= length) return text;
    return `${symbols.slice(0, length - 1).join("").trimEnd()}…`;
}

/** An entity as text: its label or name, with all that is known of it on hover. */
export function entityText(entity, length = 80) {
    const whole = [title(entity), entity.label ? entity.name : null, entity.description].filter(Boolean).join("\n");
    return el("bdi", { class: "entity", title: whole }, shorten(title(entity), length));
}

/** A link to the page of an entity. */
export function entityLink(entity, length = 80) {
    return el("a", { href: entityAddress(entity) }, entityText(entity, length));
}

export function relationText(relation) {
    const whole =
        [title(relation), relation.label ? relation.name : null, relation.description].filter(Boolean).join("\n");
    return el("bdi", { class: "relation", title: whole }, shorten(title(relation), 60));
}

/** Two triples are the same when their names are. */
export function tripleKey(triple) { return JSON.stringify([triple.head.name, triple.relation.name, triple.tail.name]); }

/** A triple as words, for names of controls. */
export function tripleWords(triple) { return `${title(triple.head)} ${title(triple.relation)} ${title(triple.tail)}`; }

/** A triple in a line: head, relation as an arrow, tail; the entities lead to their pages. */
export function tripleLine(triple) {
    return el("span", { class: "triple" }, entityLink(triple.head), " ",
        el("span", { class: "edge" }, relationText(triple.relation)), " ", entityLink(triple.tail));
}

/** A query as words: "Q42 occupation ?". */
export function queryWords(query) {
    const head = query.head ? title(query.head) : "?";
    const tail = query.tail ? title(query.tail) : "?";
    return `${head} ${title(query.relation)} ${tail}`;
}
