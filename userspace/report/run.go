package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report/ordered"
	"github.com/xdpmon/xdpmon/userspace/report/running"
)

// Run describes a run: the first JSON line, and the head of a table.
type Run struct {
	Version    string
	Command    string // the verb: attach, replay, demo
	Kernel     string
	Hook       string     // as configured: auto, xdp, tc; empty in a replay
	Mode       string     // as configured
	Direction  string     // as configured
	Attached   []Attached // as attached
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

// InstanceOf names the instance that measures an interface; an instance of a command is named by its interfaces.
func (r Run) InstanceOf(iface string) string {
	if r.Each {
		return iface
	}
	return strings.Join(r.Interfaces, ",")
}

// RunAlgorithm is an algorithm of the run with the parameters that it was given or has by default.
type RunAlgorithm struct {
	Name     string
	Params   map[string]any
	WindowNS int64 // length of its windows; 0: that of the run
}

// running are the windows of a run that starts.
func (r Run) running(started time.Time) running.Windows {
	w := running.Windows{Started: started}
	for _, a := range r.Algorithms {
		w.Add(a.Name, cmp.Or(a.WindowNS, r.WindowNS))
	}
	return w
}

// Attached is one program on one interface.
type Attached struct {
	Interface string
	Hook      string // xdp, tc
	Mode      string // of XDP: native, generic
	Direction string // ingress, egress
	Via       string // the kernel's mechanism: xdp, tcx, clsact
}

func (a Attached) object() *ordered.Object {
	o := ordered.New()
	o.Set("interface", a.Interface)
	o.Set("hook", a.Hook)
	o.Set("mode", a.Mode)
	o.Set("direction", a.Direction)
	o.Set("via", a.Via)
	return o
}

// where is the attachment point for people: "XDP ingress (native)", "TC egress", "start of transmission".
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
	o := ordered.New()
	o.Set("version", r.Version)
	o.Set("command", r.Command)
	o.Set("kernel", r.Kernel)
	o.Set("hook", r.Hook)
	o.Set("mode", r.Mode)
	o.Set("direction", r.Direction)
	o.Set("attached", r.attached())
	if r.Instance != "" {
		o.Set("instance", r.Instance)
	}
	o.Set("interfaces", orEmpty(r.Interfaces))
	o.Set("files", orEmpty(r.Files))
	o.Set("window_ns", r.WindowNS)
	o.Set("seed", r.Seed)
	o.Set("hash", r.Hash)
	o.Set("clock", r.Clock.object())
	o.Set("algorithms", r.algorithms())
	outer := ordered.New()
	outer.Set("run", o)
	return outer.MarshalJSON()
}

// unix2000 separates the two clocks: ns since 1970 are above it, ns since boot below.
const unix2000 = 946684800e9

// Known reports whether the wall clock time of a time of the clock is known.
func (c Clock) Known(ns int64) bool { return ns+c.UnixOffsetNS >= unix2000 }

// utc formats a time of the clock by RFC 3339; nil if wall clock time is not known.
func (c Clock) utc(ns int64) any {
	if !c.Known(ns) {
		return nil
	}
	return UTC(ns + c.UnixOffsetNS)
}

// UTC formats ns since 1970 by RFC 3339, to the millisecond.
func UTC(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// When writes a time of the packets' clock for people; offset added to it gives ns since 1970.
func When(ns, offset int64) string {
	if ns+offset < unix2000 {
		return fmt.Sprintf("%.6f s", float64(ns)/1e9)
	}
	return UTC(ns + offset)
}

// TimeOfDay is When without the date (UTC): people know it, and a whole time is cut where a table is narrow.
func TimeOfDay(ns, offset int64) string {
	if ns+offset < unix2000 {
		return When(ns, offset)
	}
	return time.Unix(0, ns+offset).UTC().Format("15:04:05.000000")
}

func (c Clock) object() *ordered.Object {
	o := ordered.New()
	o.Set("name", c.Name)
	o.Set("unix_offset_ns", c.UnixOffsetNS)
	return o
}

func (r Run) attached() []*ordered.Object {
	all := []*ordered.Object{}
	for _, a := range r.Attached {
		all = append(all, a.object())
	}
	return all
}

func (r Run) algorithms() []*ordered.Object {
	all := []*ordered.Object{}
	for _, a := range r.Algorithms {
		o := ordered.New()
		o.Set("name", a.Name)
		o.Set("params", sortedObject(a.Params))
		if a.WindowNS != 0 {
			o.Set("window_ns", a.WindowNS)
		}
		all = append(all, o)
	}
	return all
}

// orEmpty converts nil to an empty list, so that JSON readers need not handle null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
