package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/mutator"
)

// LiveOptions of a measurement with packets that arrive at an interface.
type LiveOptions struct {
	Seconds float64 // of one run
	Rounds  int
	Bytes   int // of a frame
	Flows   uint32
	Traffic mutator.Traffic
}

// LiveRow is what arrived where a subject was attached: millions of packets a second, the best of the rounds, by way to send.
type LiveRow struct {
	Subject, Hook string
	Packets       [ways]float64
}

// The ways to send: by one core, by all cores with flows of their own, by all cores with the same flows.
const (
	oneCore = iota
	allApart
	allSame
	ways
)

const (
	sender   = "xdpmon-live-a"
	receiver = "xdpmon-live-b"
)

// wire is a veth pair in a namespace of its own, with a queue for each core.
type wire struct {
	ns       *netns.Namespace
	from, to int // interface numbers
}

func newWire() (w *wire, err error) {
	w = &wire{}
	if w.ns, err = netns.NewNamespace("xdpmon-live"); err != nil {
		return nil, err
	}
	err = w.ns.Run(func() error {
		cpus, err := mutator.CPUs()
		if err != nil {
			return err
		}
		cores := len(cpus)
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = sender, cores, cores
		pair := &netlink.Veth{LinkAttrs: attrs, PeerName: receiver, PeerNumTxQueues: uint32(cores), PeerNumRxQueues: uint32(cores)}
		if err := netlink.LinkAdd(pair); err != nil {
			return fmt.Errorf("add veth pair: %w", err)
		}
		for name, index := range map[string]*int{sender: &w.from, receiver: &w.to} {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			*index = l.Attrs().Index
			if err := netlink.LinkSetUp(l); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil { // frames that a driver hands over wait for NAPI, which veth has with GRO
		_, err = w.ns.Output(context.Background(), "ethtool", "-K", receiver, "gro", "on")
	}
	if err != nil {
		return nil, errors.Join(err, w.ns.Close())
	}
	return w, nil
}

// attach puts a program on the receiver; nil: a program that lets everything pass, or nothing for TC.
func (w *wire) attach(kind loader.Kind, p *ebpf.Program) (l io.Closer, err error) {
	err = w.ns.Run(func() (err error) {
		if kind == loader.TC {
			l, err = link.AttachTCX(link.TCXOptions{Program: p, Interface: w.to, Attach: ebpf.AttachTCXIngress})
		} else {
			l, err = link.AttachXDP(link.XDPOptions{Program: p, Interface: w.to, Flags: link.XDPDriverMode})
		}
		return err
	})
	return l, err
}

// arrived is how many packets the receiver has seen.
func (w *wire) arrived() (n uint64, err error) {
	err = w.ns.Run(func() error {
		l, err := netlink.LinkByIndex(w.to)
		if err == nil {
			n = l.Attrs().Statistics.RxPackets
		}
		return err
	})
	return n, err
}

// rate sends for some time and returns packets a second that arrived.
func (w *wire) rate(m *mutator.Mutator, opts LiveOptions, way int) (float64, error) {
	cores := 0
	if way == oneCore {
		cores = 1
	}
	if err := m.Start(mutator.Options{Shape: mutator.TCP4, Traffic: opts.Traffic, Flows: opts.Flows, Apart: way != allSame}); err != nil {
		return 0, err
	}
	before, err := w.arrived()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	stop := began.Add(time.Duration(opts.Seconds * float64(time.Second)))
	err = mutator.OnAll(cores, func(cpu int) error {
		return w.ns.Run(func() error { // a thread of its own
			undo, err := mutator.Pin(cpu)
			if err != nil {
				return err
			}
			defer undo()
			for err == nil && time.Now().Before(stop) {
				err = m.RunLive(w.from, opts.Bytes, 50_000)
			}
			return err
		})
	})
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	after, err := w.arrived()
	return float64(after-before) / took.Seconds(), err
}

// Live measures what arrives at an interface with subjects attached to it, in turn.
func Live(subjects []Subject, opts LiveOptions, progress func(string, ...any)) ([]LiveRow, error) {
	w, err := newWire()
	if err != nil {
		return nil, err
	}
	defer w.ns.Close()
	m, err := mutator.New(mutator.Options{Shape: mutator.TCP4, Traffic: opts.Traffic, Flows: opts.Flows})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := m.AimLive(); err != nil {
		return nil, err
	}
	var undo func() error
	if err := w.ns.Run(func() (err error) { undo, err = m.Hold(); return err }); err != nil {
		return nil, err
	}
	defer undo()
	var rows []LiveRow
	seen := map[int][ways][]float64{}
	for round := range opts.Rounds {
		for n, s := range subjects {
			for k, kind := range []loader.Kind{loader.XDP, loader.TC} {
				got, err := w.subject(m, s, kind, opts)
				if err != nil {
					return nil, fmt.Errorf("measure %s at %s: %w", s.Name, kind, err)
				}
				at, all := 2*n+k, seen[2*n+k]
				for way := range got {
					all[way] = append(all[way], got[way])
				}
				seen[at] = all
				if round == 0 {
					rows = append(rows, LiveRow{Subject: s.Name, Hook: kind.String()})
				}
			}
		}
		progress("round %d of %d", round+1, opts.Rounds)
	}
	for at := range rows {
		for way, all := range seen[at] {
			rows[at].Packets[way] = slices.Max(all) / 1e6
		}
	}
	return rows, nil
}

// subject measures all ways to send with one subject attached.
func (w *wire) subject(m *mutator.Mutator, s Subject, kind loader.Kind, opts LiveOptions) (got [ways]float64, err error) {
	s.egress, s.liveTC = false, kind == loader.TC
	l, err := s.load()
	if err != nil {
		return got, err
	}
	defer l.close()
	p := l.program
	if p == nil && kind == loader.XDP {
		if p, err = m.Pass(); err != nil {
			return got, err
		}
	}
	if p != nil {
		held, err := w.attach(kind, p)
		if err != nil {
			return got, err
		}
		defer held.Close()
	}
	for way := range got {
		if got[way], err = w.rate(m, opts, way); err != nil {
			return got, err
		}
		if l.inst == nil {
			continue
		}
		if seen, _, err := l.finish(); err != nil || seen == 0 {
			return got, fmt.Errorf("%w: %d packets counted", errors.Join(err, os.ErrInvalid), seen)
		}
	}
	return got, nil
}

// WriteLive writes the rows as a table. bytes: on the wire, of a packet.
func WriteLive(out io.Writer, rows []LiveRow, opts LiveOptions) error {
	fmt.Fprintf(out, "millions of packets a second that arrive, %d bytes each, best of %d rounds (Gb/s of one core)\n\n", opts.Bytes, opts.Rounds)
	fmt.Fprintln(out, "| attached | hook | 1 core | 2 cores, flows apart | 2 cores, the same flows |\n|:---|:---|---:|---:|---:|")
	for _, r := range rows {
		_, err := fmt.Fprintf(out, "| %s | %s | %.2f (%.1f) | %.2f | %.2f |\n", r.Subject, r.Hook, r.Packets[oneCore],
			r.Packets[oneCore]*1e6*8*float64(opts.Bytes)/1e9, r.Packets[allApart], r.Packets[allSame])
		if err != nil {
			return err
		}
	}
	return nil
}
