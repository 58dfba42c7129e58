package loader

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/privilege"
)

// reserve is the number of descriptors for everything except maps and programs: netlink, links and entry programs, files below /proc, standard
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
		len(open), limit.Cur, privilege.DescriptorRemedy(uint64(len(open)+need)))
}

func descriptorsOf(spec *ebpf.CollectionSpec) int { return len(spec.Maps) + len(spec.Programs) + 1 } // its types (BTF)

// closeUnneeded closes descriptors that userspace does not read; the programs' own references keep the objects alive: maps of the chain,
// which the instance holds itself, constants, and the types of each program.
func (i *Instance) closeUnneeded(coll *ebpf.Collection) error {
	var errs []error
	for name, m := range coll.Maps {
		if i.shared[name] != nil || name == constants {
			errs = append(errs, m.Close())
			delete(coll.Maps, name)
		}
	}
	for name, p := range coll.Programs {
		bare, err := withoutTypes(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, p.Close())
		coll.Programs[name] = bare
	}
	return errors.Join(errs...)
}

// withoutTypes is another descriptor of a program. The library's programs also keep a descriptor of their types open.
func withoutTypes(p *ebpf.Program) (*ebpf.Program, error) {
	fd, err := unix.FcntlInt(uintptr(p.FD()), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("share program: %w", privilege.Explain(err))
	}
	bare, err := ebpf.NewProgramFromFD(fd)
	if err != nil {
		return nil, fmt.Errorf("share program: %w", err)
	}
	return bare, nil
}
