// Tables of a report, drawn from their columns: intervals are next to their value, rows are sorted and filtered, prefixes become a tree.
import { h, tall } from "./dom.js";
import { human, interval, words } from "./units.js";
import { meter } from "./pictures.js";

// bits of an address as a text of 0 and 1, so that a prefix is a prefix of the text.
export function bits(prefix) {
	const [address, length] = String(prefix).split("/");
	let out = "";
	if (address.includes(":")) {
		const [head, tail] = address.split("::");
		const a = head ? head.split(":") : [], b = tail ? tail.split(":") : [];
		const all = tail === undefined ? a : [...a, ...Array(Math.max(0, 8 - a.length - b.length)).fill("0"), ...b];
		out = "6" + all.map((p) => parseInt(p || "0", 16).toString(2).padStart(16, "0")).join("");
	} else out = "4" + address.split(".").map((p) => Number(p).toString(2).padStart(8, "0")).join("");
	return out.slice(0, 1 + (length === undefined ? out.length : Number(length)));
}

// tree orders rows so that a prefix is below the one that contains it, and returns each row's depth.
export function tree(rows, at) {
	const keyed = rows.map((row) => ({ row, key: bits(row[at]) })).sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
	const open = [];
	return keyed.map(({ row, key }) => {
		while (open.length && !key.startsWith(open.at(-1))) open.pop();
		open.push(key);
		return { row, depth: open.length - 1 };
	});
}

// nameOf is the name of an address, network or port as text.
export function nameOf(n) {
	const system = n.as ? `AS${n.as} ${n.as_name || ""}`.trim() : n.as_name;
	return [n.service, n.guest && n.guest.name, n.dns, system, n.country].filter(Boolean).join(", ");
}

// title is a table's name in words.
export const title = (t) => t.title || words(t.name);

export function table(t, state) {
	const place = new Map(t.columns.map((c, i) => [c.name, i]));
	const ends = new Set(t.columns.flatMap((c) => [c.low, c.high, c.least, c.most, c.err]).filter(Boolean));
	const shown = t.columns.map((c, i) => ({ ...c, i })).filter((c) => !c.hidden && !ends.has(c.name));
	const prefix = shown.find((c) => c.label && c.name === "prefix");
	const numeric = (c) => t.rows.some((r) => typeof r[c.i] === "number");
	const name = title(t);
	const body = h("tbody", {}), count = h("span", { class: "soft", role: "status" });
	const cell = (row, c) => {
		const at = (n) => (n ? row[place.get(n)] : undefined);
		let text = interval(at(c.low) ?? at(c.least), at(c.high) ?? at(c.most), c.unit, c.low && at(c.low) !== null ? "interval" : "bound", row[c.i]);
		if (!text && typeof at(c.err) === "number") text = `± ${human(at(c.err), c.unit)}`;
		const number = c.label && typeof row[c.i] === "number" && !c.unit; // a port, a protocol: not a quantity
		return [number ? String(row[c.i]) : human(row[c.i], c.unit), known(row, c), text && h("span", { class: "iv" }, " " + text), c.name === "share" && typeof row[c.i] === "number" && meter(row[c.i])];
	};
	// known are the names of a cell's addresses, networks and ports.
	const known = (row, c) => {
		const list = ((t.names || [])[t.rows.indexOf(row)] || []).filter((n) => n.column === c.name);
		return list.length > 0 && h("span", { class: "iv" }, " " + list.map(nameOf).join(" > "));
	};
	const draw = () => {
		const want = (state.filter || "").toLowerCase();
		let rows = t.rows.filter((r, i) => !want || shown.some((c) => String(r[c.i]).toLowerCase().includes(want)) || ((t.names || [])[i] || []).some((n) => nameOf(n).toLowerCase().includes(want)));
		const sort = shown.find((c) => c.name === state.sort);
		let list;
		if (sort) {
			const order = state.down ? -1 : 1;
			rows = [...rows].sort((a, b) => order * (typeof a[sort.i] === "number" ? (a[sort.i] ?? -Infinity) - (b[sort.i] ?? -Infinity) : String(a[sort.i]).localeCompare(String(b[sort.i]))));
			list = rows.map((row) => ({ row, depth: 0 }));
		} else list = prefix ? tree(rows, prefix.i) : rows.map((row) => ({ row, depth: 0 }));
		body.replaceChildren(...list.map(({ row, depth }) => h("tr", { class: state.find && shown.some((c) => c.label && row[c.i] === state.find) ? "found" : "" }, ...shown.map((c) =>
			h("td", { class: numeric(c) ? "n" : "" }, c === prefix && depth > 0 && h("span", { class: "depth", "aria-label": `level ${depth}` }, "  ".repeat(depth - 1) + "└ "), cell(row, c))))));
		count.replaceChildren(`${list.length} of ${t.total} rows`);
	};
	const heads = shown.map((c) => h("th", { scope: "col", class: numeric(c) ? "n" : "", title: c.help, "aria-sort": "none" }, h("button", { type: "button", onclick: (e) => {
		state.down = state.sort === c.name ? !state.down : true;
		state.sort = c.name;
		for (const th of e.currentTarget.closest("tr").children) th.setAttribute("aria-sort", "none");
		e.currentTarget.parentElement.setAttribute("aria-sort", state.down ? "descending" : "ascending");
		draw();
	} }, words(c.name, c.unit))));
	draw();
	const filter = h("input", { type: "search", "aria-label": `filter ${name}`, placeholder: "filter", value: state.filter || "", oninput: (e) => { state.filter = e.currentTarget.value; draw(); } });
	return h("section", { class: "panel", "data-table": t.name }, h("h3", {}, name), t.help && h("p", { class: "soft" }, t.help), t.rows.length > 5 && h("div", { class: "tools" }, filter, count),
		tall(name, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), body)));
}
