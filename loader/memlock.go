package loader

import (
	"fmt"

	"github.com/cilium/ebpf/rlimit"
)

const memlockRemedy = "use Linux 5.11 or later, or raise the limit before starting (ulimit -l unlimited, LimitMEMLOCK=infinity) or grant CAP_SYS_RESOURCE"

// raiseMemlock lifts RLIMIT_MEMLOCK where BPF memory still counts against it. From 5.11 on it counts against the memory
// cgroup instead, and nothing is done or needed.
func raiseMemlock() error {
	if inUserNamespace() {
		return CheckPrivilege() // what fails below is not about memory then
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("lift the limit on locked memory (RLIMIT_MEMLOCK): %w: %w; %s", ErrPrivilege, err, memlockRemedy)
	}
	return nil
}

func askMemlock() answer {
	if currentPrivilege().lacks(capBPF) {
		return answer{Unknown, "this process may not ask: " + remedyFor(attachNeeds)}
	}
	if err := raiseMemlock(); err != nil {
		return answer{Unsupported, err.Error()}
	}
	return answer{State: Supported}
}
