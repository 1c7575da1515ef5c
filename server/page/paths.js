// Draws the paths from the query's entity to an answer as a graph in SVG. The picture serves the pointer;
// the same triples are listed as text below it, for the keyboard and for screen readers.
import {svg, title, tripleKey, tripleWords, entityAddress, plural} from "./dom.js";
import {mergePaths, layOut} from "./layout.js";

const NODE_LINE = 17;
const LABEL_LINE = 14;
const MARGIN = 6;
const ARROW = 9;
const SMALLEST = 0.85;
const WORD = 1.35;  // of the width of a line
const PORT = 11;    // between the ends of two edges at a node

const canvas = document.createElement("canvas").getContext("2d");

function fonts() {
    const family = getComputedStyle(document.body).fontFamily;
    return { node: `600 13px ${family}`, label: `12px ${family}` };
}

function textWidth(text, font) {
    canvas.font = font;
    return canvas.measureText(text).width;
}

/** The longest start of a text that fits, with an ellipsis. */
function fit(text, font, width) {
    const symbols = Array.from(text);
    while (symbols.length > 1 && textWidth(`${symbols.join("")}…`, font) > width) symbols.pop();
    return `${symbols.join("").trimEnd()}…`;
}

/**
 * Breaks a text into at most two lines, behind spaces and the separators of names. A word that is a little
 * wider than the line makes it wider.
 */
export function wrap(text, font, most) {
    if (textWidth(text, font) <= most) return [text];
    const pieces = text.split(/(?<=[\s_/,.\-])/u);
    const widest = Math.max(...pieces.map((piece) => textWidth(piece.trimEnd(), font)));
    const width = widest <= most * WORD ? Math.max(most, widest) : most;
    let line = "";
    while (pieces.length > 0 && textWidth((line + pieces[0]).trimEnd(), font) <= width) line += pieces.shift();
    let rest = pieces.join("");
    if (line === "") {
        line = fit(text, font, width).slice(0, -1);  // one long word: broken where it has to be
        rest = text.slice(line.length);
    }
    return [line.trimEnd(), textWidth(rest, font) <= width ? rest : fit(rest, font, width)];
}

/** Widths of nodes and labels that let a graph of so many layers fit, if it can. */
function widths(layers, available) {
    const room = available - 2 * MARGIN - 32 * layers;
    const node = Math.min(156, Math.max(92, (room * 0.56) / (layers + 1)));
    const label = Math.min(150, Math.max(80, (room * 0.44) / Math.max(1, layers)));
    return { node, label };
}

function measure(graph, available) {
    const font = fonts();
    const layers = Math.max(...graph.nodes.map((node) => node.layer));
    const most = widths(layers, available);
    for (const node of graph.nodes) {
        node.lines = wrap(title(node.entity), font.node, most.node - 20);
        node.width = Math.max(36, ...node.lines.map((line) => textWidth(line, font.node) + 20));
        const ends =
            Math.max(...["from", "to"].map((side) => graph.edges.filter((edge) => edge[side] === node).length));
        node.height = Math.max(node.lines.length * NODE_LINE + 14, ends * PORT + 10);
    }
    for (const edge of graph.edges) {
        const lines = wrap(title(edge.triple.relation), font.label, most.label - 10);
        edge.label = {
            lines,
            width: Math.max(...lines.map((line) => textWidth(line, font.label))) + 10,
            height: lines.length * LABEL_LINE + 6
        };
    }
}

function textLines(lines, x, y, height, className) {
    const first = y - ((lines.length - 1) * height) / 2;
    return svg("text", { class: className, "text-anchor": "middle", "dominant-baseline": "central" },
        lines.map((line, i) => svg("tspan", { x: x.toFixed(1), y: (first + i * height).toFixed(1) }, line)));
}

const at = (point) => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`;

/** A curve through the points, level at each of them. */
function curve(points) {
    let path = `M ${at(points[0])}`;
    for (let i = 1; i < points.length; i += 1) {
        const [a, b] = [points[i - 1], points[i]];
        if (Math.abs(a.y - b.y) < 0.5)
            path += ` L ${at(b)}`;
        else {
            const middle = (a.x + b.x) / 2;
            path += ` C ${at({ x: middle, y: a.y })} ${at({ x: middle, y: b.y })} ${at(b)}`;
        }
    }
    return path;
}

/** The head of an arrow whose point is at (x, y); direction 1 points right, -1 left. */
function arrowHead(x, y, direction) {
    const back = x - direction * ARROW;
    const corners = [{ x: back, y: y - ARROW / 2 }, { x: back, y: y + ARROW / 2 }];
    return svg("path", { class: "arrow", d: `M ${at({ x, y })} L ${corners.map(at).join(" L ")} Z` });
}

function drawEdge(edge, heaviest, toggle) {
    const points = edge.points.map((point) => ({...point }));
    const end = edge.forward ? points.at(-1) : points[0];
    const head = arrowHead(end.x, end.y, edge.forward ? 1 : -1);
    end.x -= (edge.forward ? 1 : -1) * (ARROW - 1);
    const width = 1.25 + 4.75 * (edge.weight / heaviest);
    const { label } = edge;
    return svg("g", { class: "graph-edge", "data-triple": tripleKey(edge.triple), onclick: () => toggle(edge.triple) },
        svg("title", null, `${tripleWords(edge.triple)}\nWhat if it were not known?`),
        svg("path", { class: "hit", d: curve(points) }),
        svg("path", { class: "line", d: curve(points), "stroke-width": width.toFixed(2) }), head, svg("rect", {
            class: "label-ground",
            x: (label.x - label.width / 2).toFixed(1),
            y: (label.y - label.height / 2).toFixed(1),
            width: label.width.toFixed(1),
            height: label.height,
            rx: 4
        }),
        textLines(label.lines, label.x, label.y, LABEL_LINE, "edge-label"));
}

function drawNode(node) {
    const { entity } = node;
    return svg("g", {
        class: `graph-node ${node.end === "answer" ? "answer-node" : node.end ?? "between"}`,
        onclick: () => {
            location.hash = entityAddress(entity);
        }
    },
        svg("title", null,
            [title(entity), entity.label ? entity.name : null, entity.description].filter(Boolean).join("\n")),
        svg("rect", {
            x: (node.x - node.width / 2).toFixed(1),
            y: (node.y - node.height / 2).toFixed(1),
            width: node.width.toFixed(1),
            height: node.height,
            rx: 8
        }),
        textLines(node.lines, node.x, node.y, NODE_LINE, "node-label"));
}

/**
 * The graph of some paths.
 *   available  width in pixels to draw into; a graph that needs more is wider
 *   restsOn    keys of the triples without which the answer falls
 *   toggle     triple => void: puts it in question
 */
export function pathGraph(paths, source, answer, {available, restsOn, toggle}) {
    const graph = mergePaths(paths, source, answer, tripleKey);
    measure(graph, available);
    const size = layOut(graph);
    const heaviest = Math.max(1e-12, ...graph.edges.map((edge) => edge.weight));
    const width = Math.ceil(size.width + 2 * MARGIN);
    const height = Math.ceil(size.height + 2 * MARGIN);
    // A graph that is a little too wide is drawn a little smaller; a wider one is scrolled.
    const scale = width > available && width * SMALLEST <= available ? available / width : 1;
    const picture = svg("svg", {
        class: "path-graph",
        role: "img",
        width: width * scale,
        height: height * scale,
        viewBox: `${- MARGIN} ${- MARGIN} ${width} ${height}`,
        "aria-label": `${plural(paths.length, "path")} from ${title(source)} to ${title(answer)}, listed below`,
    });
    for (const edge of [...graph.edges].sort((a, b) => a.weight - b.weight)) {
        const drawn = drawEdge(edge, heaviest, toggle);
        if (restsOn.has(tripleKey(edge.triple))) drawn.classList.add("rests");
        picture.append(drawn);
    }
    for (const node of graph.nodes) picture.append(drawNode(node));
    return picture;
}
