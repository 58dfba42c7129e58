package structure

import (
	"maps"
	"strings"
)

// place is a variable, or a part of one, by its path in the program.
type place string

func (p place) field(name string) place { return p + "." + place(name) }

// parent of a field.
func (p place) parent() (place, bool) {
	i := strings.LastIndexByte(string(p), '.')
	if i < 0 {
		return "", false
	}
	return p[:i], true
}

// env maps variables to what they depend on. An assignment to a whole applies to its parts until they are assigned.
type env map[place]set

// assigned is what a place depends on; ok is false if nothing was assigned to it.
func (e env) assigned(p place) (s set, ok bool) {
	for q := p; ; {
		if s, ok = e[q]; ok {
			break
		}
		up, more := q.parent()
		if !more {
			break
		}
		q = up
	}
	return s, ok
}

// assign to all of a place.
func (w *walker) assign(p place, s set) {
	for q := range w.env {
		if strings.HasPrefix(string(q), string(p)+".") {
			delete(w.env, q)
		}
	}
	w.env[p] = s
}

// copyPlace assigns one struct to another, field by field.
func (w *walker) copyPlace(to, from place, guard set) {
	whole := w.read(from)
	parts := map[place]set{}
	for q, s := range w.env {
		if rest, ok := strings.CutPrefix(string(q), string(from)+"."); ok {
			parts[to+"."+place(rest)] = s.or(guard)
		}
	}
	w.assign(to, whole.or(guard))
	maps.Copy(w.env, parts)
}

// read is what a place and its parts depend on.
func (w *walker) read(p place) set {
	s, ok := w.env.assigned(p)
	if !ok {
		return w.first(p)
	}
	return s
}

// first is the content of a place before any assignment.
func (w *walker) first(p place) set {
	root, path, _ := strings.Cut(string(p), ".")
	half, what, is := strings.Cut(root, "/")
	switch {
	case !is || path == "":
		return set{}
	case what == "headers" && path == "tcp.flags":
		return w.flagBits(0xff)
	case what == "headers" && half == "Egress" && strings.HasPrefix(path, "bridged."):
		return set{} // the ingress has not assigned it
	case what == "headers":
		return w.names.of(headerSource(path))
	case what == "metadata": // zeros
		return set{}
	}
	field := path[strings.LastIndexByte(path, '.')+1:]
	if name, ok := metadataNames[field]; ok {
		return w.names.of(name)
	}
	return w.names.of("metadata " + field)
}

func (w *walker) flagBits(mask uint64) (s set) {
	for bit := range 8 {
		if mask>>bit&1 != 0 {
			s = s.or(w.names.of(flagSource(bit)))
		}
	}
	return s
}

// fork runs alternatives of which a packet takes one, and merges their assignments, which also depend on the decision.
func (w *walker) fork(decides set, alternatives ...func()) {
	before, guard, passed, found := w.env, w.guard, w.passed, w.found
	all := maps.Clone(passed)
	var ends []env
	var touched []reached
	for _, run := range alternatives {
		w.env, w.guard, w.passed, w.found = maps.Clone(before), guard.or(decides), maps.Clone(passed), reached{}
		run()
		touched = append(touched, w.found)
		ends = append(ends, w.env)
		maps.Copy(all, w.passed)
	}
	found.add(either(decides, touched))
	w.env, w.guard, w.passed, w.found = before, guard, all, found
	changed := map[place]bool{}
	for _, e := range ends {
		for p, s := range e {
			if old, ok := before[p]; !ok || old != s {
				changed[p] = true
			}
		}
		for p := range before {
			if _, ok := e[p]; !ok { // a whole was assigned
				changed[p] = true
			}
		}
	}
	merged := maps.Clone(before)
	for p := range changed {
		s := decides
		for _, e := range ends {
			if of, ok := e.assigned(p); ok {
				s = s.or(of)
			} else {
				s = s.or(w.first(p))
			}
		}
		merged[p] = s
	}
	w.env = merged
}
