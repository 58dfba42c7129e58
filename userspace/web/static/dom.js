// Elements from code. Text is always a text node: names from traffic never become markup. Invisible characters and those that change the direction of text are written as
// escape, as in top.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

export const safe = (text) => (typeof text === "string" ? text.replace(hidden, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")) : text);

export function h(tag, attributes, ...children) {
	const e = document.createElement(tag);
	set(e, attributes);
	e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false).map(safe));
	return e;
}

export function svg(tag, attributes, ...children) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
	set(e, attributes);
	e.append(...children.map(safe));
	return e;
}

function set(e, attributes) {
	for (const [name, value] of Object.entries(attributes || {})) {
		if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
		else if (value === true) e.setAttribute(name, "");
		else if (value !== false && value !== undefined && value !== null) e.setAttribute(name, String(value));
	}
}

// tall is one that scrolls both ways, so that a hundred rows do not push the rest away.
export const tall = (label, ...children) => h("div", { class: "scroll tall", role: "region", "aria-label": label, tabindex: 0 }, ...children);

// scroll is a region that a keyboard can move, for what may be wider than the screen.
export const scroll = (label, ...children) => h("div", { class: "scroll", role: "region", "aria-label": label, tabindex: 0 }, ...children);
