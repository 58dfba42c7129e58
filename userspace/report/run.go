package report

import (
	"strings"
	"time"
)

// Run describes what was started: the first JSON line, and the head of a table.
type Run struct {
	Version    string
	Command    string // the verb: attach, replay, demo
	Kernel     string
	Hook       string     // as asked for: auto, xdp, tc; empty in a replay
	Mode       string     // as asked for
	Direction  string     // as asked for
	Attached   []Attached // what became of it
	Instance   string     // of the agent; empty for other verbs
	Interfaces []string
	Each       bool // every interface is an instance of its own
	Files      []string
	WindowNS   int64  // 0: one window
	Seed       uint64 // 0: drawn at random and kept secret
	Hash       string // fast or crc
	Clock      Clock
	Algorithms []RunAlgorithm
}

// InstanceOf names the instance that measures an interface of a command: it has no name but its interfaces.
func (r Run) InstanceOf(iface string) string {
	if r.Each {
		return iface
	}
	return strings.Join(r.Interfaces, ",")
}

// RunAlgorithm is an algorithm of the run with the parameters that it was given or has by default.
type RunAlgorithm struct {
	Name   string
	Params map[string]any
}

// Attached is one program on one interface.
type Attached struct {
	Interface string
	Hook      string // xdp, tc
	Mode      string // of XDP: native, generic
	Direction string // ingress, egress
	Via       string // the kernel's mechanism: xdp, tcx, clsact
}

func (a Attached) object() *object {
	o := newObject()
	o.set("interface", a.Interface)
	o.set("hook", a.Hook)
	o.set("mode", a.Mode)
	o.set("direction", a.Direction)
	o.set("via", a.Via)
	return o
}

// where is the place for people: "XDP ingress (native)", "TC egress", "start of transmission".
func (a Attached) where() string {
	if a.Hook == "trace" {
		return "start of transmission"
	}
	text := strings.ToUpper(a.Hook) + " " + a.Direction
	if a.Mode != "" {
		text += " (" + a.Mode + ")"
	}
	return text
}

// Clock is what the windows' start and end are measured with.
type Clock struct {
	Name         string // "monotonic" (ns since boot) or "capture" (the capture's timestamps, ns since 1970)
	UnixOffsetNS int64  // add it to get ns since 1970
}

// MarshalJSON writes {"run":{...}}.
func (r Run) MarshalJSON() ([]byte, error) {
	o := newObject()
	o.set("version", r.Version)
	o.set("command", r.Command)
	o.set("kernel", r.Kernel)
	o.set("hook", r.Hook)
	o.set("mode", r.Mode)
	o.set("direction", r.Direction)
	o.set("attached", r.attached())
	if r.Instance != "" {
		o.set("instance", r.Instance)
	}
	o.set("interfaces", orEmpty(r.Interfaces))
	o.set("files", orEmpty(r.Files))
	o.set("window_ns", r.WindowNS)
	o.set("seed", r.Seed)
	o.set("hash", r.Hash)
	o.set("clock", r.Clock.object())
	o.set("algorithms", r.algorithms())
	outer := newObject()
	outer.set("run", o)
	return outer.MarshalJSON()
}

// unix2000 tells clocks apart: ns since 1970 are above it, ns since boot below.
const unix2000 = 946684800e9

// utc writes a time of the clock as RFC 3339 does; nil where wall clock time is not known.
func (c Clock) utc(ns int64) any {
	if ns+c.UnixOffsetNS < unix2000 {
		return nil
	}
	return UTC(ns + c.UnixOffsetNS)
}

// UTC writes ns since 1970 as RFC 3339 does, to the millisecond.
func UTC(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func (c Clock) object() *object {
	o := newObject()
	o.set("name", c.Name)
	o.set("unix_offset_ns", c.UnixOffsetNS)
	return o
}

func (r Run) attached() []*object {
	all := []*object{}
	for _, a := range r.Attached {
		all = append(all, a.object())
	}
	return all
}

func (r Run) algorithms() []*object {
	all := []*object{}
	for _, a := range r.Algorithms {
		o := newObject()
		o.set("name", a.Name)
		o.set("params", sortedObject(a.Params))
		all = append(all, o)
	}
	return all
}

// orEmpty makes an empty list of nil: a JSON reader that loops over it need not look for null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
