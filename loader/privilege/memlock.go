package privilege

import (
	"fmt"

	"github.com/cilium/ebpf/rlimit"
)

const MemlockRemedy = "use Linux 5.11 or later, or raise the limit before starting (ulimit -l unlimited, LimitMEMLOCK=infinity) or grant CAP_SYS_RESOURCE"

// RaiseMemlock lifts RLIMIT_MEMLOCK where BPF memory still counts against it. From 5.11 on it counts against the memory
// cgroup instead, and nothing is done or needed.
func RaiseMemlock() error {
	if InUserNamespace() {
		return Check() // what fails below is not about memory then
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("lift the limit on locked memory (RLIMIT_MEMLOCK): %w: %w; %s", ErrMissing, err, MemlockRemedy)
	}
	return nil
}
