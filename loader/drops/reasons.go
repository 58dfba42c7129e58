package drops

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/loader/kernel"
)

// Reasons returns the running kernel's reasons, by number.
func Reasons() ([]string, error) {
	types, err := kernelTypes()
	if err != nil {
		return nil, err
	}
	return namesOf(types)
}

func kernelTypes() (*btf.Spec, error) {
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("%w: the kernel has no BPF type information (CONFIG_DEBUG_INFO_BTF): %w", kernel.ErrUnsupported, err)
	}
	return types, nil
}

// namesOf are the names of all counted reasons; a number without a name has its number.
func namesOf(types *btf.Spec) ([]string, error) {
	var enum *btf.Enum
	if err := types.TypeByName("skb_drop_reason", &enum); errors.Is(err, btf.ErrNotFound) {
		return nil, fmt.Errorf("%w: this kernel does not name reasons (Linux 5.17)", kernel.ErrUnsupported)
	} else if err != nil {
		return nil, fmt.Errorf("read the kernel's reasons: %w", err)
	}
	names := make([]string, reasons)
	for i := range names {
		names[i] = fmt.Sprintf("REASON_%d", i)
	}
	for _, v := range enum.Values {
		if v.Value < uint64(reasons-1) {
			names[v.Value] = strings.TrimPrefix(strings.TrimPrefix(v.Name, "SKB_DROP_REASON_"), "SKB_")
		}
	}
	names[reasons-1] = Subsystem
	return names, nil
}

// argumentsOf is the number of arguments of the trace point.
func argumentsOf(types *btf.Spec) (int, error) {
	var def *btf.Typedef
	if err := types.TypeByName("btf_trace_kfree_skb", &def); err != nil {
		return 0, fmt.Errorf("%w: the trace point kfree_skb has no type information: %w", kernel.ErrUnsupported, err)
	}
	if p, ok := def.Type.(*btf.Pointer); ok {
		if f, ok := p.Target.(*btf.FuncProto); ok && len(f.Params) > 3 {
			return len(f.Params) - 1, nil // the first one is the program's own
		}
	}
	return 0, fmt.Errorf("%w: the trace point kfree_skb does not pass a reason (Linux 5.17)", kernel.ErrUnsupported)
}
