// Package config reads what the agent is told: a YAML file, checked against one table of keys, from which its JSON schema is made as
// well. Every complaint names line and column; all of them are made at once.
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
	Log       settings.Log
	Window    time.Duration // of instances that name none
	Listen    string        // address of metrics, page and health; "" for none
	Metrics   settings.Metrics
	Web       settings.Web
	Socket    string // for `xdpmon history` on this host; "" for none
	Outputs   []settings.Output
	Store     *settings.Store // nil: windows are not kept
	Names     Names
	Promises  []string
	Alerts    settings.Alerts
	Limits    Limits
	Pin       bool   // registers outlive the process
	BPFFS     string // where pins are
	Bus       *Bus   // nil: nobody is told
	Instances []Instance
}

// Names says how interfaces are named by what they serve, and what stands beside addresses and ports.
type Names struct {
	Libvirt    bool // domains, from libvirt's run-time files
	Namespaces bool // containers and pods, by the network namespace of a veth's other end
	Services   bool // of ports
	DNS        bool // learned from answers that arrive
	Databases  []string
}

// Limits bound what the agent takes.
type Limits struct {
	Interfaces int   // attached at the same time
	Instances  int   // sets of registers
	Memory     int64 // of all registers, in the kernel
	Heap       int64 // of the process; Go's GOMEMLIMIT
}

// Instance is a rule: interfaces, and what is measured on them.
type Instance struct {
	Name       string
	Interfaces []string // patterns; empty: all of the kinds
	Exclude    []string
	Required   []string // patterns: an interface of each is to be attached
	Kinds      []string
	Each       bool // registers for every interface
	Shared     bool // window, seed and algorithms are the coordinator's measurement of this name
	Hook       attach.Hook
	Mode       attach.Mode
	Direction  attach.Direction
	Chosen     bool // the file names the direction
	Window     time.Duration
	Seed       uint64
	Hash       algo.Hash
	Decap      bool
	Algorithms []session.Selected
	Snapshots  bool   // somebody wants what windows were made of
	Pin        string // the BPF file system that registers outlive the process in; "" when they do not
}

// Session is the part of a session's configuration that the rule says.
func (i Instance) Session() session.LiveConfig {
	var epoch func() uint64
	if i.Shared { // whoever runs it says the number
		epoch = func() uint64 { return 0 }
	}
	return session.LiveConfig{Config: session.Config{Algorithms: i.Algorithms, Window: i.Window, Seed: i.Seed, Hash: i.Hash, Decap: i.Decap,
		Epoch: epoch, Snapshots: i.Shared || i.Snapshots},
		Hook: i.Hook, Mode: i.Mode, Direction: i.Direction, PinRoot: i.Pin, PinAdapt: true}
}

// Unpaired are the algorithms that find no answers of this host's own connections, since nobody has chosen a direction and the rule's interfaces share registers:
// packets are seen on arrival only.
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

// PairRemedy is what mends Unpaired.
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
