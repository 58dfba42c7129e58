package prom

import "github.com/xdpmon/xdpmon/userspace/report"

// Drops is what the kernel dropped on an interface; without one, on the host where the interface is not known.
type Drops struct {
	report.Identity
	Reasons []DropReason
}

// DropReason is what it dropped for one reason.
type DropReason struct {
	Reason         string
	Packets, Bytes uint64
}

// Dropped serves what the kernel drops; read is called at every scrape.
func (s *Store) Dropped(read func() []Drops) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = read
}

// kernelDrops sends a series an interface and reason that occurred.
func (g *gathering) kernelDrops(list []Drops) {
	for _, d := range list {
		g.is(identityLabels(d.Identity))
		for _, r := range d.Reasons {
			reason := label{"reason", r.Reason}
			g.counter("xdpmon_kernel_dropped_packets_total", "Packets that the kernel dropped, by its own reason (enum skb_drop_reason); without an interface: anywhere on the host, where the interface is not known.",
				float64(r.Packets), reason)
			g.counter("xdpmon_kernel_dropped_bytes_total", "Bytes of these packets, as long as they were where they were dropped.", float64(r.Bytes), reason)
		}
	}
}
