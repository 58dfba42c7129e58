package algo

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Config is an algorithm's parameters as one checked struct. Descriptor.Configure parses them once, and everything
// that depends on parameters is a method of it. It is immutable, since several goroutines share it: state belongs to the instance.
// What an algorithm can do beyond these two methods is listed in optional.go.
type Config interface {
	// New makes an instance; nothing is loaded. It rejects what depends on this host: a file, an interface.
	New(env Env) (Instance, error)
	// Report computes the report of a snapshot. It is pure: it uses neither kernel nor clock, has no state, and refuses words that do not match
	// the parameters, since a snapshot may be from an untrusted source.
	Report(s *snapshot.Snapshot) (Result, error)
}

// Hash is the family of hash functions of a run: the host's own, or the CRCs of the P4 twin.
type Hash string

const (
	HashFast Hash = "fast"
	HashCRC  Hash = "crc"
)

// Hashes are the accepted values, for flags and shell completion.
var Hashes = []Hash{HashFast, HashCRC}

// HashOf is the family of a snapshot, or of a coordinator's plan.
func HashOf(crc bool) Hash {
	if crc {
		return HashCRC
	}
	return HashFast
}

// Setup is what all algorithms of a run share, and what each snapshot records.
type Setup struct {
	Replay   bool
	Hash     Hash  // "" is HashFast
	WindowNS int64 // 0: one window until the end
}

// Switch is the setup of twins: CRC hashes, the packets' own clock.
func Switch() Setup { return Setup{Hash: HashCRC, Replay: true} }

// SetupOf is the setup of a snapshot's run.
func SetupOf(s *snapshot.Snapshot) Setup {
	return Setup{Replay: s.Replay, Hash: HashOf(s.CRC), WindowNS: s.WindowNS}
}

// Env describes the environment of an instance.
type Env struct {
	// Setup and Head, of the instance's snapshots, are set by Selected.New.
	Setup
	Head snapshot.Head
	Seed uint64
	// Interfaces is the number of measured interfaces; 0: not known yet.
	Interfaces int
	// Arrives: packets are also measured on ingress, where they cannot be delayed.
	Arrives bool
	// Epoch is the number of the window that starts now, the same on all hosts that share it; nil: every host counts its own.
	Epoch  func() uint64
	Notice func(format string, args ...any) // notifies the operator immediately; may be nil
}

// Notify logs what cannot wait for the next report.
func (e Env) Notify(format string, args ...any) {
	if e.Notice != nil {
		e.Notice(format, args...)
	}
}

// Maker makes an algorithm's Config; Typed returns one.
type Maker struct {
	make func(Values, Setup) (Config, error)
	zero Config
}

// Typed is a Maker from the function that reads an algorithm's parameters, the only place where they are read by name.
func Typed[C Config](read func(Values, Setup) (C, error)) Maker {
	var zero C
	return Maker{zero: zero, make: func(v Values, s Setup) (Config, error) {
		c, err := read(v, s)
		if err != nil {
			return nil, err // not a Config with a nil pointer
		}
		return c, nil
	}}
}

// Zero is an empty configuration, for checking which interfaces its type implements.
func (m Maker) Zero() Config { return m.zero }

// Implements reports whether the configurations of an algorithm have an optional interface of optional.go.
func Implements[I any](d *Descriptor) bool {
	_, ok := d.Config.zero.(I)
	return ok
}

// Selected is an algorithm with its parameters, as text and as a configuration.
type Selected struct {
	Descriptor *Descriptor
	Values     Values
	Setup      Setup
	Config     Config // nil if only the values are known
	Window     int64  // length of its windows, ns; 0: that of the run's
}

// Select parses an algorithm's parameters: set is checked, completed with the defaults and converted to its configuration.
func (d *Descriptor) Select(set map[string]string, setup Setup) (Selected, error) {
	v, err := NewValues(d.Name, d.Params, set)
	if err != nil {
		return Selected{}, err
	}
	return d.Configure(v, setup)
}

// Configure makes the configuration from checked values. Errors name the value and the allowed range.
func (d *Descriptor) Configure(v Values, setup Setup) (Selected, error) {
	setup.Hash = cmp.Or(setup.Hash, HashFast)
	if d.Config.make == nil {
		return Selected{}, fmt.Errorf("configure %s: it has no configuration", d.Name)
	}
	c, err := d.Config.make(v, setup)
	return Selected{Descriptor: d, Values: v, Setup: setup, Config: c}, err
}

// For is the selection in another setup; in the one that it was configured for, it is the same.
func (s Selected) For(setup Setup) (Selected, error) {
	setup.Hash = cmp.Or(setup.Hash, HashFast)
	if s.Config != nil && s.Setup == setup {
		return s, nil
	}
	next, err := s.Descriptor.Configure(s.Values, setup)
	next.Window = s.Window
	return next, err
}

// New makes an instance.
func (s Selected) New(env Env) (Instance, error) {
	env.Setup, env.Head = s.Setup, s.Head(env.Seed)
	return s.Config.New(env)
}

// Head is the head of all snapshots of an instance.
func (s Selected) Head(seed uint64) snapshot.Head {
	return snapshot.Head{Algorithm: s.Descriptor.Name, Layout: s.Descriptor.Layout, Params: maps.Clone(s.Values.text), Hashes: snapshot.HashMark(seed),
		CRC: s.Setup.Hash == HashCRC, Replay: s.Setup.Replay, WindowNS: s.Setup.WindowNS}
}
