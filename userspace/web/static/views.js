// The views of the page. A view of an algorithm is made from its report: names, units and intervals; only pictures are specific.
import { h, scroll } from "./dom.js";
import { human, interval, words, clock } from "./units.js";
import { overTime, cumulative } from "./chart.js";
import { timeline, bursts, spark } from "./pictures.js";
import { table, title } from "./table.js";
import { networks } from "./networks.js";

const zoomed = (page) => (from, to) => page.zoom(from, to);
const picked = (page) => (ms) => page.change({ at: new Date(ms + 1).toISOString() });
const span = (page) => { const r = page.range; return { from: new Date(r.from).toISOString(), to: r.live ? undefined : new Date(r.to).toISOString() }; };
const axis = (page) => { const r = page.range; return { range: [r.from / 1e3, r.to / 1e3], live: r.live }; };

// --- findings and instances

// instanceOf is where the numbers of a finding are: the instance that it names, else the first on its interface that runs an algorithm of its evidence.
function instanceOf(f, all) {
	const names = f.interface.split(","), named = f.key ? all.filter((i) => i.key === f.key) : [], near = named.length ? named : all.filter((i) => names.includes(i.key) || i.interfaces.some((n) => names.includes(n)));
	for (const i of near) for (const e of f.evidence) {
		const a = i.algorithms.find((x) => x.name === e.split(".")[0]);
		if (a) return { key: i.key, algorithm: a.name };
	}
	return near.length ? { key: near[0].key } : null;
}

// steps are the numbered commands of a finding as a list; without numbers it is one paragraph.
function steps(next) {
	const list = [];
	for (const part of next.split(/(?:^|; )(?=\d+\. )/)) {
		const number = `${list.length + 1}. `;
		if (part.startsWith(number)) list.push(part.slice(number.length));
		else if (list.length) list.push(`${list.pop()}; ${part}`);
		else if (part) return h("p", {}, next);
	}
	return h("ol", {}, ...list.map((text) => h("li", {}, text)));
}

// shown links to the row of a finding's subject; for one that has ended, in its last window.
function shown(page, f, all) {
	const place = instanceOf(f, all);
	if (!place) return null;
	const at = f.until !== null ? new Date(f.until / 1e6).toISOString() : page.parameters.get("at");
	return h("a", { href: page.link("instance", { ...place, find: f.subject.name, at }) }, `Show ${place.algorithm || ""} on ${place.key}`);
}

function one(page, f, all) {
	const ended = f.until !== null;
	return h("article", { class: `finding ${f.severity}` }, h("h3", {}, h("span", { class: `badge ${f.severity}` }, ended ? f.severity + ", over" : f.severity), f.text.split(": ")[0]),
		h("p", {}, f.text.slice(f.text.indexOf(": ") + 2).replace(/ Next: .*$/s, "")), f.next && [h("p", {}, h("strong", {}, "Next:")), steps(f.next)],
		h("p", { class: "links" }, shown(page, f, all)), h("p", { class: "soft" }, `${f.interface ? "on " + f.interface + ", " : ""}${clock(f.since / 1e6)}${ended ? " to " + clock(f.until / 1e6) : ""}; from ${f.evidence.join(", ") || "no field"}`));
}

// begun is the start of a time line: while live, a third of its length before the first finding, instead of an hour without findings.
function begun(list, r) {
	const first = Math.min(...list.map((f) => f.since / 1e6));
	return r.live ? Math.max(r.from, Math.min(first, r.to - 60e3) - (r.to - first) / 3) : r.from;
}

async function findings(page) {
	const r = page.range;
	const [found, { instances: all }] = await Promise.all([page.ask("findings", span(page)), page.ask("instances")]);
	const list = found.findings.filter((f) => f.until === null || f.until / 1e6 >= r.from);
	const open = list.filter((f) => f.until === null && f.state !== "ends"), over = list.filter((f) => !open.includes(f));
	return [h("h2", {}, open.length ? (open.length === 1 ? "One open finding" : `${open.length} open findings`) : "Nothing is wrong, as far as is measured"), ...open.map((f) => one(page, f, all)),
		list.length > 0 && h("h2", {}, "When"), list.length > 0 && timeline(list.slice(0, 40), begun(list, r), r.to, page.width),
		over.length > 0 && h("details", {}, h("summary", {}, over.length === 1 ? "One finding is over" : `${over.length} findings are over`), ...over.slice(0, 100).map((f) => one(page, f, all)))];
}

const rate = (a) => a.seen / Math.max(.001, (a.window.end_ms - a.window.start_ms) / 1e3);

function delay(a) {
	const d = a.delay;
	return (name) => {
		const q = d?.quantiles.find((x) => x.name === name);
		return q ? [human(q.value, "ns"), h("span", { class: "iv" }, " " + interval(q.low, q.high, "ns", q.promise, q.value))] : "-";
	};
}

// share and queue are those of the first algorithm that measures them.
const share = (i) => { const a = i.algorithms.find((x) => x.loss); return a ? human(a.loss.share, "ratio") : "-"; };
const queue = (i) => { const a = i.algorithms.find((x) => x.queue); return a ? human(a.queue.value, "ns") : "-"; };

async function instances(page) {
	const all = await page.ask("instances");
	const want = (page.state("instances").filter || "").toLowerCase();
	const list = all.instances.filter((i) => !want || [i.key, i.guest, ...i.interfaces].join(" ").toLowerCase().includes(want));
	const rows = list.map((i) => {
		const with_ = i.algorithms.find((a) => a.delay) || i.algorithms[0], q = delay(with_), line = h("td", {}, "");
		if (list.length <= 40) page.ask("windows", { key: i.key, algorithm: with_.name, fields: "packets.seen", points: 60, ...span(page) }).then((s) =>
			line.replaceChildren(spark(s.rows.map((r) => r[2] === null ? null : r[2] / Math.max(.001, (r[1] - r[0]) / 1e3))))).catch(() => {});
		return h("tr", {}, h("th", { scope: "row" }, h("a", { href: page.link("instance", { key: i.key }) }, i.key)), h("td", {}, i.interfaces.join(", ") + (i.guest ? ` (${i.guest})` : "")),
			h("td", { class: "n" }, human(rate(with_), "1/s")), line, h("td", { class: "n" }, q("p50")), h("td", { class: "n" }, q("p99")), h("td", { class: "n" }, share(i)), h("td", { class: "n" }, queue(i)),
			h("td", { class: "n" }, human(i.algorithms.reduce((n, a) => n + a.lost, 0))), h("td", { class: "wide" }, ...i.algorithms.flatMap((a, n) => [n ? " " : "", h("a", { href: page.link("instance", { key: i.key, algorithm: a.name }) }, a.name)])));
	});
	const filter = h("input", { type: "search", "aria-label": "filter instances", placeholder: "filter", value: want, oninput: (e) => { page.state("instances").filter = e.currentTarget.value; },
		onchange: () => { document.activeElement.blur(); page.sections.forEach((s) => page.redraw(s)); } });
	return [h("h2", {}, "Instances"), all.instances.length > 8 && h("div", { class: "tools" }, filter, h("span", { class: "soft" }, `${list.length} of ${all.instances.length}`)),
		rows.length === 0 ? h("p", { class: "soft" }, "No window has closed yet.") : scroll("instances", h("table", { class: "instances" }, h("thead", {}, h("tr", {}, ...[["instance"], ["interfaces"], ["packets", 1], ["over time"],
			["median delay", 1], ["p99", 1], ["loss", 1, "packets that were lost on the way, where an algorithm measures that"], ["queue", 1, "longest delay in a queue"],
			["not measured", 1, "events that the measuring itself has lost"], ["algorithms"]].map(([t, n, help]) => h("th", { scope: "col", class: n ? "n" : "", title: help }, t)))), h("tbody", {}, ...rows)))];
}

// --- one instance

// distribution draws percentiles over time with their bands, and the CDF of the window.
async function distribution(page, key, algorithm, d) {
	const names = d.quantiles.map((q) => q.name), pick = ["p50", "p95", "p99"].filter((n) => names.includes(n));
	const some = pick.length ? pick : names.slice(0, 3);
	const bound = (n) => d.quantiles.find((q) => q.name === n).promise === "bound";
	const fields = some.flatMap((n) => (bound(n) ? [n, n + "_at_least", n + "_at_most"] : [n, n + "_low", n + "_high"])).map((n) => `report.${d.name}.${n}`);
	const [series, whole] = await Promise.all([page.windows({ key, algorithm, ...span(page) }, fields), page.ask("distributions", { key, algorithm, distribution: d.name, at: page.at })]);
	const lines = some.map((n, i) => ({ label: n, value: 2 + 3 * i, low: 3 + 3 * i, high: 4 + 3 * i }));
	const title = d.title || words(d.name, d.unit);
	return h("div", { class: "grid", "data-distribution": d.name }, h("section", { class: "panel" }, h("h3", {}, `${title}: percentiles over time`),
		overTime(series.rows, lines, { unit: d.unit, zoomed: zoomed(page), picked: picked(page), ...axis(page), label: `${title}: ${some.join(", ")} with 95 % bands over time` }),
		series.step_ms > 0 && series.rows.length > 1 && h("p", { class: "soft" }, `at most one window of each ${human(series.step_ms * 1e6, "ns")}; drag to zoom, double-click to show a window`)),
	h("section", { class: "panel" }, h("h3", {}, `${title}: this window`), h("div", { class: "beside" }, cumulative(whole), scroll(`${title}: percentiles`, h("table", {}, h("tbody", {}, ...d.quantiles.map((q) => h("tr", {}, h("th", { scope: "row" }, q.name),
		h("td", { class: "n" }, human(q.value, d.unit)), h("td", { class: "iv" }, interval(q.low, q.high, d.unit, q.promise, q.value)))), h("tr", {}, h("th", { scope: "row" }, "values"), h("td", { class: "n" }, human(d.count)),
		h("td", { class: "iv" }, interval(d.count_low, d.count_high, undefined, undefined, d.count)))))))));
}

const drawable = (v) => v.kind !== "info" && typeof v.value === "number";

// worth are the two numbers that are drawn by default: answers first, and of those shares, rates and delays.
function worth(list) {
	const rank = (v) => (v.answer ? 0 : 2) + (["ratio", "bit/s", "ns"].includes(v.unit) ? 0 : 1), some = list.filter((v) => drawable(v) && (v.answer || ["ratio", "bit/s"].includes(v.unit)));
	return some.sort((a, b) => rank(a) - rank(b)).slice(0, 2);
}

// values are numbers of the report; selected ones are drawn over time.
async function values(page, key, algorithm, list) {
	const chosen = new Set((page.parameters.get("draw") ?? "").split(",").filter(Boolean));
	if (!page.parameters.has("draw")) for (const v of worth(list)) chosen.add(v.name);
	const shown = list.filter((v) => chosen.has(v.name) && drawable(v));
	const fields = shown.flatMap((v) => { const [l, u] = v.promise === "bound" ? ["_at_least", "_at_most"] : ["_low", "_high"]; return [v.name, v.name + l, v.name + u]; }).map((n) => "report." + n);
	const series = shown.length ? await page.windows({ key, algorithm, ...span(page) }, fields) : null;
	const charts = shown.map((v, i) => h("section", { class: "panel", "data-value": v.name }, h("h3", {}, words(v.name, v.unit)), overTime(series.rows, [{ label: words(v.name, v.unit), value: 2 + 3 * i, low: 3 + 3 * i, high: 4 + 3 * i, color: i }],
		{ unit: v.unit, zoomed: zoomed(page), picked: picked(page), ...axis(page), label: `${words(v.name, v.unit)} over time` })));
	const toggle = (v) => () => { const next = new Set(chosen); if (!next.delete(v.name)) next.add(v.name); page.change({ draw: [...next].join(",") || "," }); };
	const rows = list.map((v) => h("tr", {}, h("th", { scope: "row", title: v.help }, words(v.name, v.unit)), h("td", { class: "n" }, human(v.value, v.unit)), h("td", { class: "iv" }, interval(v.low, v.high, v.unit, v.promise, v.value)),
		h("td", {}, drawable(v) && h("button", { type: "button", "aria-pressed": String(chosen.has(v.name)), "aria-label": `draw ${words(v.name, v.unit)}`, onclick: toggle(v) }, "draw")), h("td", { class: "wide soft" }, v.help || "")));
	return [charts.length > 0 && h("div", { class: "grid" }, ...charts), h("details", { open: list.length <= 12 }, h("summary", {}, `${list.length} numbers`), scroll("numbers", h("table", { class: "values" }, h("tbody", {}, ...rows))))];
}

// drawn are the columns of a table that are drawn as a line per row (demand, use and limit of a slice).
async function drawn(page, key, algorithm, t) {
	const columns = t.columns.filter((c) => c.history), label = t.columns.findIndex((c) => c.label);
	if (columns.length === 0 || label < 0) return [];
	const rows = t.rows.slice(0, 4), fields = rows.flatMap((r) => columns.map((c) => `report.${t.name}[${r[label]}].${c.name}`)).filter((f) => !f.includes(","));
	if (fields.length !== rows.length * columns.length || fields.length === 0) return [];
	const series = await page.windows({ key, algorithm, ...span(page) }, fields);
	return rows.map((r, i) => h("section", { class: "panel", "data-history": t.name }, h("h3", {}, `${words(t.name)}: ${r[label]}`), overTime(series.rows, columns.map((c, n) => ({ label: words(c.name, c.unit), value: 2 + i * columns.length + n })),
		{ unit: columns[0].unit, zoomed: zoomed(page), picked: picked(page), ...axis(page), label: `${columns.map((c) => words(c.name)).join(", ")} of ${r[label]} over time` })));
}

async function tables(page, key, algorithm, report) {
	const out = [];
	const find = page.parameters.get("find");
	const histories = await Promise.all(report.tables.map((t) => drawn(page, key, algorithm, t)));
	for (const [n, t] of report.tables.entries()) {
		const state = page.state(algorithm + t.name);
		state.find = find;
		if (find && state.filter === undefined && t.rows.length > 5 && t.columns.some((c, i) => c.label && t.rows.some((r) => r[i] === find))) state.filter = find;
		const lines = histories[n];
		if (lines.length) out.push(h("div", { class: "grid" }, ...lines));
		if (t.rows.length > 0) out.push(bursts(t, report.window.start_ms, report.window.end_ms), table(t, state));
	}
	const none = report.tables.filter((t) => t.rows.length === 0).map(title);
	if (none.length) out.push(h("p", { class: "soft" }, `Nothing in this window: ${none.join(", ")}`));
	return out;
}

// byNetwork puts what lean and reorder of an instance measure into one table.
async function byNetwork(page, key, algorithm, report) {
	if (algorithm !== "lean" && algorithm !== "reorder") return null;
	const all = (await page.ask("instances")).instances.find((i) => i.key === key)?.algorithms ?? [];
	const of = async (name) => (name === algorithm ? report : all.some((a) => a.name === name) ? page.ask("reports", { key, algorithm: name, at: page.at }) : null);
	const [lean, reorder] = await Promise.all([of("lean"), of("reorder")]);
	const t = networks(lean, reorder, all.find((a) => a.name === "reorder")?.params), state = page.state("networks");
	state.find = page.parameters.get("find");
	return t && table(t, state);
}

const flat = (o, prefix = "") => Object.entries(o || {}).flatMap(([k, v]) => (v !== null && typeof v === "object" && !Array.isArray(v) ? flat(v, `${prefix}${k} `) : [[prefix + words(k), v]]));

function details(report, measuring) {
	const part = (title, pairs, unit) => pairs.length > 0 && h("section", { class: "panel" }, h("h3", {}, title), scroll(title, h("table", {}, h("tbody", {}, ...pairs.map(([k, v]) => h("tr", {}, h("th", { scope: "row" }, k),
		h("td", { class: typeof v === "number" ? "n" : "wide" }, human(v, unit))))))));
	return h("details", { class: "fold" }, h("summary", {}, "Registers, what was lost, packets and parameters"), h("div", { class: "grid" }, part("Registers", flat(report.memory), "bytes"), part("Lost", flat(report.lost)),
		part("Packets", flat(report.packets)), part("Parameters", flat(measuring?.params))));
}

function opened(page) {
	const key = page.parameters.get("key");
	const mine = (kind, e) => kind === "window" && e.key === key && e.algorithm === algorithm;
	let algorithm = page.parameters.get("algorithm"), measuring;
	page.section(async () => {
		const all = await page.ask("instances"), i = all.instances.find((x) => x.key === key);
		if (!i) return [h("p", { class: "error" }, `There is no instance ${key}.`)];
		const first = !algorithm;
		algorithm ||= (i.algorithms.find((a) => a.delay) || i.algorithms[0]).name;
		measuring = i.algorithms.find((a) => a.name === algorithm);
		if (first) page.sections.slice(1).forEach((s) => page.redraw(s));
		return [h("h2", {}, `${key}: ${algorithm}`), h("p", { class: "soft" }, measuring?.summary || ""), h("div", { class: "tabs", role: "navigation", "aria-label": "Algorithms" }, ...i.algorithms.map((a) =>
			h("a", { href: page.link("instance", { key, algorithm: a.name, at: page.parameters.get("at") }), "aria-current": a.name === algorithm ? "page" : undefined }, a.name)))];
	});
	page.section(async () => {
		if (!algorithm) return [];
		const report = await page.ask("reports", { key, algorithm, at: page.at });
		const w = report.window, out = [h("p", { class: "window" }, `window ${w.number}, ${clock(w.start_ms)} to ${clock(w.end_ms)}${w.stretched ? ", stretched" : ""}${w.cut ? ", cut" : ""} `,
			page.parameters.get("at") && h("a", { href: page.link("instance", { key, algorithm }) }, "back to the latest"))];
		for (const n of report.notes) out.push(h("p", { class: "note" }, n));
		if (report.hosts) out.push(hosts(report.hosts));
		const parts = await Promise.all([...report.distributions.map((d) => distribution(page, key, algorithm, d)), byNetwork(page, key, algorithm, report), values(page, key, algorithm, report.values), tables(page, key, algorithm, report)]);
		return [...out, ...parts.flat(), details(report, measuring)];
	}, mine);
}

// --- hosts, and the state of the process

function hosts(x) {
	return h("p", { class: x.missing > 0 ? "error" : "soft" }, `${x.merged} of ${x.known} hosts${x.missing > 0 ? "; missing: " + x.missing_names.join(", ") : ""}`);
}

// records draws a list of objects as a table, whatever their fields.
function records(title, list) {
	if (!Array.isArray(list) || list.length === 0 || typeof list[0] !== "object") return null;
	const names = [...new Set(list.flatMap((o) => Object.keys(o)))];
	const text = (v) => (v === null || v === undefined ? "-" : typeof v === "object" ? (Array.isArray(v) ? v.map((x) => x.name ?? x).join(", ") : flat(v).map(([k, n]) => `${k} ${human(n)}`).join(", ")) || "-" : human(v));
	return h("section", { class: "panel" }, h("h3", {}, title), scroll(title, h("table", {}, h("thead", {}, h("tr", {}, ...names.map((n) => h("th", { scope: "col" }, words(n))))),
		h("tbody", {}, ...list.map((o) => h("tr", {}, ...names.map((n) => h("td", { class: typeof o[n] === "number" ? "n" : "" }, text(o[n])))))))));
}

async function network(page) {
	const [all, state] = await Promise.all([page.ask("instances"), page.ask("health")]);
	const merged = all.instances.flatMap((i) => i.algorithms.filter((a) => a.hosts).map((a) => ({ instance: i.key, algorithm: a.name, hosts: a.hosts.merged, of: a.hosts.known, missing: a.hosts.missing.join(", ") || "none" })));
	const measuring = all.instances.flatMap((i) => i.algorithms.map((a) => ({ instance: i.key, interfaces: i.interfaces.join(", "), algorithm: a.name, window: a.window.number, ended: clock(a.window.end_ms), packets: a.seen,
		"not measured": a.lost })));
	const x = state.health, reasons = x.reasons || [];
	return [h("h2", {}, `${state.failing ? "Failing" : x.status || "ok"}`), ...reasons.map((t) => h("p", { class: "error" }, t)), records("Hosts in the latest windows", merged), records("What measures", measuring), ...Object.entries(x).map(([name, v]) => records(words(name), v)),
		h("section", { class: "panel" }, h("h3", {}, "The process"), scroll("process", h("table", {}, h("tbody", {}, ...flat(x).filter(([, v]) => !Array.isArray(v)).map(([k, v]) => h("tr", {}, h("th", { scope: "row" }, k), h("td", { class: "wide" }, human(v))))))))];
}

async function parameters(page) {
	const all = (await page.ask("parameters")).algorithms;
	return [h("h2", {}, "Algorithms and their parameters"), ...all.map((a) => h("details", {}, h("summary", {}, `${a.name}: ${a.summary}`), h("p", { class: "soft" }, a.paper), scroll(a.name, h("table", {}, h("thead", {}, h("tr", {},
		...["key", "default", "allowed", "help"].map((t) => h("th", { scope: "col" }, t)))), h("tbody", {}, ...a.params.map((p) => h("tr", {}, h("th", { scope: "row" }, p.key), h("td", {}, p.default || "-"),
		h("td", {}, p.choices?.join(", ") || [p.min && "from " + p.min, p.max && "to " + p.max].filter(Boolean).join(" ") || p.type), h("td", { class: "wide" }, p.help))))))))];
}

export const views = {
	findings: { title: "Findings", open: (page) => { page.section(() => findings(page), (kind) => kind === "finding"); page.section(() => instances(page), (kind) => kind === "window"); } },
	instance: { open: opened },
	hosts: { title: "Hosts and health", open: (page) => page.section(() => network(page), (kind) => kind === "window") },
	parameters: { title: "Parameters", open: (page) => page.section(() => parameters(page)) },
};
