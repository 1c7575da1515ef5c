// Requests to the server. Everything that can go wrong becomes an ApiError whose message is a sentence.

const TOKEN = "vlp-token";
const cache = new Map();
const CACHED = 200;

/** What went wrong, for people. `status` is that of HTTP, 0 without an answer. */
export class ApiError extends Error {
    constructor(message, status) {
        super(message);
        this.status = status;
    }
}

let token = null;
try {
    token = sessionStorage.getItem(TOKEN);
} catch (_) { /* storage is forbidden: the token lasts as long as the page */
}

export function setToken(value) {
    token = value;
    try {
        sessionStorage.setItem(TOKEN, value);
    } catch (_) { /* see above */
    }
}

/** A sentence for a status that came without one. */
function sentence(status) {
    if (status === 404) return "The server does not have this.";
    if (status === 408) return "The server gave up on this request: it took too long.";
    if (status === 429 || status === 503) return "The server is busy. Try again in a moment.";
    return `The server answered with an error (status ${status}).`;
}

async function readAnswer(response) {
    let body;
    try {
        body = await response.json();
    } catch (error) {
        if (error.name === "AbortError") throw error;
        if (response.ok) throw new ApiError("The server's answer is not JSON. Is another program at this address?", 0);
        body = null;
    }
    if (response.ok) return { status: response.status, body };
    if (response.status === 401)
        throw new ApiError(token ? "The server does not accept this token." : "This server asks for a token.", 401);
    throw new ApiError(body?.error || sentence(response.status), response.status);
}

async function send(path, options, signal, seconds) {
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), seconds * 1000);
    const stop = () => timeout.abort();
    signal?.addEventListener("abort", stop);
    try {
        const headers = { Accept: "application/json", ...options.headers };
        if (token) headers.Authorization = `Bearer ${token}`;
        return await readAnswer(await fetch(path, {...options, headers, signal: timeout.signal, cache: "no-store" }));
    } catch (error) {
        if (signal?.aborted) throw error;
        if (error instanceof ApiError) throw error;
        if (error.name === "AbortError")
            throw new ApiError(`The server did not answer within ${seconds} seconds. It may be busy; try again.`, 0);
        throw new ApiError("The server does not answer. Check that vlp serve is still running, then try again.", 0);
    } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
    }
}

function query(path, parameters) {
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(parameters ?? {})) {
        for (const item of Array.isArray(value) ? value : [value]) {
            if (item !== null && item !== undefined) search.append(key, item);
        }
    }
    const text = search.toString();
    return text ? `${path}?${text}` : path;
}

/**
 * What a run says does not change while the page is open, except after a reload of the run: the cache is small and
 * goes with the page.
 */
function keep(key, body) {
    if (cache.size >= CACHED) cache.delete(cache.keys().next().value);
    cache.set(key, body);
}

/** GET; answers are kept. `signal` ends it early, without an ApiError. */
export async function get(path, parameters, {signal, seconds = 30} = {}) {
    const target = query(path, parameters);
    if (cache.has(target)) return cache.get(target);
    const { status, body } = await send(target, { method: "GET" }, signal, seconds);
    if (status === 200) keep(target, body);
    return body;
}

/** GET that tells 202 (still at work) from 200. */
export async function poll(path, parameters, {signal} = {}) {
    const { status, body } = await send(query(path, parameters), { method: "GET" }, signal, 30);
    return { done: status === 200, body };
}

/** POST of a JSON object; answers are kept as well: the server's are pure functions of it. */
export async function post(path, object, {signal, seconds = 60} = {}) {
    const text = JSON.stringify(object);
    const key = `${path} ${text}`;
    if (cache.has(key)) return cache.get(key);
    const { body } = await send(
        path, { method: "POST", headers: { "Content-Type": "application/json" }, body: text }, signal, seconds);
    keep(key, body);
    return body;
}

/** Forgets what was kept: for a token or a run that has changed. */
export function forget() { cache.clear(); }
