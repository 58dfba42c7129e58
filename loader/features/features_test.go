package features

import (
	"encoding/json"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/tests/isolated"
)

func TestProbe(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	f, err := Probe(lab.Near)
	lab.NoError(t, err)
	text, err := json.MarshalIndent(f, "", " ")
	lab.NoError(t, err)
	t.Log(string(text))
	if missing := f.Missing(); len(missing) != 0 {
		t.Errorf("required and missing, while the other tests run: %v", missing)
	}
	for _, have := range append(f.Host, f.Interface.List...) {
		if have.State == kernel.Unknown && have.Detail == "" {
			t.Errorf("%s is unknown without a reason", have.Key)
		}
		if have.State == kernel.Supported && have.Remedy != "" {
			t.Errorf("%s is supported and has a remedy", have.Key)
		}
	}
	lab.NothingLeft(t, lab.Near)
	if f.Interface.AutoHook != attach.HookTC {
		t.Errorf("auto hook of a veth: %s", f.Interface.AutoHook)
	}
}

// Without privileges a refused probe must not be reported as unsupported.
func TestProbeWithoutPrivilegeIsUnknown(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.DropAllCaps(t)
	f, err := Probe("")
	lab.NoError(t, err)
	for _, have := range f.Host {
		switch have.Key {
		case "tcx", "xdp_frags", "atomics", "xdp_program", "tc_program", "bpf_link_xdp", "clsact", "jit", "test_run_ctx":
			if have.State != kernel.Unknown {
				t.Errorf("%s: %s (%s)", have.Key, have.State, have.Detail)
			}
		case "capabilities":
			if have.State != kernel.Unsupported {
				t.Errorf("capabilities: %s", have.State)
			}
		}
	}
}

// Probes whose results differ between kernels are compared with the result of attaching.
func TestProbesAgreeWithTheKernel(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	for name, try := range map[string]func() error{
		"XDP link": func() error { return scratch(tryXDPLink) }, "clsact": func() error { return scratch(attach.TryClsact) },
		"atomics": tryAtomics, "test run": tryTestRun, "batch": tryBatch(ebpf.Array), "batch per CPU": tryBatch(ebpf.PerCPUArray),
	} {
		if err := try(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	out := lab.Sh(t, "ip -br link")
	if len(out) == 0 {
		t.Error("the scratch namespace leaked into this one")
	}
}

func scratch(try func(int) error) (result error) {
	err := inNewNamespace(func() { result = try(1) })
	if err != nil {
		return err
	}
	return result
}

func TestMain(m *testing.M) { lab.Main(m) }
