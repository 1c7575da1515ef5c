// The ranked answers of a query, with a bar for each component of the score.
import {
    el,
    svg,
    address,
    count,
    fixed,
    digitsFor,
    title,
    entityText,
    relationText,
    queryWords,
    componentsOf,
    weighted,
    formula,
    COMPONENTS,
} from "./dom.js";

const STEPS = [10, 20, 50, 100, 200, 500, 1000];

/** The query as a heading: entity, relation, and ? for what is asked. */
export function queryHeading(query) {
    const asked = el("span", { class: "asked" }, "?");
    return el("h1", { class: "query" }, query.head ? entityText(query.head, 60) : asked, " ",
        el("span", { class: "edge" }, relationText(query.relation)), " ",
        query.tail ? entityText(query.tail, 60) : asked);
}

/** f as a formula of its components, which is the legend of the bars as well. */
export function legend(components, weights) {
    return el("p", { class: "legend" },
        formula(components, weights, (key) => el("span", { class: `swatch ${key}` }),
            (key) => el("span", { class: "quiet" }, ` ${key}`)));
}

/** The range that all bars share: from the largest negative sum to the largest positive one. */
export function barRange(answers, components, weights) {
    let low = 0;
    let high = 0;
    for (const answer of answers) {
        let negative = 0;
        let positive = 0;
        for (const { key } of components) {
            const value = weighted(answer, key, weights) ?? 0;
            if (value < 0)
                negative += value;
            else
                positive += value;
        }
        low = Math.min(low, negative);
        high = Math.max(high, positive);
    }
    return high > low ? { low, high } : { low: 0, high: 1 };
}

/** Stacked bars: positive parts to the right of zero, negative ones to the left, a line at their sum. */
export function bars(answer, components, weights, range, height = 14) {
    const width = 240;
    const x = (value) => ((value - range.low) / (range.high - range.low)) * width;
    const picture = svg("svg", {
        class: "bars",
        viewBox: `0 0 ${width} ${height}`,
        preserveAspectRatio: "none",
        "aria-hidden": "true",
        focusable: "false"
    });
    picture.append(svg("rect", { class: "bar-ground", x: 0, y: 0, width, height }));
    let negative = 0;
    let positive = 0;
    for (const { key } of components) {
        const value = weighted(answer, key, weights) ?? 0;
        if (value === 0) continue;
        const from = value < 0 ? negative + value : positive;
        const to = value < 0 ? negative : positive + value;
        if (value < 0)
            negative = from;
        else
            positive = to;
        picture.append(svg("rect", {
            class: `bar ${key}`,
            x: x(from).toFixed(2),
            y: 1,
            width: Math.max(0.6, x(to) - x(from)).toFixed(2),
            height: height - 2
        }));
    }
    if (range.low < 0) {
        picture.append(svg("rect", { class: "bar-zero", x: (x(0) - 0.5).toFixed(2), y: 0, width: 1, height }));
        if (negative < 0)
            picture.append(
                svg("rect", { class: "bar-sum", x: (x(positive + negative) - 1).toFixed(2), y: 0, width: 2, height }));
    }
    return picture;
}

/** The components as words: "horizontal 0.014, vertical 0.086". */
export function componentWords(answer, components, weights, digits) {
    return components.map(({ key }) => `${key} ${fixed(weighted(answer, key, weights), digits)}`).join(", ");
}

function answerLine(answer, setting) {
    const { components, weights, range, digits, link } = setting;
    const words = componentWords(answer, components, weights, digits);
    const below = answer.entity.description || (answer.entity.label ? answer.entity.name : null);
    return el("li", null,
        el("a", { class: "answer", href: link(answer.entity), "data-answer": answer.entity.name, title: words },
            el("span", { class: "rank number" }, count(answer.rank)),
            el("span", { class: "who" },
                el("span", { class: "who-name" }, entityText(answer.entity, 90),
                    answer.known ? el("span", { class: "badge" }, "known") : null),
                below ? el("span", { class: "gloss" }, el("bdi", null, below)) : null),
            bars(answer, components, weights, range),
            el("span", { class: "score number" }, el("span", { class: "hidden" }, "score "),
                fixed(answer.score, digits)),
            el("span", { class: "hidden" }, components.length > 1 ? `(${words})` : "")));
}

/** Marks the answer that is explained. */
export function markAnswer(container, name) {
    for (const link of container.querySelectorAll("a.answer")) {
        if (link.dataset.answer === name)
            link.setAttribute("aria-current", "true");
        else
            link.removeAttribute("aria-current");
    }
}

function hideKnown(state, now) {
    const box = el("input", { type: "checkbox", id: "hide-known" });
    box.checked = state.known === "hide";
    box.addEventListener("change", () => {
        location.hash = address("/ask", {...now(), known: box.checked ? "hide" : null });
    });
    return el("span", { class: "check" }, box, el("label", { "for": "hide-known" }, "Hide known answers"));
}

/** The panel of answers. `now` gives the parameters of the address at that moment, as an object. */
export function answersPanel(result, state, now) {
    const answers = result.predictions;
    const components = componentsOf(answers[0] ?? {});
    const shownComponents = components.length > 0 ? components : COMPONENTS.filter(({ key }) => result.weights?.[key]);
    const weights = result.weights;
    const digits = digitsFor(answers.map((answer) => answer.score));
    const link = (entity) => address("/ask", {...now(), answer: entity.name, without: null, paths: null });
    const setting = { components, weights, range: barRange(answers, components, weights), digits, link };
    const next = STEPS.find((step) => step > state.k);
    const nodes = [
        queryHeading(result.query),
        el("div", { class: "answers-head" },
            el("p", { class: "quiet" },
                `${count(result.candidates)} candidates. Pick an answer to see what it rests on.`),
            hideKnown(state, now)),
        shownComponents.length > 0 ? legend(shownComponents, weights) : null,
    ];
    if (answers.length === 0) {
        nodes.push(el("p", { class: "notice" },
            state.known === "hide" ? "No answer is left: every candidate is a known answer of this query."
                                   : `The run has no answer to ${queryWords(result.query)}.`));
        return nodes;
    }
    nodes.push(el("ol", { class: "answers", "aria-label": "Ranked answers" },
        answers.map((answer) => answerLine(answer, setting))));
    if (next && answers.length >= state.k && answers.length < result.candidates) {
        nodes.push(el("p", null,
            el("button", {
                type: "button",
                class: "more",
                onclick: () => {
                    location.hash = address("/ask", {...now(), k: next });
                }
            },
                `Show the first ${count(next)}`)));
    }
    return nodes;
}

export const answersTitle = (result) => queryWords(result.query);
export const announceAnswers = (result) => (result.predictions.length > 0
        ? `${count(result.predictions.length)} answers, the first is ${title(result.predictions[0].entity)}.`
        : "No answers.");
