package loader

import (
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/privilege"
)

// reserve is for what is open beside maps and programs: netlink, links and entry programs, files below /proc, standard
// streams, metrics and their readers.
const reserve = 32

// checkDescriptors refuses a load that would run out of descriptors halfway. Every map and every program takes one.
func checkDescriptors(shared int, objects []Object) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit on open files: %w", err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("count open files: %w", privilege.Explain(err))
	}
	need := shared + reserve
	for _, o := range objects {
		need += descriptorsOf(o.Spec)
	}
	if uint64(len(open)+need) <= limit.Cur {
		return nil
	}
	return fmt.Errorf("load %d algorithms: %w: %d are needed, %d are open and the limit is %d; %s", len(objects), privilege.ErrDescriptors, need,
		len(open), limit.Cur, privilege.DescriptorRemedy)
}

func descriptorsOf(spec *ebpf.CollectionSpec) int { return len(spec.Maps) + len(spec.Programs) + 1 } // its types (BTF)
