// A map of the entity embeddings: their two first principal components, drawn on a canvas. Drag, wheel,
// pinch and keys move it; the search finds a point, and what is near it is listed as text.
import {el, address, announce, count, entityAddress, entityText, fixed, plural, title} from "./dom.js";
import {get} from "./api.js";
import {load, setTitle} from "./status.js";
import {combobox, marked} from "./combobox.js";

const LIMIT = 2000;
const NEAR = 8;
const ZOOM = {
    least: 0.5,
    most: 400,
    step: 1.4
};
const LABELS = 60;

/** Points in a view: {x, y, scale} of the middle, in the map's own units, and the size in pixels. */
function camera(points) {
    const xs = points.map((point) => point.x);
    const ys = points.map((point) => point.y);
    const box = { left: Math.min(...xs), right: Math.max(...xs), low: Math.min(...ys), high: Math.max(...ys) };
    const span = Math.max(box.right - box.left, 1e-9);
    const rise = Math.max(box.high - box.low, 1e-9);
    const view = { width: 1, height: 1, x: 0, y: 0, zoom: 1 };
    const unit = () => Math.min((view.width - 60) / span, (view.height - 60) / rise) * view.zoom;
    return {
        view,
        reset() { Object.assign(view, { x: (box.left + box.right) / 2, y: (box.low + box.high) / 2, zoom: 1 }); },
        toScreen: (point) =>
            ({ x: view.width / 2 + (point.x - view.x) * unit(), y: view.height / 2 - (point.y - view.y) * unit() }),
        /** Moves by pixels. */
        pan(dx, dy) {
            view.x = Math.min(box.right, Math.max(box.left, view.x - dx / unit()));
            view.y = Math.min(box.high, Math.max(box.low, view.y + dy / unit()));
        },
        /** Zooms, and keeps the point at pixel (x, y) where it is. */
        zoomAt(factor, x, y) {
            const before = unit();
            view.zoom = Math.min(ZOOM.most, Math.max(ZOOM.least, view.zoom * factor));
            const after = unit();
            view.x += (x - view.width / 2) * (1 / before - 1 / after);
            view.y -= (y - view.height / 2) * (1 / before - 1 / after);
        },
        centre(point) {
            view.x = point.x;
            view.y = point.y;
        },
    };
}

function colours(canvas) {
    const style = getComputedStyle(canvas);
    const read = (name) => style.getPropertyValue(name).trim();
    return {
        point: read("--map-point"),
        ink: read("--ink"),
        quiet: read("--quiet"),
        mark: read("--mark-point"),
        ground: read("--surface"),
        font: getComputedStyle(document.body).fontFamily
    };
}

const radius = (point) => 1.8 + 1.1 * Math.log10(1 + point.degree);

/**
 * Names of points, those of the largest degree first, none over another; left of a point where they would leave the
 * edge.
 */
function drawLabels(context, placed, special, colour, edge) {
    const taken = [];
    const free = (box) => taken.every((other) => box.right < other.left || box.left > other.right
            || box.bottom < other.top || box.top > other.bottom);
    const put = (point, at, bold) => {
        context.font = `${bold ? 600 : 400} 12px ${colour.font}`;
        const whole = title(point);
        const text = whole.length > 32 ? `${whole.slice(0, 31)}…` : whole;
        const width = context.measureText(text).width;
        const gap = radius(point) + (bold ? 7 : 4);
        const left = at.x + gap + width < edge ? at.x + gap : at.x - gap - width;
        const box = { left: left - 2, right: left + width + 2, top: at.y - 9, bottom: at.y + 9 };
        if (!bold && !free(box)) return false;
        taken.push(box);
        context.lineWidth = 3;
        context.strokeStyle = colour.ground;
        context.fillStyle = bold ? colour.ink : colour.quiet;
        context.strokeText(text, left, at.y);
        context.fillText(text, left, at.y);
        return true;
    };
    context.textBaseline = "middle";
    for (const { point, at } of special) put(point, at, true);
    let shown = 0;
    for (const { point, at } of placed) {
        if (shown >= LABELS) break;
        if (put(point, at, false)) shown += 1;
    }
}

function draw(canvas, points, cam, { hover, picked }) {
    const ratio = window.devicePixelRatio || 1;
    const { view } = cam;
    const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, view.width, view.height);
    const colour = colours(canvas);
    const placed =
        points.map((point) => ({ point, at: cam.toScreen(point) }))
            .filter(({ at }) => at.x > -20 && at.x < view.width + 20 && at.y > -20 && at.y < view.height + 20);
    context.fillStyle = colour.point;
    context.globalAlpha = 0.7;
    for (const { point, at } of placed) {
        context.beginPath();
        context.arc(at.x, at.y, radius(point), 0, 7);
        context.fill();
    }
    context.globalAlpha = 1;
    const special = [picked, hover]
                        .filter((point, i, all) => point && all.indexOf(point) === i)
                        .map((point) => ({ point, at: cam.toScreen(point) }));
    drawLabels(context, placed.filter(({ point }) => point !== picked && point !== hover), special, colour, view.width);
    for (const { point, at } of special) {
        context.beginPath();
        context.arc(at.x, at.y, radius(point) + 2, 0, 7);
        context.fillStyle = colour.mark;
        context.fill();
        context.lineWidth = 2;
        context.strokeStyle = colour.ink;
        context.stroke();
    }
}

/** The points nearest to a point, on the map. */
function nearest(points, point) {
    const distance = (other) => (other.x - point.x) ** 2 + (other.y - point.y) ** 2;
    return points.filter((other) => other !== point).sort((a, b) => distance(a) - distance(b)).slice(0, NEAR);
}

/** Pointers and keys that move the camera. */
function listen(canvas, cam, { redraw, hoverAt, pickAt }) {
    const pointers = new Map();
    let moved = 0;
    const place = (event) => {
        const box = canvas.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const spread = () => {
        const [a, b] = [...pointers.values()];
        return { distance: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
    };
    canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        pointers.set(event.pointerId, place(event));
        if (pointers.size === 1) moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
        const now = place(event);
        if (!pointers.has(event.pointerId)) {
            hoverAt(now);
            return;
        }
        const before = pointers.size === 2 ? spread() : null;
        const last = pointers.get(event.pointerId);
        pointers.set(event.pointerId, now);
        if (before) {
            const after = spread();
            cam.zoomAt(after.distance / Math.max(1, before.distance), after.x, after.y);
            cam.pan(after.x - before.x, after.y - before.y);
        } else
            cam.pan(now.x - last.x, now.y - last.y);
        moved += Math.hypot(now.x - last.x, now.y - last.y);
        redraw();
    });
    canvas.addEventListener("pointerup", (event) => {
        pointers.delete(event.pointerId);
        if (moved < 5 && pointers.size === 0) pickAt(place(event));
    });
    canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => hoverAt(null));
    canvas.addEventListener("wheel", (event) => {
        event.preventDefault();
        const now = place(event);
        cam.zoomAt(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0018)), now.x, now.y);
        redraw();
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
        const middle = [cam.view.width / 2, cam.view.height / 2];
        const keys = {
            ArrowLeft: () => cam.pan(60, 0),
            ArrowRight: () => cam.pan(-60, 0),
            ArrowUp: () => cam.pan(0, 60),
            ArrowDown: () => cam.pan(0, -60),
            "+": () => cam.zoomAt(ZOOM.step, ...middle),
            "=": () => cam.zoomAt(ZOOM.step, ...middle),
            "-": () => cam.zoomAt(1 / ZOOM.step, ...middle),
            0: () => cam.reset(),
        };
        if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
        event.preventDefault();
        keys[event.key]();
        redraw();
    });
}

/** The canvas with its buttons. Gives {element, show(point)}. */
function mapFrame(points, signal, picked) {
    const shown = plural(points.length, "entity", "entities");
    const name = `Map of ${shown}. Arrow keys move it, plus and minus zoom, zero shows all.`;
    const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": name });
    const tip = el("div", { class: "map-tip", hidden: true, "aria-hidden": "true" });
    const cam = camera(points);
    const state = { hover: null, picked: null };
    let frame = 0;
    const redraw = () => {
        cancelAnimationFrame(frame);
        frame = requestAnimationFrame(() => draw(canvas, points, cam, state));
    };
    const closest = (at) => {
        let best = null;
        let least = 14 ** 2;
        for (const point of points) {
            const screen = cam.toScreen(point);
            const distance = (screen.x - at.x) ** 2 + (screen.y - at.y) ** 2;
            if (distance < least) [best, least] = [point, distance];
        }
        return best;
    };
    const hoverAt = (at) => {
        const point = at ? closest(at) : null;
        canvas.classList.toggle("over", Boolean(point));
        tip.hidden = !point;
        if (point) {
            tip.textContent =
                `${title(point)}${point.label ? ` · ${point.name}` : ""} · ${plural(point.degree, "triple")}`;
            const screen = cam.toScreen(point);
            const left = Math.min(screen.x + 12, cam.view.width - Math.min(320, tip.textContent.length * 7 + 24));
            tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, screen.y - 38)}px)`;
        }
        if (point !== state.hover) {
            state.hover = point;
            redraw();
        }
    };
    const button = (text, name, act) => el("button", {
        type: "button",
        "aria-label": name,
        onclick: () => {
            act();
            redraw();
        }
    },
        text);
    const middle = () => [cam.view.width / 2, cam.view.height / 2];
    const element = el("div", { class: "map-frame" }, canvas, tip,
        el("div", { class: "map-buttons" }, button("+", "Zoom in", () => cam.zoomAt(ZOOM.step, ...middle())),
            button("−", "Zoom out", () => cam.zoomAt(1 / ZOOM.step, ...middle())),
            button("All", "All points", () => cam.reset())));
    listen(canvas, cam, {
        redraw,
        hoverAt,
        pickAt: (at) => {
            const point = closest(at);
            if (point) picked(point);
        }
    });
    cam.reset();
    const observer = new ResizeObserver(() => {
        Object.assign(cam.view, { width: Math.max(80, canvas.clientWidth), height: Math.max(80, canvas.clientHeight) });
        redraw();
    });
    observer.observe(canvas);
    document.addEventListener("themechange", redraw, { signal });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw, { signal });
    signal.addEventListener("abort", () => observer.disconnect(), { once: true });
    return {
        element,
        /** Marks a point and brings it to the middle, unless it is in sight. */
        show(point) {
            state.picked = point;
            if (point && cam.view.width > 1) {
                const at = cam.toScreen(point);
                const edge = 40;
                const inSight =
                    at.x > edge && at.x < cam.view.width - edge && at.y > edge && at.y < cam.view.height - edge;
                if (!inSight) cam.centre(point);
            }
            redraw();
        },
    };
}

function pickedPanel(points, point) {
    if (!point)
        return [el("p", { class: "quiet" },
            "Search for an entity, or pick a point: what is near it on the map is listed here.")];
    return [
        el("h2", null, entityText(point, 60)),
        el("p", { class: "entity-meta" }, point.label ? el("code", null, point.name) : null,
            el("span", null, plural(point.degree, "known triple"))),
        el("p", null, el("a", { href: entityAddress(point) }, "Facts and queries")),
        el("h3", null, "Nearest on the map"),
        el("ol", { class: "near" },
            nearest(points, point)
                .map((other) => el(
                         "li", null, el("a", { href: address("/map", { name: other.name }) }, entityText(other, 48))))),
    ];
}

export function mapView(container, {signal}) {
    let search = "";
    const body = el("div", { class: "map-body" });
    const side = el("aside", { class: "map-side", "aria-label": "Picked entity" });
    const field = combobox({
        label: "Find on the map",
        placeholder: "Type a label or a name",
        suggest: async (text, inner) => {
            search = text;
            return (await get("/api/entities", { q: text, limit: 20 }, { signal: inner, seconds: 10 })).entities;
        },
        render: (entity) => [el("span", { class: "option-main" }, el("bdi", null, marked(title(entity), search)),
                                 entity.label ? el("code", null, marked(entity.name, search)) : null),
            el("span", { class: "number quiet" }, plural(entity.degree, "triple"))],
        text: title,
        pick: (entity) => {
            location.hash = address("/map", { name: entity.name });
        },
        failed: (error) => error.message,
    });
    container.replaceChildren(el("div", { class: "page map-page" },
        el("div", { class: "section-head" }, el("h1", null, "Map of the embeddings"), field.element), body));
    setTitle("Map");
    let map = null;
    let points = [];
    let wanted = null;

    /** Marks a point, and lists what is near; fetches it first where it is not among those of the largest degree. */
    async function mark(name, inner) {
        let point = points.find((other) => other.name === name) ?? null;
        if (name && !point) {
            const more = await get("/api/map", { limit: LIMIT, name }, { signal: inner });
            point = more.points.find((other) => other.name === name) ?? null;
            if (point) points.push(point);
        }
        map.show(point);
        field.setText(point ? title(point) : "");
        if (point) announce(`${title(point)} is marked on the map.`);
        return pickedPanel(points, point);
    }
    const markWanted = () => load(side, "Finding the point…", (inner) => mark(wanted, inner), signal);

    async function open(inner) {
        let answer;
        try {
            answer = await get("/api/map", { limit: LIMIT }, { signal: inner });
        } catch (error) {
            if (error.status !== 404) throw error;
            field.element.hidden = true;  // a run without embeddings has no map: nothing to find
            return el("p", { class: "notice" }, error.message);
        }
        points = answer.points.slice();
        map = mapFrame(points, signal, (point) => {
            location.hash = address("/map", { name: point.name });
        });
        const shares = answer.explained.map((share) => `${fixed(100 * share, 1)}%`).join(" and ");
        const which = points.length < answer.entities
            ? `the ${count(points.length)} entities of largest degree, of ${count(answer.entities)}`
            : `all ${count(points.length)} entities`;
        void markWanted();
        return [
            el("p", { class: "quiet" },
                `The two first principal components of ${which}. They hold ${shares} of the variance: `,
                "near points need not be near in all dimensions."),
            el("div", { class: "map-columns" }, map.element, side)
        ];
    }

    return {
        update(path, parameters) {
            wanted = parameters.get("name");
            if (map)
                void markWanted();
            else
                void load(body, "Computing the map…", open, signal);
        },
    };
}
