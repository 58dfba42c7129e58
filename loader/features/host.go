package features

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/pin"
	"github.com/xdpmon/xdpmon/loader/privilege"
)

// hostProbes are the probes that do not depend on an interface, in the order in which they are printed.
func hostProbes() []probe {
	return append(programProbes(), append(attachProbes(), hostSettings()...)...)
}

func programProbes() []probe {
	return []probe{
		{"btf", "BTF type information in the kernel", "5.4", false, "use a kernel built with CONFIG_DEBUG_INFO_BTF; only diagnostics need it", askBTF},
		{"xdp_program", "XDP programs", "4.8", true, "use a kernel built with CONFIG_BPF_SYSCALL", helperOf(func() error { return features.HaveProgramType(ebpf.XDP) })},
		{"tc_program", "TC programs", "4.1", true, "use a kernel built with CONFIG_NET_CLS_ACT", helperOf(func() error { return features.HaveProgramType(ebpf.SchedCLS) })},
		{"jit", "programs run as machine code (JIT)", "3.18", false, "sysctl net.core.bpf_jit_enable=1; without it every packet costs about ten times as much", askJIT},
		{"bounded_loops", "bounded loops", "5.3", true, needs("6.1"), helperOf(features.HaveBoundedLoops)},
		{"atomics", "atomic fetch, exchange and compare-exchange", "5.12", true, needs("6.1"), helperOf(tryAtomics)},
		{"xdp_frags", "XDP on packets in several buffers (large MTUs)", "5.18", false, "keep the MTU at 3,500 bytes or less for native XDP, or use --hook tc", helperOf(kernel.HaveXDPFrags)},
		{"xdp_load_bytes", "bpf_xdp_load_bytes", "5.18", false, "", helperOf(helper(ebpf.XDP, asm.FnXdpLoadBytes))},
		{"xdp_store_bytes", "bpf_xdp_store_bytes", "5.18", false, "", helperOf(helper(ebpf.XDP, asm.FnXdpStoreBytes))},
		{"ring_buffer", "ring buffer", "5.8", false, needs("6.1") + "; algorithms that report single events need it", helperOf(func() error { return features.HaveMapType(ebpf.RingBuf) })},
		{"map_in_map", "maps in maps", "4.12", true, needs("6.1"), helperOf(func() error { return features.HaveMapType(ebpf.ArrayOfMaps) })},
		{"map_batch", "reading maps in batches", "5.6", false, "reading a window takes longer without it", helperOf(tryBatch(ebpf.Array))},
		{"map_batch_percpu", "reading per-CPU arrays in batches", "5.13", false, "reading a window takes longer without it", helperOf(tryBatch(ebpf.PerCPUArray))},
		{"test_run_ctx", "test runs with a context (replay)", "5.15", false, needs("6.1") + "; attach works without it, replay does not", helperOf(tryTestRun)},
	}
}

func attachProbes() []probe {
	return []probe{
		{"bpf_link_xdp", "XDP through BPF links", "5.9", true, needs("6.1"), inScratch(tryXDPLink)},
		{"xdp_generic", "generic XDP", "4.12", false, "use --hook tc", inScratch(tryXDPLink)},
		{"tcx", "TCX links (several owners at TC)", "6.6", false, "kernels below 6.6 use the clsact qdisc instead, whose filters outlive a killed process", helperOf(kernel.HaveTCX)},
		{"start_of_transmission", "programs at the start of transmission (trace point net_dev_start_xmit)", "5.5", false,
			"use a kernel built with CONFIG_DEBUG_INFO_BTF and CONFIG_BPF_EVENTS; algorithms that watch the host's own queues need it", helperOf(kernel.HaveSent)},
		{"clsact", "clsact qdisc with BPF filters", "4.5", false, "load the modules sch_ingress and cls_bpf; needed for TC below 6.6 only", inScratch(attach.TryClsact)},
	}
}

func hostSettings() []probe {
	return []probe{
		{"bpffs", "BPF file system mounted at " + pin.Root, "4.4", false, "--pin mounts it; or: mount -t bpf bpf " + pin.Root, askBPFFS},
		{"memlock", "BPF memory is free of RLIMIT_MEMLOCK", "5.11", false, privilege.MemlockRemedy, askMemlock},
		{"unprivileged_bpf", "BPF for unprivileged users", "4.4", false, "not needed; most distributions switch it off for good reason", askUnprivileged},
		{"capabilities", "the capabilities that attaching needs", "", true, privilege.Remedy(privilege.AttachNeeds), askCapabilities},
	}
}

func needs(kernel string) string { return "needs Linux " + kernel + " or later" }

func helperOf(try func() error) func() kernel.Answer {
	return func() kernel.Answer { return kernel.Conclude(try()) }
}

func helper(t ebpf.ProgramType, fn asm.BuiltinFunc) func() error {
	return func() error { return features.HaveProgramHelper(t, fn) }
}

func askBTF() kernel.Answer {
	_, err := btf.LoadKernelSpec()
	return kernel.Conclude(err)
}

// askJIT inspects a loaded program: the sysctl is only the setting, not its effect.
func askJIT() kernel.Answer {
	prog, err := ebpf.NewProgram(kernel.Returning(ebpf.XDP, 2))
	if err != nil {
		return kernel.Conclude(err)
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return kernel.Conclude(err)
	}
	size, err := info.JitedSize()
	if err != nil {
		return kernel.Answer{State: kernel.Unknown, Detail: err.Error()}
	}
	if size == 0 {
		return kernel.Answer{State: kernel.Unsupported, Detail: "net.core.bpf_jit_enable = " + readSysctl("net/core/bpf_jit_enable")}
	}
	return kernel.Answer{State: kernel.Supported}
}

// tryAtomics loads the operations that registers are written with: fetch-add, exchange, compare-exchange.
func tryAtomics() error {
	spec := kernel.Returning(ebpf.XDP, 2)
	spec.Instructions = asm.Instructions{
		asm.Mov.Imm(asm.R0, 0),
		asm.StoreMem(asm.RFP, -8, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R1, 1),
		asm.FetchAdd.Mem(asm.RFP, asm.R1, asm.DWord, -8),
		asm.Xchg.Mem(asm.RFP, asm.R1, asm.DWord, -8),
		asm.CmpXchg.Mem(asm.RFP, asm.R1, asm.DWord, -8),
		asm.Mov.Imm(asm.R0, 2),
		asm.Return(),
	}
	return kernel.Try(spec)
}

// tryBatch reads a small map in one batch.
func tryBatch(t ebpf.MapType) func() error {
	return func() error {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "xdpmon_probe", Type: t, KeySize: 4, ValueSize: 8, MaxEntries: 2})
		if err != nil {
			return err
		}
		defer m.Close()
		cpus := 1
		if t == ebpf.PerCPUArray {
			cpus = ebpf.MustPossibleCPU()
		}
		var cursor ebpf.MapBatchCursor
		_, err = m.BatchLookup(&cursor, make([]uint32, 2), make([]uint64, 2*cpus), nil)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil // the batch was the whole map
		}
		return err
	}
}

// tryTestRun runs a program that returns the metadata word before the packet, as the replay's clock does.
func tryTestRun() error {
	prog, err := ebpf.NewProgram(metaReader())
	if err != nil {
		return err
	}
	defer prog.Close()
	data := make([]byte, 8+64)
	data[0] = 42
	got, err := prog.Run(&ebpf.RunOptions{Data: data, Context: [6]uint32{8, uint32(len(data)), 0, 1, 0, 0}})
	if errors.Is(err, unix.EINVAL) {
		return ebpf.ErrNotSupported
	}
	if err == nil && got != 42 {
		return fmt.Errorf("program read %d in front of the packet, want 42", got)
	}
	return err
}

func metaReader() *ebpf.ProgramSpec {
	spec := kernel.Returning(ebpf.XDP, 0)
	spec.Instructions = asm.Instructions{
		asm.Mov.Imm(asm.R0, 0),
		asm.LoadMem(asm.R2, asm.R1, 8, asm.Word), // data_meta
		asm.LoadMem(asm.R3, asm.R1, 0, asm.Word), // data
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, 8),
		asm.JGT.Reg(asm.R4, asm.R3, "out"),
		asm.LoadMem(asm.R0, asm.R2, 0, asm.Word),
		asm.Return().WithSymbol("out"),
	}
	return spec
}

func askBPFFS() kernel.Answer {
	if err := pin.OnBPFFS(pin.Root); err != nil {
		return kernel.Answer{State: kernel.Unsupported, Detail: err.Error()}
	}
	return kernel.Answer{State: kernel.Supported}
}

func askUnprivileged() kernel.Answer {
	switch v := readSysctl("kernel/unprivileged_bpf_disabled"); v {
	case "0":
		return kernel.Answer{State: kernel.Supported, Detail: "kernel.unprivileged_bpf_disabled = 0"}
	case "1", "2":
		return kernel.Answer{State: kernel.Unsupported, Detail: "kernel.unprivileged_bpf_disabled = " + v}
	default:
		return kernel.Answer{State: kernel.Unknown, Detail: "kernel.unprivileged_bpf_disabled cannot be read"}
	}
}

func askCapabilities() kernel.Answer {
	if privilege.InUserNamespace() {
		return kernel.Answer{State: kernel.Unsupported, Detail: privilege.Remedy(privilege.AttachNeeds)}
	}
	p := privilege.Current()
	if len(p.Missing) > 0 {
		return kernel.Answer{State: kernel.Unsupported, Detail: "missing " + strings.Join(p.Missing, ", ")}
	}
	return kernel.Answer{State: kernel.Supported, Detail: strings.Join(p.Held, ", ")}
}

// readSysctl returns the text of a sysctl, or "unknown".
func readSysctl(path string) string {
	b, err := os.ReadFile("/proc/sys/" + path)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

func askMemlock() kernel.Answer {
	if privilege.Current().Lacks(privilege.CapBPF) {
		return kernel.Answer{State: kernel.Unknown, Detail: "not permitted: " + privilege.Remedy(privilege.AttachNeeds)}
	}
	if err := privilege.RaiseMemlock(); err != nil {
		return kernel.Answer{State: kernel.Unsupported, Detail: err.Error()}
	}
	return kernel.Answer{State: kernel.Supported}
}
