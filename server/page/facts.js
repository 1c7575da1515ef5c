// An entity: what it is called, what may be asked about it, and the known triples around it.
import {el, address, count, plural, title, entityText, entityLink, relationText, announce} from "./dom.js";
import {get} from "./api.js";
import {load} from "./status.js";

const FIRST = 60;
const PAGE = 50;

/** The address of the query that a relation of an entity stands for. */
export function relationAddress(entity, relation, direction, rest = {}) {
    const side = direction === "out" ? "head" : "tail";
    return address("/ask", { [side]: entity.name, relation: relation.name, ...rest });
}

const LONG = 20;

/**
 * "Vienna lies_on ?" or "? lies_on Vienna": which place of the triple is asked for. Entities with long names
 * are called "it", since a list of such phrases names them again and again.
 */
export function relationPhrase(entity, relation, direction) {
    const known = el("span", { class: "quiet" }, title(entity).length > LONG ? "it" : entityText(entity));
    const asked = el("span", { class: "quiet" }, "?");
    const [first, last] = direction === "out" ? [known, asked] : [asked, known];
    return el("span", { class: "phrase" }, first, " ", relationText(relation), " ", last);
}

/** Label, name, gloss and degree of an entity. */
export function entityCard(entity, heading) {
    return el("div", { class: "card-entity" }, el(heading, { class: "entity-title" }, el("bdi", null, title(entity))),
        el("p", { class: "entity-meta" }, entity.label ? el("code", null, entity.name) : null,
            Number.isFinite(entity.degree) ? el("span", null,
                entity.degree === 0 ? "in no known triple" : `in ${plural(entity.degree, "known triple")}`)
                                                           : null),
        entity.description ? el("p", { class: "gloss-full" }, el("bdi", null, entity.description)) : null);
}

/** The queries that suit an entity: its own relations first, as links. */
export function askList(entity, relations) {
    if (relations.length === 0) {
        return el("p", { class: "quiet" }, "It has no known triples. Any relation can still be asked for above.");
    }
    return el("ul", { class: "ask-list" },
        relations.map(({ relation, direction, count: triples }) => el("li", null,
                          el("a", { href: relationAddress(entity, relation, direction) },
                              relationPhrase(entity, relation, direction),
                              el("span", { class: "number quiet" }, `${count(triples)} known`)))));
}

function factLine(fact) {
    const other = fact.direction === "out" ? fact.triple.tail : fact.triple.head;
    return el("li", null, entityLink(other, 70),
        other.description ? el("span", { class: "gloss" }, el("bdi", null, other.description)) : null);
}

/** One relation in one direction: its first facts, and a button that fetches the next ones. */
function factGroup(entity, { relation, direction, count: total }, facts, signal) {
    const list = el("ul", { class: "facts" }, facts.map(factLine));
    let shown = facts.length;
    const note = el("div", { class: "group-more" });

    async function more() {
        const page = await get("/api/entity",
            { name: entity.name, relation: relation.name, direction, limit: PAGE, offset: shown }, { signal });
        const first = page.facts.length > 0 ? factLine(page.facts[0]) : null;
        if (first) list.append(first, ...page.facts.slice(1).map(factLine));
        shown += page.facts.length;
        announce(`${count(shown)} of ${count(total)} facts`);
        if (page.facts.length === 0) shown = total;
        // The button may have gone with its page: the focus goes on to the first new fact.
        if (document.activeElement === document.body) first?.querySelector("a").focus();
        return button();
    }
    function button() {
        if (shown >= total) return null;
        const text = shown === 0 ? `Show ${plural(Math.min(PAGE, total), "fact")}`
                                 : `${count(Math.min(PAGE, total - shown))} more of ${count(total)}`;
        return el("button",
            { type: "button", class: "plain", onclick: () => void load(note, "Reading facts…", more, signal) }, text);
    }
    const rest = button();
    if (rest) note.append(rest);
    const words = direction === "out" ? [title(entity), title(relation), "?"] : ["?", title(relation), title(entity)];
    return el("section", { class: "fact-group" },
        el("div", { class: "group-head" },
            el("h3", null, relationPhrase(entity, relation, direction), " ",
                el("span", { class: "number quiet" }, count(total))),
            el("a", { href: relationAddress(entity, relation, direction) }, "Predict",
                el("span", { class: "hidden" }, " ", words.join(" ")))),
        list, note);
}

/** What /api/entity says of an entity: kept, so that several parts of a view may ask. */
export function entityFacts(name, signal) { return get("/api/entity", { name, limit: FIRST, offset: 0 }, { signal }); }

/** The known facts around an entity, grouped by relation and direction. */
export function factsPanel(answer, signal) {
    const { entity, facts, relations, total } = answer;
    const heading = el("h2", null, "Known facts of ", entityText(entity, 60), " ",
        el("span", { class: "number quiet" }, count(total)));
    if (total === 0) return [heading, el("p", { class: "quiet" }, "The graph has no known triple with this entity.")];
    const key = (relation, direction) => `${direction} ${relation.name}`;
    const groups = new Map(relations.map((group) => [key(group.relation, group.direction), []]));
    for (const fact of facts) groups.get(key(fact.triple.relation, fact.direction))?.push(fact);
    return [
        heading,
        el("div", { class: "fact-groups" },
            relations.map(
                (group) => factGroup(entity, group, groups.get(key(group.relation, group.direction)), signal)))
    ];
}
