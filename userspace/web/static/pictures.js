// Pictures that the chart library does not have: the time line of findings, bursts of a queue, sparks. All are SVG.
import { h, svg, scroll } from "./dom.js";
import { human, clock } from "./units.js";

// ticks are times at the lower edge.
function ticks(from, to, y, wide) {
	const out = [], span = to - from, [begin, end, width] = span > 86400e3 ? [5, 16, 80] : span > 1200e3 ? [11, 16, 40] : [11, 19, 58];
	const n = Math.max(1, Math.min(6, Math.floor(wide / (2 * width))));
	for (let i = 0; i <= n; i++) {
		const x = (wide * i) / n;
		out.push(svg("line", { class: "axis", x1: x, x2: x, y1: 0, y2: y }),
			svg("text", { x, y: y + 14, "text-anchor": i === 0 ? "start" : i === n ? "end" : "middle" }, new Date(from + (span * i) / n).toISOString().slice(begin, end).replace("T", " ")));
	}
	return out;
}

// label is after its bar, before it, or on it if neither side has space.
function label(text, begin, end, y, wide) {
	const long = 7 * text.length;
	if (wide - end > long) return svg("text", { x: end + 4, y }, text);
	if (begin > long) return svg("text", { x: begin - 4, y, "text-anchor": "end" }, text);
	return svg("text", { class: "on", x: begin + 6, y }, text);
}

// timeline shows when findings were active.
export function timeline(findings, from, to, wide) {
	const row = 20, y = row * Math.max(1, findings.length), place = (ms) => Math.max(0, Math.min(wide, (wide * (ms - from)) / (to - from)));
	const bars = findings.map((f, i) => {
		const begin = f.since / 1e6, end = f.until ? f.until / 1e6 : to, x = place(begin);
		const text = `${f.severity}: ${f.subject.name}, ${f.kind}, ${clock(begin)} to ${f.until ? clock(end) : "now"}`;
		return svg("g", {}, svg("title", {}, text), svg("rect", { class: "bar " + f.severity, x, y: i * row + 3, width: Math.max(4, place(end) - x), height: row - 6, rx: 2 }),
			label(`${f.kind} ${f.subject.name}`.slice(0, Math.floor(wide / 14)), x, Math.max(x + 4, place(end)), i * row + 14, wide));
	});
	return scroll("time line of findings", svg("svg", { class: "timeline", viewBox: `0 0 ${wide} ${y + 20}`, width: wide, height: y + 20, role: "img", "aria-label": `${findings.length} findings over time; the list has them in words` },
		...ticks(from, to, y, wide), ...bars));
}

// bursts shows a queue's bursts: length, height, and culprit.
export function bursts(table, from, to) {
	const at = (name) => table.columns.findIndex((c) => c.name === name);
	const [begin, length, peak, culprit] = ["begin_ns", "length_ns", "peak_ns", "culprit"].map(at);
	if ([begin, length, peak].includes(-1) || table.rows.length === 0) return null;
	const rows = table.rows, first = Math.min(...rows.map((r) => r[begin])), last = Math.max(...rows.map((r) => r[begin] + r[length])), span = Math.max(1, last - first);
	const most = Math.max(...rows.map((r) => r[peak]), 1), y = 120, wide = 1000;
	const bars = rows.map((r) => {
		const x = ((r[begin] - first) / span) * wide, high = (r[peak] / most) * (y - 10);
		return svg("g", {}, svg("title", {}, `${human(r[length], "ns")} long, peak ${human(r[peak], "ns")}${culprit >= 0 && r[culprit] ? ", culprit " + r[culprit] : ""}`),
			svg("rect", { class: "burst", x, y: y - high, width: Math.max(3, (r[length] / span) * wide), height: high }));
	});
	return h("figure", {}, h("figcaption", { class: "soft" }, rows.length === 1 ? `One burst, with a longest delay of ${human(most, "ns")}` : `${rows.length} bursts within ${human(span, "ns")}, with a longest delay of ${human(most, "ns")}; the table below has each`),
		scroll("bursts of the queue", svg("svg", { viewBox: `0 0 ${wide} ${y}`, width: wide, height: y, role: "img", "aria-label": `bursts of the queue: ${rows.length}` }, ...bars)));
}

// spark is a small line.
export function spark(values) {
	const list = values.filter((v) => v !== null);
	if (list.length < 2) return h("span", { class: "soft" }, "-");
	const most = Math.max(...list, 1), w = 120, y = 24;
	return svg("svg", { width: w, height: y, viewBox: `0 0 ${w} ${y}`, role: "img", "aria-label": `from ${human(list[0], "1/s")} to ${human(list.at(-1), "1/s")}, at most ${human(most, "1/s")}` },
		svg("polyline", { class: "spark", points: list.map((v, i) => `${((i / (list.length - 1)) * w).toFixed(1)},${(y - 2 - (v / most) * (y - 4)).toFixed(1)}`).join(" ") }));
}

// meter is a share as a bar.
export const meter = (share) => svg("svg", { class: "meter", width: 60, height: 8, viewBox: "0 0 60 8", "aria-hidden": "true" }, svg("rect", { width: Math.max(0, Math.min(60, 60 * share)), height: 8 }));
