// A text field with a list of suggestions (the combobox of the ARIA practices, list autocomplete): arrows,
// Home and End move, Enter picks, Escape closes, then empties. The focus stays in the field.
import {el, uniqueId, announce, plural} from "./dom.js";

/**
 * @param {object} options
 *   label        text of the label
 *   placeholder  text of the empty field
 *   suggest      (text, signal) => Promise of a list of options of the caller's kind
 *   render       option => nodes of its line
 *   group        option => name of its group, or null; options of a group come together
 *   text         option => what the field shows once it is picked
 *   pick         option => void
 *   failed       error => sentence to show in place of suggestions
 *   delay        milliseconds between the last key and the request
 * @returns {{element, input, setText}}
 */
export function combobox(options) {
    const inputId = uniqueId("field");
    const listId = uniqueId("list");
    const state = { items: [], active: -1, open: false, timer: 0, request: null, settled: "" };

    const input = el("input", {
        id: inputId,
        type: "text",
        role: "combobox",
        autocomplete: "off",
        autocapitalize: "none",
        spellcheck: "false",
        "aria-autocomplete": "list",
        "aria-expanded": "false",
        "aria-controls": listId,
        placeholder: options.placeholder,
        enterkeyhint: "search",
    });
    const list =
        el("ul", { id: listId, role: "listbox", "aria-label": options.label, class: "suggestions", hidden: true });
    const element = el("div", { class: "combobox" }, el("label", { "for": inputId }, options.label),
        el("div", { class: "field" }, input, list));

    function close() {
        state.open = false;
        state.active = -1;
        clearTimeout(state.timer);
        state.request?.abort();
        list.hidden = true;
        input.setAttribute("aria-expanded", "false");
        input.removeAttribute("aria-activedescendant");
    }

    function activate(index) {
        const lines = list.querySelectorAll("[role=option]");
        lines[state.active]?.setAttribute("aria-selected", "false");
        state.active = index;
        const line = lines[index];
        if (!line) {
            input.removeAttribute("aria-activedescendant");
            return;
        }
        line.setAttribute("aria-selected", "true");
        input.setAttribute("aria-activedescendant", line.id);
        line.scrollIntoView({ block: "nearest" });
    }

    function pick(index) {
        const item = state.items[index];
        if (item === undefined) return;
        state.settled = options.text(item);
        input.value = state.settled;
        input.select();  // the next key starts a new search
        close();
        options.pick(item);
    }

    function line(item, index) {
        const node =
            el("li", { id: `${listId}-${index}`, role: "option", "aria-selected": "false" }, options.render(item));
        node.addEventListener("mousedown", (event) => event.preventDefault());  // the field keeps the focus
        node.addEventListener("click", () => pick(index));
        return node;
    }

    function message(text) {
        list.replaceChildren(el("li", { role: "presentation", class: "suggestion-note" }, text));
        list.hidden = false;
        announce(text);
    }

    function show(items) {
        state.items = items;
        state.active = -1;
        state.open = items.length > 0;
        input.setAttribute("aria-expanded", String(state.open));
        input.removeAttribute("aria-activedescendant");
        if (!state.open) {
            const text = input.value.trim();
            message(text ? `Nothing is called “${text}”.` : "There is nothing to choose from.");
            return;
        }
        const nodes = [];
        let group = null;
        items.forEach((item, index) => {
            const name = options.group?.(item) ?? null;
            if (name !== group) nodes.push(el("li", { role: "presentation", class: "suggestion-group" }, name));
            group = name;
            nodes.push(line(item, index));
        });
        list.replaceChildren(...nodes);
        list.hidden = false;
        list.scrollTop = 0;
        announce(plural(items.length, "suggestion"));
    }

    async function ask() {
        state.request?.abort();
        const request = new AbortController();
        state.request = request;
        // The text of the last pick is no search: all options are offered.
        const text = input.value === state.settled ? "" : input.value.trim();
        try {
            const items = await options.suggest(text, request.signal);
            if (!request.signal.aborted && document.activeElement === input) show(items);
            return !request.signal.aborted;
        } catch (error) {
            if (!request.signal.aborted) message(options.failed(error));
            return false;
        }
    }

    function later() {
        clearTimeout(state.timer);
        state.timer = setTimeout(ask, options.delay ?? 40);
    }

    async function move(event) {
        event.preventDefault();
        if (!state.open) {
            if (!await ask() || !state.open) return;
            activate(event.key === "ArrowUp" ? state.items.length - 1 : 0);
            return;
        }
        const size = state.items.length;
        const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
        if (Math.abs(step) > 1)
            activate(Math.min(size - 1, Math.max(0, state.active + step)));
        else
            activate(state.active < 0 && step < 0 ? size - 1 : (state.active + step + size) % size);
    }

    async function enter(event) {
        event.preventDefault();
        // Enter right after typing: the suggestions of this very text count, not those of an earlier one.
        if (state.active < 0 && input.value !== state.settled) {
            clearTimeout(state.timer);
            if (await ask()) pick(0);
            return;
        }
        pick(state.active);
    }

    input.addEventListener("keydown", (event) => {
        if (event.isComposing) return;
        if (["ArrowDown", "ArrowUp"].includes(event.key) || (state.open && ["PageDown", "PageUp"].includes(event.key)))
            void move(event);
        else if (event.key === "Enter")
            void enter(event);
        else if (event.key === "Escape") {
            if (list.hidden) input.value = "";
            close();
        }
    });
    input.addEventListener("input", later);
    input.addEventListener("click", () => {
        if (list.hidden) void ask();
    });
    input.addEventListener("focus", () => input.select());
    input.addEventListener("blur", () => {
        close();
        input.value = state.settled;
    });

    return {
        element,
        input,
        /** What the field shows without a search. */
        setText(text) {
            const typing = document.activeElement === input && input.value !== state.settled;
            state.settled = text;
            if (typing) return;  // what is being typed stays
            input.value = text;
            if (document.activeElement === input) input.select();
        },
    };
}

/** Text with the part that matches a search marked. */
export function marked(text, search) {
    const at = search ? text.toLowerCase().indexOf(search.toLowerCase()) : -1;
    if (at < 0) return [text];
    return [text.slice(0, at), el("mark", null, text.slice(at, at + search.length)), text.slice(at + search.length)];
}
