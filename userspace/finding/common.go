package finding

import (
	"math"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// NetworkOf is the network that findings take an address to be in: its /24 or /48.
func NetworkOf(a netip.Addr) netip.Prefix {
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, _ := a.Prefix(bits)
	return p
}

// nowhere is a bound that is none.
func nowhere() float64 { return math.NaN() }

// New is a measure of a line with nothing expected of it yet.
func New(l report.Line, s Symptom, subject Subject, value Estimate, what string, evidence ...string) Measure {
	return Measure{Symptom: s, Subject: subject, Algorithm: l.Algorithm, Instance: l.Place(), What: what, Value: value, Bound: nowhere(), Absent: nowhere(),
		Evidence: evidence}
}

// fewestLost is how much must be lost of a window's traffic before a table is called too small.
const fewestLost = 100

// Small measures what a table was too small for: lost of all, and most of them is still good.
func Small(l report.Line, lost, all, most float64, what, next string, evidence ...string) Measure {
	m := New(l, TooSmall, Subject{Instance, l.Algorithm + " on " + l.Place()}, Share(lost, all), what, evidence...)
	m.Bound, m.Next = most, next
	if !(lost >= fewestLost) {
		m.Value = Estimate{0, 0, 0, report.Ratio}
	}
	return m
}

// How late a window is that spoils comparisons: times its length, and ns.
const (
	laterWindow = 1.25
	shortest    = 200e6
	stalled     = 1.5 // one window is enough: the process stood still for half of one, and the next windows end in time again
)

// Windowed measures what every line states about measuring itself: late windows, and packets that could not be read.
func Windowed(l report.Line) []Measure {
	took := float64(l.Window.End - l.Window.Start)
	late := New(l, Late, Subject{Interface, l.Place()}, Estimate{took, took, took, report.Nanosecond}, "length of a window", "window.stretched")
	late.Ratio, late.Factor, late.Delta, late.Enough = true, laterWindow, shortest, stalled
	late.Next = "lower the load of the machine, give xdpmon a higher priority (Nice=, CPUWeight=), or ask for longer windows"
	if l.Window.Cut || l.Window.Last {
		late.Weak = "the window is cut"
	}
	bad := 0.
	for _, reason := range []string{"truncated", "bad_ip", "extension_chain", "bad_transport"} {
		bad += float64(l.Packets.Reasons[reason])
	}
	unread := New(l, Unread, Subject{Interface, l.Place()}, Share(bad, float64(l.Packets.Seen)), "share of packets whose headers cannot be read", "packets.unparsed")
	unread.Bound = mostUnread
	unread.Next = "packets.unparsed names the reason: truncated wants a longer snap length (tcpdump -s 128), bad_ip and bad_transport are damaged or of a format that is not parsed"
	if l.Packets.Seen < fewestSeen {
		unread.Weak = "too few packets"
	}
	shut := New(l, NotInside, Subject{Interface, l.Place()}, Share(float64(l.Packets.Reasons["no_transport"]), float64(l.Packets.Seen)),
		"share of packets of which only the addresses are read", "packets.unparsed.no_transport")
	shut.Trials, shut.Delta, shut.Factor, shut.Weak = float64(l.Packets.Seen), moreNotInside, timesNotInside, unread.Weak
	shut.Next = "xdpmon attach " + l.Place() + " --algo precision --set precision.key=srcdst names their ends; --decap looks into VXLAN, GENEVE, GRE, IPIP and 6in4"
	return []Measure{late, unread, shut}
}

// NotLookedInto states that a window's algorithms saw no ports, flags and answers of a part of the packets; "" where that is small.
func NotLookedInto(l report.Line) string {
	share := float64(l.Packets.Reasons["no_transport"]) / max(1, float64(l.Packets.Seen))
	if l.Packets.Seen < fewestSeen || share < moreNotInside {
		return ""
	}
	return "more than 5 % of the packets on " + l.Place() + " are neither TCP, UDP nor ICMP echo (tunnels, IPsec): only their addresses are read, what is in them is not known"
}

// Bounds for everybody.
const (
	mostUnread = .05
	fewestSeen = 100
	// What is neither TCP, UDP nor ICMP echo may be usual somewhere: more than usual, plus and times.
	moreNotInside  = .05
	timesNotInside = 3
)
