// The view that asks: an entity, a relation and a direction above; answers, why, and known facts below.
// Its state is the address alone. Regions are drawn again only where their part of the state has changed.
import {el, address, announce, count, title, entityText, plural} from "./dom.js";
import {get} from "./api.js";
import {load, setTitle} from "./status.js";
import {combobox, marked} from "./combobox.js";
import {entityCard, askList, entityFacts, factsPanel, relationAddress, relationPhrase} from "./facts.js";
import {answersPanel, answersTitle, announceAnswers, markAnswer} from "./answers.js";
import {whyView} from "./why.js";

const SUGGESTIONS = 20;

/** The address as a state: which entity, in which place, and what of its answers. */
function readState(path, parameters) {
    const side = parameters.has("head") ? "head" : "tail";
    const entity = path === "/entity" ? parameters.get("name") : parameters.get("head") ?? parameters.get("tail");
    const k = Number.parseInt(parameters.get("k") ?? "10", 10);
    return {
        entity: entity || null,
        direction: path === "/ask" && side === "tail" ? "in" : "out",
        relation: path === "/ask" ? parameters.get("relation") || null : null,
        k: Number.isFinite(k) ? Math.min(1000, Math.max(1, k)) : 10,
        known: parameters.get("known") === "hide" ? "hide" : "mark",
        answer: parameters.get("answer") || null,
        paths: parameters.get("paths") || null,
        without: parameters.getAll("without"),
    };
}

/** A state as the parameters of its address. */
function writeState(state) {
    const side = state.direction === "out" ? "head" : "tail";
    return {
        [side]: state.entity,
        relation: state.relation,
        k: state.k === 10 ? null : state.k,
        known: state.known === "hide" ? "hide" : null,
        answer: state.answer,
        paths: state.paths,
        without: state.without,
    };
}

function entityBox(pick) {
    let search = "";
    return combobox({
        label: "Entity",
        placeholder: "Type a label or a name",
        suggest: async (text, signal) => {
            search = text;
            return (await get("/api/entities", { q: text, limit: SUGGESTIONS }, { signal, seconds: 10 })).entities;
        },
        render: (entity) => [el("span", { class: "option-main" }, el("bdi", null, marked(title(entity), search)),
                                 entity.label ? el("code", null, marked(entity.name, search)) : null),
            el("span", { class: "number quiet" }, plural(entity.degree, "triple")),
            entity.description ? el("span", { class: "gloss" }, el("bdi", null, entity.description)) : null,
    ],
        text: title,
        pick,
        failed: (error) => error.message,
    });
}

function relationBox(context, pick) {
    return combobox({
        label: "Relation",
        placeholder: "Choose a relation",
        suggest: async (text, signal) => {
            const [{ relations }, own] =
                await Promise.all([get("/api/relations", {}, { signal }), entityFacts(context.entity, signal)]);
            return relationOptions(relations, own, text.toLowerCase());
        },
        group: (option) => option.group,
        render: (option) => [el("span", { class: "option-main" },
                                 relationPhrase(option.entity, option.relation, option.direction)),
            el("span", { class: "number quiet" },
                option.count > 0 ? `${count(option.count)} known` : plural(option.relation.triples, "triple")),
    ],
        text: (option) => title(option.relation),
        pick,
        failed: (error) => error.message,
        delay: 0,
    });
}

/** All relations in both directions: those that the entity has first, most known triples first. */
function relationOptions(relations, own, search) {
    const key = (relation, direction) => `${direction} ${relation.name}`;
    const counts = new Map(own.relations.map((item) => [key(item.relation, item.direction), item.count]));
    const fits =
        (relation) => [relation.name, relation.label ?? ""].some((text) => text.toLowerCase().includes(search));
    const all = relations.filter(fits).flatMap((relation) => ["out", "in"].map((direction) => {
        const known = counts.get(key(relation, direction)) ?? 0;
        return {
            entity: own.entity,
            relation,
            direction,
            count: known,
            group: known > 0 ? "It has these" : "It has none of these yet"
        };
    }));
    return all.sort((a, b) => b.count - a.count || b.relation.triples - a.relation.triples);
}

/** Radio buttons for the place that is asked for. */
function directionChoice(pick) {
    const radio = (value, text) => {
        const input = el("input",
            { type: "radio", name: "direction", id: `direction-${value}`, value, onchange: () => pick(value) });
        return {
            input,
            nodes: el("span", { class: "choice" }, input, el("label", { "for": `direction-${value}` }, text))
        };
    };
    const tail = radio("out", "tail");
    const head = radio("in", "head");
    return {
        element: el("fieldset", { class: "direction" }, el("legend", null, "Asks for the"),
            el("div", { class: "segments" }, tail.nodes, head.nodes)),
        set(direction, enabled) {
            tail.input.checked = direction === "out";
            head.input.checked = direction === "in";
            tail.input.disabled = !enabled;
            head.input.disabled = !enabled;
        },
    };
}

async function startPanel(signal) {
    const [run, { entities }] =
        await Promise.all([get("/api/run", {}, { signal }), get("/api/entities", { q: "", limit: 12 }, { signal })]);
    setTitle("");
    return el("div", { class: "start" }, el("h1", null, "What is missing from this graph?"),
        el("p", { class: "lead" }, plural(run.data.entities, "entity", "entities"), ", ",
            plural(run.data.relations, "relation"), ", ", plural(run.data.train, "known triple"),
            ". Type an entity above, choose a relation, and see the ranked answers, ",
            "what they rest on, and what they would be without it."),
        el("h2", null, "Entities with the most triples"),
        el("ul", { class: "tiles" },
            entities.map(
                (entity) => el("li", null,
                    el("a", { href: address("/entity", { name: entity.name }) },
                        el("span", { class: "tile-name" }, entityText(entity, 48)),
                        entity.description ? el("span", { class: "gloss" }, el("bdi", null, entity.description)) : null,
                        el("span", { class: "number quiet" }, plural(entity.degree, "triple")))))));
}

export function askView(container, {signal}) {
    let state = readState("/", new URLSearchParams());
    const keys = { left: null, facts: null, entity: null, relation: null };
    const context = { get entity() { return state.entity; } };

    const go = (changes) => {
        const next = {...state, answer: null, without: [], paths: null, ...changes };
        location.hash = next.relation ? address("/ask", writeState(next)) : address("/entity", { name: next.entity });
    };
    const entityField = entityBox((entity) => go({ entity: entity.name }));
    const relationField = relationBox(context, (option) => {
        location.hash = relationAddress(
            option.entity, option.relation, option.direction, { known: state.known === "hide" ? "hide" : null });
    });
    const direction = directionChoice((value) => go({ direction: value }));
    const left = el("div", { class: "left" });
    const why = el("div", { class: "why" });
    const facts = el("section", { class: "around" });
    const side = el("div", { class: "side" }, why, facts);
    const content = el("div", { class: "content" }, left, side);
    container.replaceChildren(el("section", { class: "query-bar", "aria-label": "Query" }, entityField.element,
                                  relationField.element, direction.element),
        content);
    const explanation = whyView(why, signal);

    async function entityPanel(inner) {
        const answer = await entityFacts(state.entity, inner);
        entityField.setText(title(answer.entity));
        setTitle(title(answer.entity));
        announce(`${title(answer.entity)}, ${plural(answer.total, "known fact")}.`);
        return [entityCard(answer.entity, "h1"), el("h2", null, "Ask"), askList(answer.entity, answer.relations)];
    }

    async function queryPanel(inner) {
        const asked = state;
        const result = await get("/api/predict", {
            [asked.direction === "out" ? "head" : "tail"]: asked.entity,
            relation: asked.relation,
            k: asked.k,
            known: asked.known,
        },
            { signal: inner, seconds: 60 });
        const nodes = answersPanel(result, asked, () => writeState(state));
        setTitle(answersTitle(result));
        entityField.setText(title(result.query.head ?? result.query.tail));
        relationField.setText(title(result.query.relation));
        announce(announceAnswers(result));
        return nodes;
    }

    function drawLeft() {
        const key = JSON.stringify([state.entity, state.relation, state.direction, state.k, state.known]);
        if (key === keys.left) {
            markAnswer(left, state.answer);
            return;
        }
        keys.left = key;
        // By name until the labels arrive, or an error does.
        const words = state.relation ? [state.entity, state.relation, "?"] : [state.entity];
        setTitle(state.entity ? (state.direction === "out" ? words : words.reverse()).join(" ") : "");
        if (!state.entity)
            void load(left, "Reading the run…", startPanel, signal);
        else if (!state.relation)
            void load(left, "Reading the entity…", entityPanel, signal, drawFacts);
        else
            void load(left, "Scoring all entities…", queryPanel, signal, afterAnswers());
    }

    /** Marks the answer that is explained, and puts the focus back where it was: the list is drawn anew. */
    function afterAnswers() {
        const focused = left.contains(document.activeElement) ? document.activeElement : null;
        const shown = left.querySelectorAll("a.answer").length;
        return () => {
            drawFacts();
            markAnswer(left, state.answer);
            if (!focused || document.activeElement !== document.body) return;
            if (focused.id)
                document.getElementById(focused.id)?.focus();
            else
                left.querySelectorAll("a.answer")[focused.matches(".more") ? shown : 0]?.focus();
        };
    }

    function drawFacts() {
        if (state.entity === keys.facts) return;
        keys.facts = state.entity;
        facts.replaceChildren();
        facts.hidden = !state.entity;
        if (!state.entity) return;
        const name = state.entity;
        // What is wrong is told once, on the left; once that is drawn after all, the facts are asked for again.
        void load(facts, "Reading known facts…", async (inner) => {
            try {
                return factsPanel(await entityFacts(name, inner), signal);
            } catch (error) {
                if (error.status === undefined) throw error;
                keys.facts = undefined;
                return [];
            }
        }, signal);
    }

    function drawFields() {
        const enabled = Boolean(state.entity);
        relationField.input.disabled = !enabled;
        relationField.input.placeholder = enabled ? "Choose a relation" : "Choose an entity first";
        direction.set(state.direction, Boolean(state.relation));
        // By name until the labels arrive.
        if (state.entity !== keys.entity) entityField.setText(state.entity ?? "");
        if (state.relation !== keys.relation) relationField.setText(state.relation ?? "");
        keys.entity = state.entity;
        keys.relation = state.relation;
    }

    return {
        update(path, parameters) {
            state = readState(path, parameters);
            content.dataset.state = !state.entity ? "start"
                : !state.relation                 ? "entity"
                : state.answer                    ? "answer"
                                                  : "query";
            drawFields();
            drawLeft();
            explanation.update(state.relation && state.answer ? state : null, writeState(state));
            drawFacts();
        },
    };
}
