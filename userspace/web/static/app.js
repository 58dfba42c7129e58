// The page: current view (the hash), range of time, and incoming events. Views draw sections, each of which is redrawn when a window or finding ends.
import { h, safe } from "./dom.js";
import { ask, follow, Problem } from "./ask.js";
import { clock } from "./units.js";
import { views } from "./views.js";
import { fresh } from "./chart.js";

const ranges = { "5m": "5 minutes", "15m": "15 minutes", "1h": "1 hour", "6h": "6 hours", "24h": "1 day", "168h": "1 week" };
const lengths = { "5m": 300e3, "15m": 900e3, "1h": 3600e3, "6h": 21600e3, "24h": 86400e3, "168h": 604800e3 };
const main = document.getElementById("main"), status = document.getElementById("status");
let holding = false; // a mouse button is pressed: dragged elements must stay
let current = { abort: new AbortController() }, last = 0, lost = "";

// where is the view with its parameters.
function where() {
	const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
	return { name: path || "findings", parameters: new URLSearchParams(query) };
}

export function link(name, parameters) {
	const q = new URLSearchParams();
	for (const [k, v] of Object.entries(parameters || {})) if (v !== undefined && v !== null && v !== "") q.set(k, v);
	const text = q.toString();
	return `#/${name === "findings" ? "" : name}${text ? "?" + text : ""}`;
}

// change opens the same view with other parameters.
function change(parameters) {
	const { name, parameters: now } = where();
	location.hash = link(name, { ...Object.fromEntries(now), ...parameters });
}

function range(parameters) {
	const from = Number(parameters.get("from")), to = Number(parameters.get("to"));
	if (from > 0 && to > from) return { from, to, live: false, name: "" };
	const name = lengths[parameters.get("range")] ? parameters.get("range") : "15m";
	const now = Date.now();
	return { from: now - lengths[name], to: now, live: true, name };
}

// kept are the parameters that all views share, for links between them.
const kept = (p) => ({ range: p.get("range"), from: p.get("from"), to: p.get("to") });

function login() {
	if (main.querySelector("form.login")) return; // the user may be typing
	main.replaceChildren(h("form", { class: "login panel", method: "post", action: "/login" }, h("h2", {}, "Token"), h("p", {}, "This monitor asks for the token of web.auth."),
		h("p", {}, h("label", {}, "Token ", h("input", { type: "password", name: "token", autocomplete: "current-password", required: true }))), h("button", { type: "submit" }, "Go on")));
}

function failed(section, error) {
	if (error.name === "AbortError") return;
	if (error instanceof Problem && error.status === 401) { login(); return; }
	section.replaceChildren(h("p", { class: "error", role: "alert" }, error.message));
}

// Answers about the latest windows stay valid until the stream has another: a view whose range changes does not ask for them again.
const latest = new Map(), lasting = ["instances", "reports", "distributions"], valid = 60e3;
let closed = 0; // number of events

function changed() {
	closed++;
	latest.clear();
}

async function remembered(path, parameters, signal) {
	if (!lasting.includes(path) || parameters?.at || !source || lost) return ask(path, parameters, signal);
	const name = path + JSON.stringify(parameters ?? null), found = latest.get(name), now = closed;
	if (found && performance.now() - found.since < valid) return found.answer;
	const answer = await ask(path, parameters, signal);
	if (now === closed && latest.size < 100) latest.set(name, { answer, since: performance.now() });
	return answer;
}

// Fields of one question: the API takes 64 and 4,096 bytes.
const mostFields = 60, mostText = 3500;

// A Batch is one question for the fields that the parts of a view want of the same windows.
class Batch {
	constructor(page, parameters) {
		this.fields = [];
		this.text = 0;
		this.answer = Promise.resolve().then(() => { page.batches.clear(); return page.ask("windows", { ...parameters, fields: this.fields.join(",") }); });
	}
	takes(fields) { return this.fields.length + fields.length <= mostFields && this.text + encodeURIComponent(fields.join(",")).length < mostText || this.fields.length === 0; }
	async add(fields) {
		const at = fields.map((f) => { if (!this.fields.includes(f)) this.fields.push(f); return this.fields.indexOf(f); });
		this.text = encodeURIComponent(this.fields.join(",")).length;
		const series = await this.answer;
		return { ...series, fields, rows: series.rows.map((r) => [r[0], r[1], ...at.map((i) => r[2 + i])]) };
	}
}

// A Page is one view with its sections.
class Page {
	constructor(name, parameters) {
		this.name = name;
		this.parameters = parameters;
		this.abort = new AbortController();
		this.sections = [];
		this.states = new Map();
		this.batches = new Map();
	}
	// width is a picture's width, in pixels.
	get width() { return Math.max(280, main.clientWidth - 40); }
	// range is the same for all that asks at once.
	get range() {
		if (!this.now) {
			this.now = range(this.parameters);
			setTimeout(() => { this.now = null; });
		}
		return this.now;
	}
	get at() { return this.parameters.get("at") || (this.range.live ? undefined : new Date(this.range.to).toISOString()); }
	ask(path, parameters) { return remembered(path, parameters, this.abort.signal); }
	// windows are fields over time. What is asked at once becomes one question.
	windows(parameters, fields) {
		const name = JSON.stringify(parameters);
		let batch = this.batches.get(name);
		if (!batch?.takes(fields)) this.batches.set(name, batch = new Batch(this, parameters));
		return batch.add(fields);
	}
	link(name, parameters) { return link(name, { ...kept(this.parameters), ...parameters }); }
	change(parameters) { change(parameters); }
	zoom(from, to) { change({ from: Math.round(from), to: Math.round(to), range: null }); }
	// state keeps a table's sort order while it is redrawn.
	state(name) {
		if (!this.states.has(name)) this.states.set(name, {});
		return this.states.get(name);
	}
	// section is drawn by draw(), which returns nodes; wants(event) reports whether an event redraws it.
	section(draw, wants) {
		const element = h("div", { class: "section" }, h("p", { class: "waiting" }, `Waiting for ${location.host}…`));
		const one = { element, draw, wants, busy: false, again: false, drawn: 0 };
		this.sections.push(one);
		main.append(element);
		this.redraw(one);
	}
	async redraw(one) {
		if (one.busy) { one.again = true; return; }
		one.busy = true;
		try {
			const nodes = (await one.draw()).flat().filter(Boolean);
			const inside = one.element.contains(document.activeElement) && document.activeElement.matches("input");
			if (holding && one.drawn) one.again = true;
			else if (!this.abort.signal.aborted && !(inside && one.drawn)) {
				const open = [...one.element.querySelectorAll("details")].map((d) => d.open);
				one.element.replaceChildren(...nodes);
				one.element.querySelectorAll("details").forEach((d, i) => { d.open = d.open || open[i] || false; });
				one.drawn = performance.now();
			}
		} catch (error) {
			failed(one.element, error);
			if (error.status === 0) setTimeout(() => { if (!this.abort.signal.aborted) this.redraw(one); }, 3000);
		}
		one.busy = false;
		if (one.again && !this.abort.signal.aborted) { one.again = false; setTimeout(() => this.redraw(one), 1000); }
	}
	// event redraws the sections that it concerns, at most once a second.
	event(kind, e) {
		if (!this.range.live || this.parameters.get("at") || document.hidden) return;
		for (const one of this.sections) {
			if (!one.wants?.(kind, e)) continue;
			if (performance.now() - one.drawn > 1000) this.redraw(one);
			else if (!one.timer) one.timer = setTimeout(() => { one.timer = 0; if (!this.abort.signal.aborted) this.redraw(one); }, 1000);
		}
	}
}

function show() {
	const { name, parameters } = where();
	current.abort.abort();
	main.replaceChildren();
	fresh();
	current = new Page(name, parameters);
	const view = views[name];
	document.getElementById("nav").replaceChildren(...Object.entries(views).filter(([, v]) => v.title).map(([n, v]) =>
		h("a", { href: link(n, kept(parameters)), "aria-current": n === name ? "page" : undefined }, v.title)));
	const r = current.range;
	document.getElementById("range").value = r.name;
	document.getElementById("live").setAttribute("aria-pressed", String(r.live && !parameters.get("at")));
	tell();
	if (!view) { main.append(h("p", { class: "error" }, "There is no such view.")); return; }
	document.title = safe("xdpmon: " + (parameters.get("key") || view.title));
	view.open(current);
}

function tell() {
	const r = current.range;
	const text = r.live ? (lost || (last ? `live, last window ${clock(last)}` : "live, waiting for a window")) : `${clock(r.from)} to ${clock(r.to)}`;
	if (status.textContent !== text) status.textContent = text;
}

function controls() {
	const select = document.getElementById("range");
	select.append(h("option", { value: "", hidden: true }, "chosen"), ...Object.entries(ranges).map(([value, text]) => h("option", { value }, text)));
	select.addEventListener("change", () => change({ range: select.value, from: null, to: null, at: null }));
	const move = (by) => { const r = current.range, d = (r.to - r.from) * by; current.zoom(r.from + d, r.to + d); };
	const out = () => { const r = current.range, d = (r.to - r.from) / 2; current.zoom(r.from - d, Math.min(r.to + d, Date.now())); };
	const live = () => change({ from: null, to: null, at: null });
	for (const [id, act] of [["earlier", () => move(-.5)], ["later", () => move(.5)], ["out", out], ["live", live]]) document.getElementById(id).addEventListener("click", act);
	document.getElementById("theme").addEventListener("click", () => {
		const root = document.documentElement;
		root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
		localStorage.setItem("theme", root.dataset.theme);
		show();
	});
	addEventListener("keydown", (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, select")) return;
		({ ",": () => move(-.5), ".": () => move(.5), "-": out, l: live })[e.key]?.();
	});
}

// A browser opens six connections to one host: a hidden page closes its stream.
let source = null;

function stream() {
	if (source) return;
	source = follow({
		hello: () => { lost = ""; tell(); },
		lost: () => { lost = `connection to ${location.host} lost, connecting again`; changed(); tell(); },
		missed: (m) => { lost = `${m.events} windows were missed: this page was too slow`; tell(); setTimeout(() => { lost = ""; }, 5000); },
		window: (w) => { changed(); last = Math.max(last, w.window.end_ms); tell(); current.event("window", w); },
		finding: (f) => { changed(); current.event("finding", f); },
	});
}

function rest() {
	source?.close();
	source = null;
	changed();
}

function look() {
	if (document.hidden) { rest(); return; }
	if (source) return;
	stream();
	if (current.range?.live) current.sections.forEach((one) => current.redraw(one));
}

controls();
addEventListener("pointerdown", () => { holding = true; });
for (const name of ["pointerup", "pointercancel", "blur"]) addEventListener(name, () => { holding = false; });
addEventListener("hashchange", show);
let resized = 0; // a timer: pictures without uPlot have the width that they were drawn with
addEventListener("resize", () => {
	clearTimeout(resized);
	resized = setTimeout(() => { if (!document.hidden) current.sections?.forEach((one) => current.redraw(one)); }, 300);
});
document.addEventListener("visibilitychange", look);
addEventListener("pagehide", rest);
addEventListener("pageshow", (e) => { if (e.persisted) look(); });
show();
if (!document.hidden) stream();
ask("instances").then((i) => { document.getElementById("version").textContent = safe(`${i.command} ${i.version}`); }).catch(() => {});
