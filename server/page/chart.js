// Line charts in SVG, with axes, drawn for the width they have. The readout below a chart follows the
// pointer; the same numbers are in a table for everyone else.
import {el, svg, count, fixed} from "./dom.js";

const HEIGHT = 240;
const EDGE = {
    top: 12,
    right: 14,
    bottom: 40,
    left: 52
};

/** Round numbers that divide a range into about so many parts. */
export function ticks(low, high, wanted) {
    const rough = (high - low) / Math.max(1, wanted);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
    const list = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) list.push(i * step);
    return { list, step };
}

/** Digits behind the point that tell multiples of a step apart. */
const stepDigits = (step) => Math.max(0, -Math.floor(Math.log10(step) + 1e-9));

function ranges(series) {
    const points = series.flatMap((line) => line.points);
    const xs = points.map(([x]) => x);
    const ys = points.map(([, y]) => y);
    const x = { low: Math.min(0, ...xs), high: Math.max(1, ...xs) };
    const high = Math.max(...ys);
    const low = Math.min(0, ...ys);
    const y = { low, high: high > low ? low + (high - low) * 1.06 : low + 1 };
    return { x, y };
}

function axes(scale, range, width, xLabel, yLabel) {
    const nodes = [];
    const bottom = HEIGHT - EDGE.bottom;
    const vertical = ticks(range.y.low, range.y.high, 5);
    for (const value of vertical.list) {
        nodes.push(
            svg("line",
                { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: scale.y(value), y2: scale.y(value) }),
            svg("text", {
                class: "tick",
                x: EDGE.left - 8,
                y: scale.y(value),
                "text-anchor": "end",
                "dominant-baseline": "central"
            },
                fixed(value, stepDigits(vertical.step))));
    }
    const horizontal = ticks(range.x.low, range.x.high, Math.max(3, Math.floor(width / 110)));
    for (const value of horizontal.list) {
        nodes.push(svg("line", { class: "axis", x1: scale.x(value), x2: scale.x(value), y1: bottom, y2: bottom + 4 }),
            svg("text", { class: "tick", x: scale.x(value), y: bottom + 16, "text-anchor": "middle" },
                fixed(value, stepDigits(horizontal.step))));
    }
    nodes.push(svg("line", { class: "axis", x1: EDGE.left, x2: width - EDGE.right, y1: bottom, y2: bottom }),
        svg("text",
            { class: "axis-name", x: (EDGE.left + width - EDGE.right) / 2, y: HEIGHT - 4, "text-anchor": "middle" },
            xLabel),
        svg("text", {
            class: "axis-name",
            x: -(EDGE.top + bottom) / 2,
            y: 12,
            "text-anchor": "middle",
            transform: "rotate(-90)"
        },
            yLabel));
    return nodes;
}

function draw(width, { series, xLabel, yLabel, name }) {
    const range = ranges(series);
    const scale = {
        x: (value) =>
            Math.round(
                (EDGE.left + ((value - range.x.low) / (range.x.high - range.x.low)) * (width - EDGE.left - EDGE.right))
                * 10)
            / 10,
        y: (value) =>
            Math.round((HEIGHT - EDGE.bottom
                           - ((value - range.y.low) / (range.y.high - range.y.low)) * (HEIGHT - EDGE.top - EDGE.bottom))
                * 10)
            / 10,
    };
    const picture = svg("svg", {
        class: "chart",
        role: "img",
        width,
        height: HEIGHT,
        viewBox: `0 0 ${width} ${HEIGHT}`,
        "aria-label": `${name}; the numbers are in the table below`
    },
        axes(scale, range, width, xLabel, yLabel));
    for (const line of series) {
        const path = line.points.map(([x, y], i) => `${i === 0 ? "M" : "L"} ${scale.x(x)} ${scale.y(y)}`).join(" ");
        picture.append(svg("path", { class: `curve ${line.className}`, d: path }));
        if (line.points.length <= 40) {
            for (const [x, y] of line.points)
                picture.append(svg("circle", { class: `dot ${line.className}`, cx: scale.x(x), cy: scale.y(y), r: 3 }));
        }
    }
    return { picture, scale };
}

/** The points of all series at the step nearest to x. */
function nearest(series, x) {
    const steps = series.flatMap((line) => line.points.map(([step]) => step));
    const step = steps.reduce((best, value) => (Math.abs(value - x) < Math.abs(best - x) ? value : best));
    return {
        step,
        values: series.flatMap((line) => line.points.filter(([at]) => at === step).map(([, y]) => ({ line, y })))
    };
}

function numbersTable(series, digits) {
    const steps = [...new Set(series.flatMap((line) => line.points.map(([step]) => step)))].sort((a, b) => a - b);
    const value = (line, step) => line.points.find(([at]) => at === step)?.[1];
    return el("details", null, el("summary", null, "The numbers"),
        el("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "The numbers" },
            el("table", { class: "plain-table" },
                el("thead", null,
                    el("tr", null, el("th", { scope: "col", class: "number" }, "Step"),
                        series.map((line) => el("th", { scope: "col", class: "number" }, line.name)))),
                el("tbody", null,
                    steps.map(
                        (step) => el("tr", null, el("th", { scope: "row", class: "number" }, count(step)),
                            series.map((line) => el("td", { class: "number" }, fixed(value(line, step), digits)))))))));
}

/**
 * A figure with a line chart.
 *   series: [{name, className, points: [[x, y]]}], none empty
 */
export function lineChart(options) {
    const { series, name, digits } = options;
    const frame = el("div", { class: "chart-frame" });
    const last = nearest(series, Number.MAX_SAFE_INTEGER);
    const words = ({ step, values }) =>
        `Step ${count(step)}: ${values.map(({ line, y }) => `${line.name} ${fixed(y, digits)}`).join(", ")}`;
    const readout = el("p", { class: "readout quiet number" }, words(last));
    let width = 0;
    const observer = new ResizeObserver(() => {
        const now = Math.floor(frame.clientWidth);
        if (now === width || now < 120) return;
        width = now;
        const { picture, scale } = draw(width, options);
        const cursor = svg("line", { class: "cursor", y1: EDGE.top, y2: HEIGHT - EDGE.bottom, visibility: "hidden" });
        picture.append(cursor);
        picture.addEventListener("pointermove", (event) => {
            const share =
                (event.clientX - picture.getBoundingClientRect().left - scale.x(0)) / (scale.x(1) - scale.x(0));
            const found = nearest(series, share);
            cursor.setAttribute("x1", scale.x(found.step));
            cursor.setAttribute("x2", scale.x(found.step));
            cursor.setAttribute("visibility", "visible");
            readout.textContent = words(found);
        });
        picture.addEventListener("pointerleave", () => {
            cursor.setAttribute("visibility", "hidden");
            readout.textContent = words(last);
        });
        frame.replaceChildren(picture);
    });
    observer.observe(frame);
    return el("figure", null, el("figcaption", null, name),
        el("p", { class: "legend" },
            series.map(
                (line) => el("span", { class: "term" }, el("span", { class: `swatch ${line.className}` }), line.name))),
        frame, readout, numbersTable(series, digits));
}

/** A bar from 0 to 1. */
export function shareBar(value, className) {
    const width = 120;
    return svg("svg", {
        class: "bars",
        viewBox: `0 0 ${width} 12`,
        preserveAspectRatio: "none",
        "aria-hidden": "true",
        focusable: "false"
    },
        svg("rect", { class: "bar-ground", x: 0, y: 0, width, height: 12 }), svg("rect", {
            class: `bar ${className}`,
            x: 0,
            y: 0,
            width: (Math.min(1, Math.max(0, value)) * width).toFixed(1),
            height: 12
        }));
}
