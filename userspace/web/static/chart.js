// Charts: lines with bands over time, and steps of a distribution. uPlot draws them.
import { h } from "./dom.js";
import { human } from "./units.js";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const color = (i) => css(`--c${i % 6}`);

const fade = (c) => c + "33"; // colours are #rrggbb

// A chart is drawn once its width is known, which is that of an empty element at its top. Of a view that opens, the first two are drawn in the first frame and the rest one by
// one after it; later ones at once.
const charts = new Map(), later = [];
let first = 2;

export function fresh() {
	first = 2;
	later.length = 0;
}

const resizer = new ResizeObserver((list) => {
	for (const { target, contentRect } of list) {
		const chart = charts.get(target), width = Math.floor(contentRect.width);
		if (!target.isConnected) { // not yet, or no longer
			if (!chart.width) continue;
			resizer.unobserve(target);
			charts.delete(target);
			chart.holder.plot?.destroy();
		} else if (width > 20) {
			const waits = chart.width > 0 && !chart.holder.plot;
			chart.width = width;
			if (chart.holder.plot) chart.holder.plot.setSize({ width, height: chart.holder.plot.height });
			else if (!waits) draw(chart);
		}
	}
});

function draw(chart) {
	if (first > 0) {
		first--;
		chart.build();
	} else if (later.push(chart) === 1) requestAnimationFrame(() => setTimeout(rest));
}

function rest() {
	const chart = later.shift();
	if (chart?.holder.isConnected) chart.build();
	if (later.length > 0) setTimeout(rest);
	else first = Infinity;
}

function make(options, data, label, ready) {
	const ruler = h("div", { class: "ruler" }), holder = h("div", { class: "chart", role: "img", "aria-label": label }, ruler), chart = { holder, width: 0 };
	chart.build = () => {
		holder.plot = new window.uPlot({ width: chart.width, height: 220, padding: [12, 34, 0, 0], legend: { live: true }, ...options }, data, holder);
		ready?.(holder.plot);
	};
	charts.set(ruler, chart);
	resizer.observe(ruler);
	return holder;
}

// binary are steps of an axis of bytes.
const binary = Array.from({ length: 48 }, (_, n) => 2 ** n);

// decades labels 1, 2 and 5 of each power of ten if there is space for them (50 pixels each), else the powers alone.
const decades = (u, list) => {
	const wide = u.bbox.width / devicePixelRatio / Math.log10(u.scales.x.max / u.scales.x.min) < 165;
	return list.map((v) => { const lead = Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9)); return lead === 1 || (!wide && (lead === 2 || lead === 5)) ? v : null; });
};

const axis = (unit, size = 78) => ({ incrs: unit === "bytes" ? binary : undefined, stroke: css("--soft"), grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1 }, size,
	values: unit === undefined ? undefined : (_, list) => list.map((v) => (v === null ? "" : human(v, unit))) });

// hours writes the times of an axis: all clocks here are UTC.
const hours = () => ({ ...axis(undefined, 40), space: 70, values: (u, list) => {
	const wide = u.scales.x.max - u.scales.x.min;
	return list.map((s) => { const text = new Date(s * 1e3).toISOString(); return wide > 2 * 86400 ? text.slice(5, 10) : wide > 600 ? text.slice(11, 16) : text.slice(11, 19); });
} });

// last is the latest value while no cursor is over a chart.
const last = (u, v, series, i) => (i === null || i === undefined ? u.data[series]?.findLast((x) => x !== null) : v);

// least is the height of an axis whose values are all zero.
const least = { ns: 1e6, "bit/s": 1e6, bytes: 1024 };

const utc = (ts) => window.uPlot.tzDate(new Date(ts * 1e3), "Etc/UTC");

// overTime draws lines [{label, color, unit, rows, value, low, high}]; columns are places in a row of /windows. zoomed(from, to) and picked(at) get milliseconds.
export function overTime(rows, lines, { unit, zoomed, picked, label, range, live }) {
	if (live && rows.length > 1) range = [Math.min(Math.max(range[0], rows[0][0] / 1e3), range[1] - 30), range[1]]; // a run that started later than the range
	const data = [rows.map((r) => r[1] / 1e3)], series = [{ label: "UTC", value: (u, v, s, i) => { const at = last(u, v, s, i); return at === null || at === undefined ? "-" : new Date(at * 1e3).toISOString().slice(0, 19).replace("T", " "); } }], bands = [];
	lines.forEach((l, i) => {
		const c = color(l.color ?? i);
		if (l.low !== undefined && rows.some((r) => r[l.low] !== null)) {
			data.push(rows.map((r) => r[l.high]), rows.map((r) => r[l.low]));
			const edge = (name) => ({ label: `${l.label} ${name}`, class: "edge", stroke: "transparent", width: 0, points: { show: false }, value: (_, v) => human(v, unit) });
			series.push(edge("high"), edge("low"));
			bands.push({ series: [series.length - 2, series.length - 1], fill: fade(c) });
		}
		data.push(rows.map((r) => r[l.value]));
		series.push({ label: l.label, stroke: c, width: 2, spanGaps: false, dash: [[], [6, 3], [2, 3]][Math.floor(i / 2) % 3], points: { show: rows.length < 60, size: 4 }, value: (u, v, s, i) => human(last(u, v, s, i), unit) });
	});
	const options = { series, bands, tzDate: utc, axes: [hours(), axis(unit)], scales: { x: range ? { range: () => range } : {}, y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high || least[unit] || 1) * 1.05] } },
		cursor: { drag: { x: true, y: false, setScale: false } },
		hooks: { setSelect: [(u) => { if (u.select.width > 8) zoomed?.(u.posToVal(u.select.left, "x") * 1e3, u.posToVal(u.select.left + u.select.width, "x") * 1e3); u.setSelect({ width: 0, height: 0, left: 0, top: 0 }, false); }] } };
	return make(options, data, label, picked && ((plot) => plot.over.addEventListener("dblclick", () => { const i = plot.cursor.idx; if (i !== null && rows[i]) picked(rows[i][1]); })));
}

// cumulative draws the steps of a distribution on a logarithmic axis.
export function cumulative(d) {
	const steps = d.steps.filter((s) => s.le > 0);
	if (steps.length < 2) return h("p", { class: "soft" }, "Too few values for a distribution.");
	const stepped = d.steps_from === "registers" ? window.uPlot.paths.stepped({ align: 1 }) : undefined;
	return make({ scales: { x: { time: false, distr: 3 }, y: { range: [0, 1] } }, axes: [{ ...axis(d.unit, 40), incrs: undefined, filter: decades }, axis("ratio")],
		series: [{ label: "at most", value: (_, v) => (v === null || v === undefined ? "-" : human(v, d.unit)) }, { label: "share", stroke: color(0), width: 2, fill: fade(color(0)), paths: stepped, value: (_, v) => human(v, "ratio") }] },
	[steps.map((s) => s.le), steps.map((s) => s.share)], `cumulative distribution of ${d.title || d.name}`);
}
