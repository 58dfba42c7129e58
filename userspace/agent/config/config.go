// Package config reads the agent's configuration: a YAML file, checked against one table of keys, from which its JSON schema is
// generated as well. Every error has line and column; all errors of a file are reported at once.
package config

import (
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/userspace/algo"
	file "github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Config is a checked configuration.
type Config struct {
	Log      settings.Log
	Window   time.Duration // of instances that set none
	Listen   string        // address of metrics, page and health; "" for none
	Metrics  settings.Metrics
	Web      settings.Web
	Socket   string // for `xdpmon history` on this host; "" for none
	Outputs  []settings.Output
	Store    *settings.Store // nil: windows are not stored
	Names    Names
	Promises []string
	Alerts   settings.Alerts
	Limits   Limits
	// KernelDrops counts what the kernel drops on measured interfaces, by its reasons.
	KernelDrops bool
	Pin         bool   // programs and registers are pinned when the process ends
	BPFFS       string // where pins are
	Bus         *Bus   // nil: there is no coordinator
	Instances   []Instance
	rules       []rule // of Instances, as the file has them
}

// Names configures the sources of names for interfaces, addresses and ports.
type Names struct {
	Libvirt    bool // interfaces by libvirt domain, from its run-time files
	Namespaces bool // veths by container or pod, from the network namespace of the other end
	Services   bool // ports by service
	DNS        bool // addresses by DNS answers that arrive
	Databases  []string
}

// Limits bound the resources of the agent.
type Limits struct {
	Interfaces int   // most interfaces attached at the same time
	Instances  int   // sets of registers
	Memory     int64 // of all registers, in the kernel
	Heap       int64 // of the process; Go's GOMEMLIMIT
}

// Instance is a rule: interfaces, and the algorithms that run on them.
type Instance struct {
	Name       string
	Interfaces []string // patterns; empty: all of the kinds
	Exclude    []string
	Required   []string // patterns: an interface of each has to be attached
	Kinds      []string
	Each       bool // separate registers for every interface
	Shared     bool // window, seed and algorithms are those of the coordinator's measurement of this name
	Hook       attach.Hook
	Mode       attach.Mode
	Direction  attach.Direction
	Chosen     bool // the file sets the direction
	Window     time.Duration
	Seed       uint64
	Hash       algo.Hash
	Decap      bool
	Algorithms []session.Selected
	Snapshots  bool   // windows include their snapshots
	Pin        string // BPF file system for pins; "": not pinned
}

// Session is the part of a session's configuration that the rule sets.
func (i Instance) Session() session.LiveConfig {
	var epoch func(int64) uint64
	if i.Shared { // the caller sets the number of the window
		epoch = func(int64) uint64 { return 0 }
	}
	return session.LiveConfig{Config: session.Config{Algorithms: i.Algorithms, Window: i.Window, Seed: i.Seed, Hash: i.Hash, Decap: i.Decap,
		Epoch: epoch, Snapshots: i.Shared || i.Snapshots},
		Hook: i.Hook, Mode: i.Mode, Direction: i.Direction, PinRoot: i.Pin, PinAdapt: true}
}

// Unpaired are the algorithms that miss half of this host's own connections: the rule's interfaces share registers and no direction is set, so only
// ingress is measured.
func (i Instance) Unpaired() (names []string) {
	if i.Chosen || i.Direction == attach.Both {
		return nil
	}
	for _, a := range i.Algorithms {
		if a.Descriptor.Pairs {
			names = append(names, a.Descriptor.Name)
		}
	}
	return names
}

// PairRemedy is the remedy for Unpaired.
const PairRemedy = "set direction: both (a host) or each: true (every interface by itself); direction: ingress where both directions arrive (a router, a mirror port)"

// SameRegisters reports whether an instance of i can become one of j while it runs: both count the same packets, with the same hashes.
func (i Instance) SameRegisters(j Instance) bool {
	return i.Name == j.Name && i.Each == j.Each && i.Hook == j.Hook && i.Mode == j.Mode && i.Direction == j.Direction && i.Seed == j.Seed &&
		i.Hash == j.Hash && i.Decap == j.Decap && i.Pin == j.Pin
}

// Load reads and checks a file. An error of its content is a *config.Error of userspace/config.
func Load(path string) (*Config, error) {
	text, err := file.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Find returns the rule of a name.
func (c *Config) Find(name string) (Instance, bool) {
	i := slices.IndexFunc(c.Instances, func(i Instance) bool { return i.Name == name })
	if i < 0 {
		return Instance{}, false
	}
	return c.Instances[i], true
}
