package host

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/loader/drops"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Drops is what the kernel dropped in a window.
type Drops struct {
	From       time.Time        `json:"from"`
	To         time.Time        `json:"to"`
	Interfaces []InterfaceDrops `json:"interfaces"`
	// Unknown is what was dropped anywhere on the host without a known interface.
	Unknown []Drop `json:"unknown_interface"`
}

// InterfaceDrops is what was dropped on an interface.
type InterfaceDrops struct {
	Interface string `json:"interface"`
	Removed   bool   `json:"removed,omitempty"` // it no longer exists
	Dropped   []Drop `json:"dropped"`
}

// Drop is what was dropped for a reason.
type Drop struct {
	Reason       string `json:"reason"`
	Meaning      string `json:"meaning,omitempty"`
	Packets      uint64 `json:"packets"`
	Bytes        uint64 `json:"bytes"`
	PacketsTotal uint64 `json:"packets_total"` // since the start
	BytesTotal   uint64 `json:"bytes_total"`
}

// DropsSince is what the counts of an interface have risen by since earlier ones, the most packets first.
func DropsSince(earlier, now []drops.Count) []Drop {
	list := []Drop{}
	for _, n := range now {
		d := Drop{n.Reason, Meaning(n.Reason), n.Packets, n.Bytes, n.Packets, n.Bytes}
		if i := slices.IndexFunc(earlier, func(e drops.Count) bool { return e.Reason == n.Reason }); i >= 0 {
			d.Packets, d.Bytes = n.Packets-earlier[i].Packets, n.Bytes-earlier[i].Bytes
		}
		list = append(list, d)
	}
	slices.SortStableFunc(list, func(a, b Drop) int { return cmp.Compare(b.Packets, a.Packets) })
	return list
}

// Lines is a window as text: a line for each reason that occurred in it.
func (d Drops) Lines() []string {
	took := d.To.Sub(d.From)
	rows := [][]string{{"INTERFACE", "REASON", "PACKETS", "RATE", "SINCE START", "MEANING"}}
	var sum uint64
	add := func(name string, list []Drop) {
		for _, n := range list {
			if n.Packets > 0 {
				sum += n.Packets
				rows = append(rows, []string{name, n.Reason, report.Human(n.Packets, report.PacketUnit), report.Human(float64(n.Packets)/took.Seconds(), report.PerSecond),
					report.Human(n.PacketsTotal, report.PacketUnit), n.Meaning})
			}
		}
	}
	quiet := 0
	for _, i := range d.Interfaces {
		before := len(rows)
		name := i.Interface
		if i.Removed {
			name += " (removed)"
		}
		add(name, i.Dropped)
		if len(rows) == before {
			quiet++
		}
	}
	add("(unknown)", d.Unknown)
	head := fmt.Sprintf("%s, %s: ", d.To.Format(time.DateTime), report.Human(took.Round(time.Millisecond).Nanoseconds(), report.Nanosecond))
	if len(rows) == 1 {
		return []string{head + fmt.Sprintf("no packet dropped on %d interfaces", len(d.Interfaces))}
	}
	head += fmt.Sprintf("%s packets dropped by the kernel, on %d of %d interfaces", report.Human(sum, report.PacketUnit), len(d.Interfaces)-quiet, len(d.Interfaces))
	return append([]string{head}, report.Align(rows)...)
}
