// Package features answers `xdpmon features`: what this kernel, this process and one interface can do.
package features

import (
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
)

// Feature is one line of `xdpmon features`.
type Feature struct {
	Key      string       `json:"key"` // stable name
	Name     string       `json:"name"`
	State    kernel.State `json:"state"`
	Required bool         `json:"required"` // xdpmon cannot run without it
	Since    string       `json:"since,omitempty"`
	Detail   string       `json:"detail,omitempty"`
	Remedy   string       `json:"remedy,omitempty"` // when it is not supported, or not known to be
}

// Features are what this kernel, this process and one interface can do.
type Features struct {
	Kernel    string              `json:"kernel"`
	Arch      string              `json:"arch"`
	CPUs      int                 `json:"possible_cpus"`
	Host      []Feature           `json:"host"`
	Privilege privilege.Privilege `json:"privilege"`
	Interface *InterfaceFeatures  `json:"interface,omitempty"`
}

// InterfaceFeatures are the features of one interface, and the hook that --hook auto would choose.
type InterfaceFeatures struct {
	Name      string            `json:"name"`
	Index     int               `json:"index"`
	Kind      string            `json:"kind"`
	Bus       string            `json:"bus,omitempty"`
	MTU       int               `json:"mtu"` // bytes
	L3Only    bool              `json:"l3_only"`
	AutoHook  attach.Hook       `json:"auto_hook"`
	Why       string            `json:"why"`
	List      []Feature         `json:"features"`
	Occupants []attach.Occupant `json:"programs,omitempty"`
	Offloads  attach.Offloads   `json:"offloads,omitempty"`
}

// Probe probes the kernel, and one interface unless iface is empty. It attaches nothing to an interface of this
// namespace: probes that must attach use the loopback device of a temporary namespace.
func Probe(iface string) (Features, error) {
	f := Features{Kernel: kernel.Release(), Arch: runtime.GOARCH, Privilege: privilege.Current()}
	f.CPUs, _ = ebpf.PossibleCPU()
	f.Host = runProbes(hostProbes())
	if iface == "" {
		return f, nil
	}
	d, err := attach.Inspect(iface)
	if err != nil {
		return f, fmt.Errorf("probe %s: %w", iface, err)
	}
	f.Interface = probeInterface(d)
	return f, nil
}

// Missing returns the required features that are known to be missing.
func (f Features) Missing() []Feature {
	var missing []Feature
	for _, have := range f.Host {
		if have.Required && have.State == kernel.Unsupported {
			missing = append(missing, have)
		}
	}
	return missing
}

func probeInterface(d *attach.Device) *InterfaceFeatures {
	r := &InterfaceFeatures{Name: d.Name, Index: d.Index, Kind: d.Kind, Bus: d.Bus, MTU: d.MTU}
	r.L3Only, _ = attach.L3Only(d.HWType)
	r.AutoHook, r.Why = attach.AutoHook(d, attach.Options{}.WithDefaults())
	r.List = runProbes(interfaceProbes(d))
	r.Occupants = attach.WithHolders(attach.Occupants(d))
	r.Offloads, _ = attach.OffloadsOf(d.Name)
	return r
}

// probe is a kernel feature with its test and its texts.
type probe struct {
	key, name string
	since     string // first kernel that has it
	required  bool
	remedy    string
	ask       func() kernel.Answer
}

func runProbes(probes []probe) []Feature {
	list := make([]Feature, len(probes))
	for i, p := range probes {
		a := p.ask()
		list[i] = Feature{Key: p.key, Name: p.name, State: a.State, Required: p.required, Since: p.since, Detail: a.Detail}
		if a.State != kernel.Supported {
			list[i].Remedy = p.remedy
		}
	}
	return list
}
