package report

import (
	"cmp"

	"github.com/xdpmon/xdpmon/userspace/report/known"
	"github.com/xdpmon/xdpmon/userspace/report/ordered"
)

// Identity identifies the source of windows. It is the same in JSON, in metrics, in the store and for a coordinator.
type Identity struct {
	// Instance is the name of a set of interfaces that share registers. Without a configured name it consists of the measured interfaces, or
	// of the captures of a replay.
	Instance string
	// Each is the interface, if the instance has registers for each of its interfaces; "" if they share registers.
	Each string
	// Vantage is the set of hosts whose windows were merged, where a coordinator has several; "" for all.
	Vantage string
	// Interfaces are the measured interfaces, in order; none in a replay, and none if windows of hosts were merged.
	Interfaces []string
	// Guest is the guest that the interface belongs to, if known.
	Guest Guest
}

// Key is unique within a process: an instance with registers for each interface has one key per interface.
func (i Identity) Key() string {
	switch {
	case i.Each != "":
		return i.Instance + "/" + i.Each
	case i.Vantage != "":
		return i.Instance + "/" + i.Vantage
	}
	return i.Instance
}

// Interface is the measured interface, if there is exactly one; else "".
func (i Identity) Interface() string {
	switch {
	case i.Each != "":
		return i.Each
	case len(i.Interfaces) == 1:
		return i.Interfaces[0]
	}
	return ""
}

// Place names the source in sentences: the interface, or else the instance.
func (i Identity) Place() string { return cmp.Or(i.Interface(), i.Key()) }

// Guest is the guest that an interface belongs to.
type Guest = known.Guest

// fields writes the identity to a JSON line. interface and serves are the fields of versions before 0.1.0; they are removed in
// 0.2.0.
func (i Identity) fields(o *ordered.Object) {
	o.Set("instance", i.Instance)
	o.Set("interfaces", orEmpty(i.Interfaces))
	if i.Vantage != "" {
		o.Set("vantage", i.Vantage)
	}
	o.Set("interface", i.Key())
	if i.Guest.Name != "" {
		o.Set("guest", i.Guest)
		o.Set("serves", i.Guest.String())
	}
}
