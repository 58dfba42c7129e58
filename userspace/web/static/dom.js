// Elements from code. Text is always a text node: names that traffic chose never become markup.

export function h(tag, attributes, ...children) {
	const e = document.createElement(tag);
	set(e, attributes);
	e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
	return e;
}

export function svg(tag, attributes, ...children) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
	set(e, attributes);
	e.append(...children);
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
