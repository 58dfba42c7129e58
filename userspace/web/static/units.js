// Numbers for people, by the units of a report.

const grouped = new Intl.NumberFormat("en");

const sig = (x, digits = 3) => {
	if (x === 0) return "0";
	const a = Math.abs(x);
	if (a >= 100) return grouped.format(Math.round(x));
	return String(Number(x.toPrecision(digits)));
};

const scaled = (x, steps) => {
	const a = Math.abs(x);
	for (const [factor, name] of steps) if (a >= factor) return sig(x / factor) + name;
	const [factor, name] = steps[steps.length - 1];
	return sig(x / factor) + name;
};

const times = [[1e9, " s"], [1e6, " ms"], [1e3, " µs"], [1, " ns"]];
const bytes = [[2 ** 30, " GiB"], [2 ** 20, " MiB"], [2 ** 10, " KiB"], [1, " B"]];
const bits = [[1e9, " Gbit/s"], [1e6, " Mbit/s"], [1e3, " kbit/s"], [1, " bit/s"]];
const counts = [[1e9, " G"], [1e6, " M"], [1e4, " k", 1e3], [1, ""]];

export function human(v, unit) {
	if (v === null || v === undefined) return "-";
	if (typeof v === "boolean") return v ? "yes" : "no";
	if (typeof v !== "number") return typeof v === "object" ? JSON.stringify(v) : String(v);
	switch (unit) {
	case "ns": return v === 0 ? "0" : scaled(v, times);
	case "bytes": return v === 0 ? "0" : scaled(v, bytes);
	case "bit/s": return v === 0 ? "0" : scaled(v, bits);
	case "ratio": return sig(100 * v) + " %";
	case "1/s": return sig(v) + "/s";
	}
	const a = Math.abs(v);
	if (a >= 1e9) return sig(v / 1e9) + counts[0][1];
	if (a >= 1e6) return sig(v / 1e6) + counts[1][1];
	if (a >= 1e4) return sig(v / 1e3) + " k";
	return sig(v);
}

// unitOf is the text after the number: " ms".
const unitOf = (text) => (text.includes(" ") ? text.slice(text.lastIndexOf(" ")) : "");

// interval is "(low .. high)", "[low .. high]" for bounds from theory, or nothing. A unit that all numbers share is only after the value.
export function interval(low, high, unit, promise, value) {
	const known = (x) => x !== undefined && x !== null;
	if (!known(low)) return known(high) ? `(at most ${human(high, unit)})` : "";
	if (!known(high)) return `(at least ${human(low, unit)})`;
	let a = human(low, unit), b = human(high, unit);
	const u = unitOf(b), shared = u !== "" && unitOf(a) === u;
	if (shared) a = a.slice(0, -u.length);
	if ((shared || a === "0") && known(value) && unitOf(human(value, unit)) === u) b = b.slice(0, b.length - u.length);
	return promise === "bound" ? `[${a} .. ${b}]` : `(${a} .. ${b})`;
}

// words makes a name readable: delay_ns is delay.
export const words = (name, unit) => {
	let text = name;
	if (unit === "ns" && text.endsWith("_ns")) text = text.slice(0, -3);
	if (unit === "bit/s" && text.endsWith("_bps")) text = text.slice(0, -4);
	return text.replaceAll("_", " ").replaceAll(".", " ");
};

export const clock = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ") + " UTC";
