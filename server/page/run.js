// The page on the run: its data, how training went, how well it answers a split, its settings.
import {el, address, announce, count, fixed, formula, symbol, scroller, COMPONENTS} from "./dom.js";
import {get, poll} from "./api.js";
import {load, setTitle} from "./status.js";
import {lineChart, shareBar} from "./chart.js";

const ROWS = 15;
const POLL_MS = 700;
const BASELINES = [
    ["baseline_frequency", "Baseline: frequency"],
    ["baseline_vote", "Baseline: vote"],
    ["baseline_pagerank", "Baseline: PageRank"],
];

function factList(pairs) {
    return el("dl", { class: "tiles-facts" },
        pairs.filter(([, value]) => value !== null && value !== undefined).map(([name,
            value]) => el("div", null, el("dt", null, name), el("dd", { class: "number" }, value))));
}

function overview(run) {
    const { data } = run;
    const components = COMPONENTS.filter(({ key }) => run.components.includes(key));
    return el("section", null, el("h1", null, run.name),
        el("p", { class: "lead" }, `Trained on ${data.name}. The score is `, formula(components, run.weights), "."),
        factList([
            ["Entities", count(data.entities)],
            ["Relations", count(data.relations)],
            ["Training triples", count(data.train)],
            ["Validation triples", count(data.valid)],
            ["Test triples", count(data.test)],
            ["Entity labels",
                Number.isFinite(data.labels) ? count(data.labels)
                    : data.labels            ? "yes"
                                             : "none"],
            ["Model", run.model === "none" ? "no embeddings" : run.model],
            ["Dimensions", run.model === "none" ? null : count(run.dim)],
            ["References", run.components.includes("vertical") ? count(run.references) : null],
            ["Steps", count(run.step)],
            ["Validation MRR", run.valid_mrr === null ? null : fixed(run.valid_mrr, 4)],
            ["Device", run.device === "auto" ? null : run.device],
        ]));
}

/** A loss of 0 or null belongs to a component that was not trained at that step. */
function series(history, key, name, className) {
    const points = history.filter((point) => Number.isFinite(point[key]) && point[key] !== 0)
                       .map((point) => [point.step, point[key]]);
    return points.length > 0 ? [{ name, className, points }] : [];
}

function curves(run) {
    const history = run.history ?? [];
    const losses = COMPONENTS.flatMap(({ key }) => series(history, `loss_${key}`, key, key));
    const mrr = series(history, "valid_mrr", "validation MRR", "score");
    if (losses.length + mrr.length === 0)
        return el("section", null, el("h2", null, "Training"),
            el("p", { class: "quiet" }, "The run has no history: it wrote no metrics while training."));
    if (new Set(history.map((point) => point.step)).size === 1) {
        return el("section", null, el("h2", null, "Training"),
            el("p", null, `Metrics were written once, at step ${count(history[0].step)}: `,
                [
                    ...losses.map((line) => `${line.name} loss ${fixed(line.points[0][1], 4)}`),
                    ...mrr.map((line) => `${line.name} ${fixed(line.points[0][1], 4)}`)
                ].join(", "),
                "."));
    }
    return el("section", null, el("h2", null, "Training"),
        el("div", { class: "figures" },
            losses.length > 0 ? lineChart(
                { series: losses, name: "Loss of each component", xLabel: "step", yLabel: "loss", digits: 4 })
                              : null,
            mrr.length > 0 ? lineChart(
                { series: mrr, name: "MRR on the validation split", xLabel: "step", yLabel: "MRR", digits: 4 })
                           : null));
}

function metricsRow(name, metrics, className) {
    return el("tr", null,
        el("th", { scope: "row" }, className ? el("span", { class: `swatch ${className}` }) : null, name),
        el("td", { class: "bar-cell" }, shareBar(metrics.mrr, className ?? "quiet-bar")),
        el("td", { class: "number" }, fixed(metrics.mrr, 3)),
        ...["hits@1", "hits@3", "hits@10"].map((key) => el("td", { class: "number" }, fixed(metrics[key], 3))),
        el("td", { class: "number" }, fixed(metrics.mr, 1)));
}

function metricsTable(result) {
    const parts = COMPONENTS.filter(({ key }) => result[key]);
    const several = parts.length > 1;
    const rows = [metricsRow([symbol(), several ? ", all components" : ""], result.both, "score")];
    if (several) {
        for (const { key, letter } of parts)
            rows.push(metricsRow([`${key} alone, `, symbol(letter)], result[key], key));
    }
    for (const [key, name] of BASELINES) {
        if (result[key]) rows.push(metricsRow(name, result[key], null));
    }
    return scroller("Metrics by component",
        el("table", { class: "plain-table" }, el("caption", { class: "hidden" }, "Metrics by component"),
            el("thead", null,
                el("tr", null, el("th", { scope: "col" }, "Ranked by"),
                    el("th", { scope: "col", colspan: "2", class: "number" }, "MRR"),
                    ["Hits@1", "Hits@3", "Hits@10", "Mean rank"].map(
                        (name) => el("th", { scope: "col", class: "number" }, name)))),
            el("tbody", null, rows)));
}

/** MRR of each group: a bar and the number, and that of each component alone. */
function breakdown(name, rows, group, show) {
    if (!rows || rows.length === 0) return null;
    const components = COMPONENTS.filter(({ key }) => rows.some((row) => Number.isFinite(row[key])));
    const several = components.length > 1;
    const line = (row) => el("tr", null, el("th", { scope: "row" }, el("bdi", null, show(row[group]))),
        el("td", { class: "number" }, count(row.queries)), el("td", { class: "bar-cell" }, shareBar(row.mrr, "score")),
        el("td", { class: "number" }, fixed(row.mrr, 3)),
        several ? components.map(({ key }) => el("td", { class: "number" }, fixed(row[key], 3))) : null,
        el("td", { class: "number" }, fixed(row["hits@10"], 3)));
    const body = el("tbody", null, rows.slice(0, ROWS).map(line));
    const rest = rows.slice(ROWS);
    const more = rest.length > 0 ? el("p", null,
                     el("button", {
                         type: "button",
                         onclick: (event) => {
                             body.append(...rest.map(line));
                             event.target.parentElement.remove();
                             announce(`${count(rows.length)} rows`);
                         },
                     },
                         `Show all ${count(rows.length)}`))
                                 : null;
    return el("section", { class: "breakdown" }, el("h3", null, name),
        scroller(name,
            el("table", { class: "plain-table" }, el("caption", { class: "hidden" }, name),
                el("thead", null,
                    el("tr", null, el("th", { scope: "col" }, group),
                        el("th", { scope: "col", class: "number" }, "Queries"),
                        el("th", { scope: "col", colspan: "2", class: "number" }, "MRR"),
                        several ? components.map(({ key }) => el("th", { scope: "col", class: "number" },
                                                     el("span", { class: `swatch ${key}` }), key))
                                : null,
                        el("th", { scope: "col", class: "number" }, "Hits@10"))),
                body)),
        more);
}

function wait(ms, signal) {
    return new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, ms);
        signal.addEventListener("abort", () => {
            clearTimeout(timer);
            reject(signal.reason);
        }, { once: true });
    });
}

/** Asks until the evaluation is done; shows how far it is. */
async function evaluationResult(split, place, signal) {
    const bar = el("progress", { max: 1, "aria-label": "Progress of the evaluation" });
    const text = el("span", { class: "number" });
    for (;;) {
        const { done, body } = await poll("/api/evaluation", { split }, { signal });
        if (done) return body;
        bar.max = Math.max(1, body.total);
        bar.value = body.done;
        const { done: ranked, total } = body;
        text.textContent = total > 0 ? `${count(ranked)} of ${count(total)} queries ranked` : "Starting…";
        if (!bar.isConnected) place.replaceChildren(el("p", { class: "progress" }, bar, text));
        await wait(POLL_MS, signal);
    }
}

async function evaluation(split, place, relations, signal) {
    const result = await evaluationResult(split, place, signal);
    const names = new Map(relations.map((relation) => [relation.name, relation.label || relation.name]));
    const byQueries = (rows) => [...(rows ?? [])].sort((a, b) => b.queries - a.queries);
    const [low, high] = result.mrr_interval ?? [null, null];
    announce(`MRR ${fixed(result.both.mrr, 3)} on ${count(result.queries)} queries.`);
    return [
        el("p", null, "MRR ", el("strong", { class: "number" }, fixed(result.both.mrr, 3)),
            low === null ? "" : ` (95%: ${fixed(low, 3)} to ${fixed(high, 3)})`,
            ` over ${count(result.queries)} queries, two for each triple. `,
            "Ranks are filtered: other known answers do not count."),
        metricsTable(result),
        el("div", { class: "breakdowns" },
            breakdown("By distance", result.by_distance, "distance",
                (value) => (value === null || value < 0 ? "not connected" : String(value))),
            breakdown("By mapping", result.by_mapping, "mapping", (value) => value),
            breakdown("By side", result.by_side, "side", (value) => value),
            breakdown("By relation", byQueries(result.by_relation), "relation", (value) => names.get(value) ?? value)),
    ];
}

function settingsTable(settings) {
    if (!settings || settings.length === 0) return null;
    const changed = (setting) => String(setting.value) !== String(setting.default);
    const body = el("tbody");
    const box = el("input", { type: "checkbox", id: "all-settings" });
    const draw = () => {
        const shown = settings.filter((setting) => box.checked || changed(setting));
        body.replaceChildren(
            ...shown.map((setting) => el("tr", { class: changed(setting) ? "changed" : "" },
                             el("th", { scope: "row" }, el("code", null, setting.name)),
                             el("td", null, el("code", null, String(setting.value))),
                             el("td", { class: "quiet" }, el("code", null, String(setting.default ?? ""))),
                             el("td", { class: "help" }, setting.help))));
    };
    box.addEventListener("change", draw);
    draw();
    return el("section", null, el("h2", null, "Settings"),
        el("p", { class: "check" }, box, el("label", { "for": "all-settings" }, "Also those that have their default")),
        scroller("Settings",
            el("table", { class: "plain-table settings" }, el("caption", { class: "hidden" }, "Settings"),
                el("thead", null, el("tr", null, ["Setting", "Value", "Default",
                    "Meaning"].map((name) => el("th", { scope: "col" }, name)))),
                body)));
}

export function runView(container, {signal}) {
    const top = el("div");
    const result = el("div", { class: "evaluation" });
    const tests = [["test", "test"], ["valid", "validation"]].map(
        ([split, name]) => ({ split, link: el("a", { href: address("/run", { split }) }, name) }));
    const bottom = el("div");
    container.replaceChildren(el("div", { class: "page" }, top,
        el("section", null,
            el("div", { class: "section-head" }, el("h2", null, "How well it answers"),
                el("p", { class: "segments links", role: "group", "aria-label": "Split" },
                    tests.map(({ link }) => link))),
            result),
        bottom));
    setTitle("The run");
    void load(top, "Reading the run…", async (inner) => {
        const run = await get("/api/run", {}, { signal: inner });
        bottom.replaceChildren(...[settingsTable(run.settings)].filter(Boolean));
        return [overview(run), curves(run)];
    }, signal);
    let shown = null;
    return {
        update(path, parameters) {
            const split = parameters.get("split") === "valid" ? "valid" : "test";
            for (const test of tests) {
                if (test.split === split)
                    test.link.setAttribute("aria-current", "true");
                else
                    test.link.removeAttribute("aria-current");
            }
            if (split === shown) return;
            shown = split;
            void load(result, "Ranking the queries of the split…", async (inner) => {
                const { relations } = await get("/api/relations", {}, { signal: inner });
                return evaluation(split, result, relations, inner);
            }, signal);
        },
    };
}
