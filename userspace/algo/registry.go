package algo

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// ErrUnknown is returned for an algorithm that is not registered.
var ErrUnknown = errors.New("unknown algorithm")

var registry = map[string]*Descriptor{}

// Register adds an algorithm; it is called from init, and a second registration of a name panics.
func Register(d *Descriptor) {
	if _, ok := registry[d.Name]; ok {
		panic("algo: " + d.Name + " is registered twice")
	}
	registry[d.Name] = d
}

// Lookup finds an algorithm by name.
func Lookup(name string) (*Descriptor, error) {
	d, ok := registry[name]
	if !ok {
		return nil, fmt.Errorf("%w %q: there are %s", ErrUnknown, name, strings.Join(Names(), ", "))
	}
	return d, nil
}

// Names lists the registered algorithms in alphabetical order.
func Names() []string {
	names := make([]string, 0, len(registry))
	for name := range registry {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// All lists the descriptors in the order of Names.
func All() []*Descriptor {
	all := make([]*Descriptor, 0, len(registry))
	for _, name := range Names() {
		all = append(all, registry[name])
	}
	return all
}
