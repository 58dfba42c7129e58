package report

import (
	"cmp"

	"github.com/xdpmon/xdpmon/userspace/report/known"
	"github.com/xdpmon/xdpmon/userspace/report/ordered"
)

// Identity says whose windows these are. It is the same in JSON, in metrics, in the store and for a coordinator.
type Identity struct {
	// Instance is a named set of interfaces that share registers. Where it has no name, it is named by what it measures: the interfaces of a
	// command, or the captures of a replay.
	Instance string
	// Each is the interface whose registers these are, where the instance measures every interface by itself; "" where they share registers.
	Each string
	// Vantage is the set of hosts whose windows were merged, where a coordinator has several; "" for all.
	Vantage string
	// Interfaces are those that are measured, in order; none in a replay, and none where windows of hosts were merged.
	Interfaces []string
	// Guest is whom the interface serves, where that is known.
	Guest Guest
}

// Key tells instances of one process apart: an instance with each is one for each interface.
func (i Identity) Key() string {
	switch {
	case i.Each != "":
		return i.Instance + "/" + i.Each
	case i.Vantage != "":
		return i.Instance + "/" + i.Vantage
	}
	return i.Instance
}

// Interface is the only one that is measured; "" where there are several, or none.
func (i Identity) Interface() string {
	switch {
	case i.Each != "":
		return i.Each
	case len(i.Interfaces) == 1:
		return i.Interfaces[0]
	}
	return ""
}

// Place is where a sentence says that something was seen: the interface, or what the instance is called.
func (i Identity) Place() string { return cmp.Or(i.Interface(), i.Key()) }

// Guest is whom an interface serves.
type Guest = known.Guest

// fields are the identity's in a JSON line. interface and serves are what they were before 0.1.0, and go in 0.2.0.
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
