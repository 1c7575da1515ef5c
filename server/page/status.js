// What a view shows besides its data: the title, that something is being computed, errors as sentences.
import {el, announce, shorten} from "./dom.js";
import {setToken, forget} from "./api.js";

/** The title of the tab. */
export function setTitle(text) { document.title = text ? `${shorten(text, 120)} · vlp` : "vlp"; }

/** A form for the server's token; `again` runs once it was given. */
function tokenForm(message, again) {
    const input = el("input", { type: "password", id: "token", autocomplete: "off", required: true });
    return el("form", {
        class: "notice",
        onsubmit: (event) => {
            event.preventDefault();
            setToken(input.value.trim());
            forget();
            document.dispatchEvent(new Event("tokenchange"));
            again();
        },
    },
        el("p", null, message,
            " It is in the token file that vlp serve was started with, and is kept until this tab closes."),
        el("label", { "for": "token" }, "Token"), input, el("button", { type: "submit" }, "Continue"));
}

/** An error as a sentence with what to do next; `again` tries once more. */
export function errorNotice(error, again) {
    const known = error.status !== undefined;
    if (!known) console.error(error);
    const message = known ? error.message : "This page has met an error of its own. Loading it again may help.";
    if (error.status === 401) return tokenForm(message, again);
    announce(message);
    const retry = known && (error.status === 0 || error.status === 408 || error.status === 429 || error.status >= 500);
    const headed = document.querySelector("main h1");
    return el("div", { class: "notice error", role: "alert" }, headed ? null : el("h1", null, "This cannot be shown"),
        el("p", null, message), retry && again ? el("button", { type: "button", onclick: again }, "Try again") : null);
}

/** Shows that something is being computed, if it takes longer than a moment. */
export function loading(container, text) {
    const note = el("p", { class: "loading" }, el("span", { class: "spinner", "aria-hidden": "true" }), text);
    container.setAttribute("aria-busy", "true");
    const timer = setTimeout(() => container.replaceChildren(note), 150);
    return () => {
        clearTimeout(timer);
        container.removeAttribute("aria-busy");
    };
}

const running = new WeakMap();

/**
 * Fills a container with what `work` gives: a loading line meanwhile, a sentence if it fails. A later call
 * on the same container ends this one, as `parent` does. `after` runs once the container is filled.
 */
export async function load(container, text, work, parent, after) {
    running.get(container)?.abort();
    const request = new AbortController();
    running.set(container, request);
    parent?.addEventListener("abort", () => request.abort(), { once: true });
    const stop = loading(container, text);
    try {
        const nodes = await work(request.signal);
        if (request.signal.aborted) return;
        stop();
        container.replaceChildren(...[nodes].flat().filter(Boolean));
        after?.();
    } catch (error) {
        if (request.signal.aborted) return;
        stop();
        container.replaceChildren();  // before the notice looks for a heading
        container.replaceChildren(errorNotice(error, () => void load(container, text, work, parent, after)));
    } finally {
        if (request.signal.aborted) stop();
    }
}
