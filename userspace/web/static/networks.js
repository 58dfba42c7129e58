// Loss, reordering and retransmission of an instance by the sender's network: lean's flows added up, next to reorder's prefixes.
import { bits } from "./table.js";

// network of an address, with the length that reorder's prefixes have.
function network(address, lengths) {
	const text = bits(address), six = text[0] === "6", length = six ? lengths.six : lengths.four, width = six ? 16 : 8;
	const all = text.slice(1, 1 + length).padEnd(six ? 128 : 32, "0").match(new RegExp(`.{${width}}`, "g")).map((b) => parseInt(b, 2));
	if (!six) return `${all.join(".")}/${length}`;
	while (all.length && all.at(-1) === 0) all.pop();
	return `${all.map((n) => n.toString(16)).join(":")}${all.length < 8 ? "::" : ""}/${length}`;
}

const counted = [["loss", "lost"], ["ooo", "out_of_order"], ["retrans", "retransmitted"]];

const rowsOf = (report, name) => {
	const t = report?.tables.find((x) => x.name === name);
	return t ? t.rows.map((r) => Object.fromEntries(t.columns.map((c, i) => [c.name, r[i]]))) : [];
};

// networks is a table of the API's form, or null where nothing was lost, sent again or out of order.
export function networks(lean, reorder, params) {
	const lengths = { four: Number(params?.prefix ?? 24), six: Number(params?.prefix6 ?? 48) };
	const all = new Map();
	const of = (name) => all.get(name) ?? all.set(name, { flows: new Set() }).get(name);
	for (const [table, column] of counted) for (const r of rowsOf(lean, table)) {
		const n = of(network(r.src, lengths));
		n.flows.add([r.src, r.sport, r.dst, r.dport, r.proto].join());
		n[column] = (n[column] ?? 0) + r[column];
		if (typeof r[column + "_at_least"] === "number") n[column + "_at_least"] = (n[column + "_at_least"] ?? 0) + r[column + "_at_least"];
	}
	for (const r of rowsOf(reorder, "prefixes")) Object.assign(of(r.prefix), { share: r.share, share_at_least: r.share_at_least, share_at_most: r.share_at_most });
	if (all.size === 0) return null;
	const columns = [{ name: "network", label: true, help: "the sender's network" }, lean && { name: "flows", help: "flows that lean's tables list" }].concat(
		lean ? counted.flatMap(([, c]) => [{ name: c, least: c + "_at_least" }, { name: c + "_at_least" }]) : [],
		reorder ? [{ name: "share", least: "share_at_least", most: "share_at_most", unit: "ratio", help: "out-of-order share of the network's packets, as reorder measures it" }, { name: "share_at_least" }, { name: "share_at_most" }] : []).filter(Boolean);
	const worst = (n) => counted.reduce((sum, [, c]) => sum + (n[c] ?? 0), 0);
	const rows = [...all].sort(([, a], [, b]) => worst(b) - worst(a) || (b.share ?? 0) - (a.share ?? 0))
		.map(([name, n]) => columns.map((c) => (c.name === "network" ? name : c.name === "flows" ? n.flows.size || null : n[c.name] ?? null)));
	const sums = lean && "Segments of the listed flows, added up; flows that are not listed may add to them.";
	const other = reorder ? "The share is that of all watched packets of a network." : "";
	return { name: "networks", title: "Loss, reordering and retransmission by the sender's network", help: [sums, other].filter(Boolean).join(" "), columns, rows, total: rows.length };
}
