package agent

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// With its own user, and only the unit's capabilities, the agent attaches to interfaces that are added, and reloads.
func TestOwnUser(t *testing.T) {
	network := quietNetwork(t)
	handle := netlinkOf(t, network.A)
	p := newPlace(t, network.A)
	p.write("instances:\n  - name: a\n    interfaces: [\"xdpmon-v*\"]\n    algorithms: {precision: {}}\n")
	const user = 64999
	for _, path := range []string{p.dir, p.file("agent.yaml"), p.file("notify")} {
		if err := os.Chown(path, user, user); err != nil {
			t.Fatal(err)
		}
	}
	for dir := filepath.Dir(binary); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Dir(p.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	caps := []uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_NET_ADMIN}
	r := p.startAs(binary, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: user, Gid: user}, AmbientCaps: caps})
	addVeth(t, handle, "xdpmon-v1", "xdpmon-p1")
	eventually(t, "attaching", func() bool { return len(r.attached("a")) == 1 })
	p.write("instances:\n  - name: a\n    interfaces: [\"xdpmon-v*\"]\n    algorithms: {precision: {}, fridge: {}}\n")
	r.hangup()
	if h := r.health(); h.Status != "ok" || h.Reloads.Taken != 1 || len(h.Instances[0].Algorithms) != 2 {
		t.Errorf("%+v", h)
	}
	r.stop()
	if !strings.Contains(r.log.String(), "kept=\"[CAP_BPF CAP_NET_ADMIN CAP_PERFMON]\"") {
		t.Error("it does not log the capabilities that it keeps")
	}
	if len(p.windows()) == 0 {
		t.Error("no window was written")
	}
}
