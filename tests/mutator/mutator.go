package mutator

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/maps"
)

// Traffic is the kind of packets sent.
type Traffic = MutatorTraffic

// The kinds of traffic.
const (
	Requests   = MutatorTrafficTRAFFIC_REQUESTS
	Responses  = MutatorTrafficTRAFFIC_RESPONSES
	Mixed      = MutatorTrafficTRAFFIC_MIXED
	Handshakes = MutatorTrafficTRAFFIC_HANDSHAKES
	Bursts     = MutatorTrafficTRAFFIC_BURSTS
	Data       = MutatorTrafficTRAFFIC_DATA
)

// ErrTarget is returned if packets did not reach the program under test.
var ErrTarget = errors.New("the program under test was not reached")

// maxFlows leaves two bits of an address for the core.
const maxFlows = 1 << 22

// Options of a mutator.
type Options struct {
	Shape   Shape
	Traffic Traffic
	Flows   uint32 // that rotate on each core; 100,000 if 0
	// Apart gives every core separate flows; otherwise all send the same ones.
	Apart bool
	// Frozen sends the same handshakes in every rotation; otherwise sequence numbers are new.
	Frozen bool
}

// Mutator sends packets to one program. Its methods may be called from several goroutines, but two of them must not run
// on one core with different traffic.
type Mutator struct {
	coll   *ebpf.Collection
	mutate *ebpf.Program // of the target's type
	frame  []byte
	wire   uint32
}

// New loads a mutator whose target is a program that lets everything pass.
func New(opts Options) (*Mutator, error) {
	if opts.Flows == 0 {
		opts.Flows = 100_000
	}
	if opts.Flows > maxFlows {
		return nil, fmt.Errorf("make mutator: %d flows, %d is the most", opts.Flows, maxFlows)
	}
	spec, err := LoadMutator()
	if err != nil {
		return nil, fmt.Errorf("read mutator: %w", err)
	}
	return load(spec, opts)
}

func load(spec *ebpf.CollectionSpec, opts Options) (*Mutator, error) {
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("load mutator: %w", err)
	}
	m := &Mutator{coll: coll}
	if err := errors.Join(m.Aim(nil), m.Start(opts)); err != nil {
		coll.Close()
		return nil, err
	}
	return m, nil
}

// Close frees the programs and maps.
func (m *Mutator) Close() { m.coll.Close() }

// Aim chooses the program under test, of XDP; nil is one that lets everything pass.
func (m *Mutator) Aim(p *ebpf.Program) error { return m.aim(p, "mutate", "pass", "mutator_target") }

// AimTC selects a program of TC, which receives the same packets as buffers of the kernel.
func (m *Mutator) AimTC(p *ebpf.Program) error { return m.aim(p, "mutate_tc", "pass_tc", "mutator_tc") }

func (m *Mutator) aim(p *ebpf.Program, mutate, pass, slot string) error {
	if p == nil {
		p = m.coll.Programs[pass]
	}
	if err := m.coll.Maps[slot].Update(uint32(0), p, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("aim mutator at %s: %w", p, err)
	}
	m.mutate = m.coll.Programs[mutate]
	return nil
}

// Start starts a rotation from its first flow and resets the counts.
func (m *Mutator) Start(opts Options) error {
	frame, err := opts.Shape.frame(opts.Traffic)
	if err != nil {
		return err
	}
	m.frame, m.wire = frame.Data, uint32(frame.Len)
	return m.change(func(cpu int, s *MutatorMutatorState) {
		*s = MutatorMutatorState{Traffic: uint32(opts.Traffic), Flows: opts.Flows}
		if s.Flows == 0 {
			s.Flows = 100_000
		}
		if opts.Frozen {
			s.Frozen = 1
		}
		if opts.Apart {
			s.Core = uint32(cpu)
		}
	})
}

// Switch continues with other traffic of the same shape: responses answer the requests that were sent.
func (m *Mutator) Switch(t Traffic) error {
	return m.change(func(_ int, s *MutatorMutatorState) { s.Traffic = uint32(t) })
}

// Forget the requests that wait: the next response answers the next request.
func (m *Mutator) Forget() error {
	return m.change(func(_ int, s *MutatorMutatorState) { s.Answer, s.Close, s.Turn = s.Ask, s.Ask, 0 })
}

func (m *Mutator) change(f func(cpu int, s *MutatorMutatorState)) error {
	states, err := m.states()
	if err != nil {
		return err
	}
	for cpu := range states {
		f(cpu, &states[cpu])
	}
	if err := m.coll.Maps["mutator_states"].Update(uint32(0), states, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("write mutator's state: %w", err)
	}
	return nil
}

func (m *Mutator) states() ([]MutatorMutatorState, error) {
	states := make([]MutatorMutatorState, maps.PossibleCPUs())
	if err := m.coll.Maps["mutator_states"].Lookup(uint32(0), &states); err != nil {
		return nil, fmt.Errorf("read mutator's state: %w", err)
	}
	return states, nil
}

// Run sends at least n packets on the core that it is called on. After a signal the library starts again: Sent returns the
// exact number.
func (m *Mutator) Run(n uint32) error {
	if n == 0 {
		return nil
	}
	return judge(m.mutate.Run(&ebpf.RunOptions{Data: m.frame, Repeat: n}))
}

func judge(verdict uint32, err error) error {
	const aborted = 0
	if err != nil {
		return fmt.Errorf("run mutator: %w", err)
	}
	if verdict == aborted {
		return fmt.Errorf("run mutator: %w", ErrTarget)
	}
	return nil
}

// Sent is what the programs under test have been given since Start.
type Sent struct {
	Requests, Responses, Finals, Data uint64
	Bytes                             uint64 // on the wire
}

// Packets of all kinds.
func (s Sent) Packets() uint64 { return s.Requests + s.Responses + s.Finals + s.Data }

// Sent adds up all cores.
func (m *Mutator) Sent() (Sent, error) {
	states, err := m.states()
	if err != nil {
		return Sent{}, err
	}
	var s Sent
	var failed uint64
	for _, state := range states {
		s.Requests += state.Sent[MutatorKindKIND_SYN]
		s.Responses += state.Sent[MutatorKindKIND_SYNACK]
		s.Finals += state.Sent[MutatorKindKIND_FINAL]
		s.Data += state.Sent[MutatorKindKIND_DATA]
		failed += state.Failed
	}
	s.Bytes = s.Packets() * uint64(m.wire)
	if failed > 0 {
		return s, fmt.Errorf("%w by %d packets", ErrTarget, failed)
	}
	return s, nil
}

// Pin keeps the calling goroutine on a core until undo is called.
func Pin(cpu int) (undo func(), err error) {
	var before, one unix.CPUSet
	runtime.LockOSThread()
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("read cores: %w", err)
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("pin to core %d: %w", cpu, err)
	}
	return func() {
		_ = unix.SchedSetaffinity(0, &before)
		runtime.UnlockOSThread()
	}, nil
}

// CPUs are the cores that this process may use.
func CPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read cores: %w", err)
	}
	var cpus []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// OnAll calls f on every core at the same time, or on the first n of them, and waits. f runs pinned.
func OnAll(n int, f func(cpu int) error) error {
	cpus, err := CPUs()
	if err != nil {
		return err
	}
	if n > 0 && n < len(cpus) {
		cpus = cpus[:n]
	}
	results := make(chan error)
	for _, cpu := range cpus {
		go func() {
			undo, err := Pin(cpu)
			if err == nil {
				err = f(cpu)
				undo()
			}
			results <- err
		}()
	}
	var errs []error
	for range cpus {
		errs = append(errs, <-results)
	}
	return errors.Join(errs...)
}
