package loader

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ErrUnsupported is wrapped when this kernel or device lacks something; the text names it and what provides it.
var ErrUnsupported = errors.New("not supported here")

// State is the outcome of a probe.
type State string

// Only an answer that the kernel gave counts as Supported or Unsupported. Everything else, a missing
// privilege above all, is Unknown and comes with its reason.
const (
	Supported   State = "supported"
	Unsupported State = "unsupported"
	Unknown     State = "unknown"
)

// answer is what a probe found.
type answer struct {
	State  State
	Detail string // what was seen, or why nothing can be said
}

// Feature is one line of `xdpmon features`.
type Feature struct {
	Key      string `json:"key"` // stable name
	Name     string `json:"name"`
	State    State  `json:"state"`
	Required bool   `json:"required"` // xdpmon cannot run without it
	Since    string `json:"since,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Remedy   string `json:"remedy,omitempty"` // when it is not supported, or not known to be
}

// Features are what this kernel, this process and one interface can do.
type Features struct {
	Kernel    string             `json:"kernel"`
	Arch      string             `json:"arch"`
	CPUs      int                `json:"possible_cpus"`
	Host      []Feature          `json:"host"`
	Privilege Privilege          `json:"privilege"`
	Interface *InterfaceFeatures `json:"interface,omitempty"`
}

// InterfaceFeatures are what one interface can do, and what --hook auto would make of it.
type InterfaceFeatures struct {
	Name      string     `json:"name"`
	Index     int        `json:"index"`
	Kind      string     `json:"kind"`
	Bus       string     `json:"bus,omitempty"`
	MTU       int        `json:"mtu"` // bytes
	L3Only    bool       `json:"l3_only"`
	AutoHook  Hook       `json:"auto_hook"`
	Why       string     `json:"why"`
	List      []Feature  `json:"features"`
	Occupants []Occupant `json:"programs,omitempty"`
	Offloads  Offloads   `json:"offloads,omitempty"`
}

// Probe asks the kernel, and one interface unless iface is empty. It attaches nothing to an interface of this
// namespace: what can only be tried is tried on the loopback device of a namespace made for it.
func Probe(iface string) (Features, error) {
	f := Features{Kernel: kernelRelease(), Arch: runtime.GOARCH, Privilege: currentPrivilege()}
	f.CPUs, _ = ebpf.PossibleCPU()
	f.Host = runProbes(hostProbes())
	if iface == "" {
		return f, nil
	}
	d, err := inspect(iface)
	if err != nil {
		return f, fmt.Errorf("probe %s: %w", iface, err)
	}
	f.Interface = probeInterface(d)
	return f, nil
}

// Missing returns the required features that are known not to be there.
func (f Features) Missing() []Feature {
	var missing []Feature
	for _, have := range f.Host {
		if have.Required && have.State == Unsupported {
			missing = append(missing, have)
		}
	}
	return missing
}

func probeInterface(d *device) *InterfaceFeatures {
	r := &InterfaceFeatures{Name: d.Name, Index: d.Index, Kind: d.Kind, Bus: d.Bus, MTU: d.MTU}
	r.L3Only, _ = l3Only(d.HWType)
	r.AutoHook, r.Why = autoHook(d, AttachOptions{}.withDefaults())
	r.List = runProbes(interfaceProbes(d))
	r.Occupants = withHolders(occupants(d))
	r.Offloads, _ = offloadsOf(d.Name)
	return r
}

// probe is a question with what to say about it.
type probe struct {
	key, name string
	since     string // first kernel that has it
	required  bool
	remedy    string
	ask       func() answer
}

func runProbes(probes []probe) []Feature {
	list := make([]Feature, len(probes))
	for i, p := range probes {
		a := p.ask()
		list[i] = Feature{Key: p.key, Name: p.name, State: a.State, Required: p.required, Since: p.since, Detail: a.Detail}
		if a.State != Supported {
			list[i].Remedy = p.remedy
		}
	}
	return list
}

// conclude turns the error of a probe into an answer: no error and "not supported" are conclusive, nothing else is.
func conclude(err error) answer {
	switch {
	case err == nil:
		return answer{State: Supported}
	case errors.Is(err, ebpf.ErrNotSupported):
		return answer{State: Unsupported}
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return answer{Unknown, "this process may not ask: " + remedyFor(attachNeeds)}
	}
	return answer{Unknown, err.Error()}
}

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
