// Requests to the API, and its stream.

export class Problem extends Error {
	constructor(status, detail) { super(detail); this.status = status; }
}

export async function ask(path, parameters, signal) {
	const q = new URLSearchParams();
	for (const [name, value] of Object.entries(parameters || {})) if (value !== undefined && value !== null && value !== "") q.set(name, value);
	const text = q.toString();
	const failed = (error) => {
		throw error.name === "AbortError" ? error : new Problem(0, `${location.host} does not answer: xdpmon has ended there, or the network is interrupted. Look at its log (of the service xdpmon or xdpmon-coordinator: journalctl -u NAME), and start it again; this page asks again every three seconds.`);
	};
	const answer = await fetch(`/api/v1/${path}${text ? "?" + text : ""}`, { signal, headers: { Accept: "application/json" } }).catch(failed);
	if (answer.ok) return answer.json().catch(failed); // an answer that was cut is none
	const body = await answer.json().catch(() => ({}));
	throw new Problem(answer.status, body.detail || answer.statusText);
}

// follow calls on[event] for each event. EventSource reconnects by itself.
export function follow(on) {
	const source = new EventSource("/api/v1/stream");
	for (const name of ["hello", "window", "finding", "missed"]) source.addEventListener(name, (e) => on[name]?.(JSON.parse(e.data)));
	source.onerror = () => on.lost?.(source.readyState);
	return source;
}
