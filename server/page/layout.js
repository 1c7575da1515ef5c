// The layout of a small layered graph, left to right: entities in even columns, the names of relations in
// odd ones. Every text is an item of a column, and the items of a column are set apart, so that no two
// texts overlap. Pure functions of sizes: nothing here touches the document.

const GAP_X = 16;
const GAP_Y = 10;
const SWEEPS = 8;

/** Whether edges lead from one node to another. */
function leads(from, to) { return from === to || from.next.some((node) => leads(node, to)); }

/** The layer of each node: one behind the last of those that lead to it; the answer behind all others. */
function setLayers(nodes, goal) {
    const depth = (node) => {
        node.layer ??=
            Math.max(0, ...nodes.filter((other) => other.next.includes(node)).map((other) => depth(other) + 1));
        return node.layer;
    };
    nodes.forEach(depth);
    goal.layer = Math.max(1, ...nodes.filter((node) => node !== goal).map((node) => node.layer + 1));
}

/**
 * Merges paths into nodes and edges. A path is {weight, triples: [{triple, forward}]}, from the source to the
 * answer. An entity is one node wherever that leaves all edges going right; else it is drawn once more.
 */
export function mergePaths(paths, source, answer, tripleKey) {
    const start = { entity: source, end: "source", next: [] };
    const goal = { entity: answer, end: "answer", next: [] };
    const nodes = [start, goal];
    const edges = new Map();
    for (const path of [...paths].sort((a, b) => b.weight - a.weight)) {
        let from = start;
        path.triples.forEach(({ triple, forward }, index) => {
            const entity = forward ? triple.tail : triple.head;
            let to = goal;
            if (index < path.triples.length - 1) {
                const before = from;
                to = nodes.find((node) => !node.end && node.entity.name === entity.name && !leads(node, before));
                if (!to) {
                    to = { entity, end: null, next: [] };
                    nodes.push(to);
                }
            }
            if (!from.next.includes(to)) from.next.push(to);
            const key = `${nodes.indexOf(from)} ${nodes.indexOf(to)} ${tripleKey(triple)}`;
            const edge = edges.get(key) ?? { from, to, triple, forward, weight: 0 };
            edge.weight += path.weight;
            edges.set(key, edge);
            from = to;
        });
    }
    setLayers(nodes, goal);
    return { nodes, edges: [...edges.values()] };
}

/** Puts nodes, labels and the bends of long edges into columns, and links each edge's items in a row. */
function makeColumns(graph) {
    const last = Math.max(...graph.nodes.map((node) => node.layer));
    const columns = Array.from({ length: 2 * last + 1 }, () => []);
    for (const node of graph.nodes) {
        node.before = [];
        node.after = [];
        columns[2 * node.layer].push(node);
    }
    for (const edge of graph.edges) {
        const first = 2 * edge.from.layer + 1;
        const beyond = 2 * edge.to.layer;
        const middle = first + 2 * Math.floor((edge.to.layer - edge.from.layer - 1) / 2);
        edge.items = [];
        let previous = edge.from;
        for (let column = first; column < beyond; column += 1) {
            const item = column === middle ? edge.label : { width: 0, height: 6 };
            item.before = [previous];
            item.after = [];
            previous.after.push(item);
            columns[column].push(item);
            edge.items.push(item);
            previous = item;
        }
        previous.after.push(edge.to);
        edge.to.before.push(previous);
    }
    return columns;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Orders the items of each column by the mean place of their neighbours, to and fro, against crossings. */
function orderColumns(columns) {
    const number = () => columns.forEach((column) => column.forEach((item, place) => {
        item.place = place - (column.length - 1) / 2;
    }));
    number();
    for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
        const side = sweep % 2 === 0 ? "before" : "after";
        for (const column of sweep % 2 === 0 ? columns : [...columns].reverse()) {
            const wish = new Map(column.map(
                (item) => [item, item[side].length > 0 ? mean(item[side].map((other) => other.place)) : item.place]));
            column.sort((a, b) => wish.get(a) - wish.get(b));
            column.forEach((item, place) => {
                item.place = place - (column.length - 1) / 2;
            });
        }
    }
}

/**
 * The y of a column's items, as near to their wishes as their order and distances allow: least squares,
 * by pooling neighbours that would overlap (isotonic regression).
 */
export function separate(wishes, heights, gap) {
    const offsets = [0];
    for (let i = 1; i < wishes.length; i += 1) offsets.push(offsets[i - 1] + (heights[i - 1] + heights[i]) / 2 + gap);
    const pools = [];
    wishes.forEach((wish, i) => {
        pools.push({ sum: wish - offsets[i], size: 1 });
        while (pools.length > 1 && pools.at(-2).sum / pools.at(-2).size > pools.at(-1).sum / pools.at(-1).size) {
            const pool = pools.pop();
            pools.at(-1).sum += pool.sum;
            pools.at(-1).size += pool.size;
        }
    });
    return pools.flatMap((pool) => Array(pool.size).fill(pool.sum / pool.size)).map((base, i) => base + offsets[i]);
}

function placeColumns(columns) {
    for (const column of columns) {
        const ys = separate(column.map(() => 0), column.map((item) => item.height), GAP_Y);
        column.forEach((item, i) => {
            item.y = ys[i];
        });
    }
    for (let sweep = 0; sweep < 2 * SWEEPS; sweep += 1) {
        for (const column of sweep % 2 === 0 ? columns : [...columns].reverse()) {
            const wishes = column.map((item) => {
                const near = [...item.before, ...item.after];
                return near.length > 0 ? mean(near.map((other) => other.y)) : item.y;
            });
            separate(wishes, column.map((item) => item.height), GAP_Y).forEach((y, i) => {
                column[i].y = y;
            });
        }
    }
    const all = columns.flat();
    const top = Math.min(...all.map((item) => item.y - item.height / 2));
    let x = 0;
    for (const column of columns) {
        const width = Math.max(...column.map((item) => item.width));
        for (const item of column) {
            item.x = x + width / 2;
            item.y -= top;
        }
        x += width + GAP_X;
    }
    return { width: x - GAP_X, height: Math.max(...all.map((item) => item.y + item.height / 2)) };
}

/** Where the edges of one side of a node meet it: in the order of their other ends, without crossing. */
function setPorts(graph) {
    for (const node of graph.nodes) {
        for (const [side, end] of [["from", "start"], ["to", "stop"]]) {
            const edges = graph.edges.filter((edge) => edge[side] === node);
            const other = (edge) => (side === "from" ? edge.items[0] : edge.items.at(-1)).y;
            edges.sort((a, b) => other(a) - other(b));
            const step = Math.min(11, (node.height - 10) / Math.max(1, edges.length));
            edges.forEach((edge, i) => {
                edge[end] = node.y + (i - (edges.length - 1) / 2) * step;
            });
        }
    }
}

/**
 * Lays a graph out. Nodes have width and height, edges a label with width and height; all get x and y, the
 * middle of their box, and edges their points. Gives the size of the picture.
 */
export function layOut(graph) {
    const columns = makeColumns(graph);
    orderColumns(columns);
    const size = placeColumns(columns);
    setPorts(graph);
    for (const edge of graph.edges) {
        edge.points = [{ x: edge.from.x + edge.from.width / 2, y: edge.start }];
        for (const item of edge.items) {
            edge.points.push({ x: item.x - item.width / 2, y: item.y }, { x: item.x + item.width / 2, y: item.y });
        }
        edge.points.push({ x: edge.to.x - edge.to.width / 2, y: edge.stop });
    }
    return size;
}
