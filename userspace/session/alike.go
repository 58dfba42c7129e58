package session

import (
	"reflect"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// configured are the objects of algorithms of sessions that are alike, the latest last. A description of its maps takes tens of kilobytes, most of them pointers, which every
// garbage collection follows: with 200 interfaces, half of the memory in use.
var configured struct {
	sync.Mutex
	of map[*algo.Descriptor][]*ebpf.CollectionSpec
}

// mostConfigured bounds the different objects of an algorithm that are compared and kept.
const mostConfigured = 4

// alike has the members' objects use the parts of equal objects of other sessions. Objects are not changed once they are configured. Each has a CollectionSpec of
// its own, which identifies it (loader.Instance.Replace).
func alike(members []*member) {
	configured.Lock()
	defer configured.Unlock()
	if configured.of == nil {
		configured.of = map[*algo.Descriptor][]*ebpf.CollectionSpec{}
	}
	for _, m := range members {
		m.object.Spec = alikeTo(m.selected.Descriptor, m.object.Spec)
	}
}

func alikeTo(d *algo.Descriptor, spec *ebpf.CollectionSpec) *ebpf.CollectionSpec {
	known := configured.of[d]
	for _, one := range known {
		if reflect.DeepEqual(one, spec) {
			same := *one
			return &same
		}
	}
	if len(known) == mostConfigured {
		known = known[1:]
	}
	configured.of[d] = append(known, spec)
	return spec
}
