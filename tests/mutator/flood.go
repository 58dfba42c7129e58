package mutator

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Batch is the number of packets in one system call, of each hook in turn. Slow packets have to be few.
type Batch struct {
	XDP uint32
	TC  int
}

// Fast and Slow batches take some ten milliseconds of a core, if a packet takes 0.1 or some ten microseconds.
var (
	Fast = Batch{100_000, 500}
	Slow = Batch{1000, 20}
)

// tcFrame is the input of the TC entry program: a SYN.
var tcFrame = builder.MustBuild(&builder.Spec{
	IP:  builder.IP{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2")},
	TCP: &builder.TCP{SrcPort: 1, DstPort: 2, Flags: packet.SYN}, Time: 1,
})

// Flood sends packets to an instance on all cores, by XDP and by TC, until it is stopped.
type Flood struct {
	*Mutator
	size    Batch
	xdp, tc *ebpf.Program
	byTC    atomic.Uint64 // packets
	stop    atomic.Bool
	done    chan error
	end     func() error
}

// StartFlood loads the programs and starts to send.
func StartFlood(inst *loader.Instance, opts Options, size Batch) (*Flood, error) {
	m, err := New(opts)
	if err != nil {
		return nil, err
	}
	f := &Flood{Mutator: m, size: size, done: make(chan error, 1)}
	if err := f.load(inst); err != nil {
		f.free()
		return nil, err
	}
	f.begin()
	return f, nil
}

func (f *Flood) begin() {
	f.stop.Store(false)
	f.byTC.Store(0)
	f.end = sync.OnceValue(func() error { f.stop.Store(true); return <-f.done })
	go func() { f.done <- OnAll(0, f.work) }()
}

// Again stops and restarts with other traffic.
func (f *Flood) Again(opts Options) error {
	if err := f.end(); err != nil {
		return err
	}
	if err := f.Start(opts); err != nil {
		return err
	}
	f.begin()
	return nil
}

func (f *Flood) load(inst *loader.Instance) (err error) {
	if f.xdp, err = inst.Entry(loader.EntryConfig{Kind: loader.XDP, IfIndex: 1, Frags: true}); err != nil {
		return err
	}
	if f.tc, err = inst.Entry(loader.EntryConfig{Kind: loader.TC, IfIndex: 1}); err != nil {
		return err
	}
	return f.Aim(f.xdp)
}

// work is one core: mostly XDP, some TC in between.
func (f *Flood) work(int) error {
	for !f.stop.Load() {
		if err := f.Run(f.size.XDP); err != nil {
			return err
		}
		for range f.size.TC {
			// One run per call: the library does not repeat it, so that the number is exact.
			if _, err := f.tc.Run(&ebpf.RunOptions{Data: tcFrame.Data, Repeat: 1}); err != nil {
				return err
			}
			f.byTC.Add(1)
		}
	}
	return nil
}

// ByTC is the number of packets through TC so far.
func (f *Flood) ByTC() uint64 { return f.byTC.Load() }

// Stop waits for the last packet and returns what was sent over both hooks. It can be called again.
func (f *Flood) Stop() (Sent, error) {
	if err := f.end(); err != nil {
		return Sent{}, err
	}
	sent, err := f.Sent()
	tc := f.byTC.Load()
	sent.Requests += tc
	sent.Bytes += tc * uint64(tcFrame.Len)
	return sent, err
}

// Close stops and frees everything.
func (f *Flood) Close() error {
	err := f.end()
	return errors.Join(err, f.free())
}

func (f *Flood) free() error {
	var errs []error
	for _, p := range []*ebpf.Program{f.xdp, f.tc} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	f.Mutator.Close()
	return errors.Join(errs...)
}
