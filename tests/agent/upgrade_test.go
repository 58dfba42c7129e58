package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// buildPatched makes a binary in which precision's table has another size, by the compiler's overlay: no file of the tree is touched.
func buildPatched(t *testing.T, path string) {
	t.Helper()
	source := filepath.Join(testutil.Root(t), "userspace/precision/precision.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	other := regexp.MustCompile(`(Key: "entries"[^}]*Default: ")\d+"`).ReplaceAll(text, []byte(`${1}8192"`))
	if string(other) == string(text) {
		t.Fatal("there is no default to change in " + source)
	}
	dir := t.TempDir()
	patched, overlay := filepath.Join(dir, "precision.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {source: patched}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{patched: other, overlay: list} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("go", "build", "-trimpath", "-overlay", overlay, "-ldflags", "-X main.revision=patched", "-o", path, "github.com/xdpmon/xdpmon/cmd/xdpmon").CombinedOutput()
	if err != nil {
		t.Fatalf("build xdpmon: %v\n%s", err, out)
	}
}

// Another build takes over while packets arrive. If the layout is the same, registers continue; an algorithm whose layout has changed restarts
// with a marked window, and the others are not affected.
func TestUpgrade(t *testing.T) { upgrades(t, 3, datagrams) }

func upgrades(t *testing.T, times int, traffic func(*testing.T, *netns.Topology) netnstest.Flood) {
	network := quietNetwork(t)
	flood := traffic(t, network)
	root := testutil.BPFFS(t)
	second, patched := filepath.Join(t.TempDir(), "second"), filepath.Join(t.TempDir(), "patched")
	if err := build(second, "second"); err != nil {
		t.Fatal(err)
	}
	buildPatched(t, patched)
	builds := []string{binary, second, patched}
	p := newPlace(t, network.A)
	p.write(fmt.Sprintf("pin: true\nbpffs: %s\ninstances:\n  - name: a\n    interfaces: [%s]\n    hook: tc\n    direction: %s\n    window: 200ms\n"+
		"    algorithms: {rtt-array: {}, precision: {}}\n", root, flood.Interface, flood.Direction))
	r := p.start(binary)
	eventually(t, "attaching", func() bool { return len(r.attached("a")) == 1 })
	end := begin(t, flood)
	changed := 0
	for n := 1; n <= times; n++ {
		r.stop()
		r = p.start(builds[n%3])
		if n%3 != 1 {
			changed++ // to the other layout, and back from it
		}
		eventually(t, "a window of the next build", func() bool { return r.health().Instances[0].Windows > 1 })
	}
	n := end()
	p.write("instances: [{name: b, interfaces: [xdpmon-none], algorithms: {precision: {}}}]\n" + "pin: true\nbpffs: " + root + "\n")
	r.hangup() // the last window of a removed instance, and nothing stays pinned
	eventually(t, "the end of an instance", func() bool { return len(r.health().Instances) == 1 })
	r.stop()
	list := p.windows()
	if counted := seen(list, "rtt-array", "a"); counted != n || n == 0 {
		t.Errorf("counted %d of %d packets", counted, n)
	}
	cut := 0
	for _, l := range list {
		if l.Window.Cut && l.Algorithm == "rtt-array" {
			t.Errorf("a window of what has not changed was cut: %+v", l)
		}
		if l.Window.Cut {
			cut++
		}
	}
	if cut != changed {
		t.Errorf("%d windows were cut, %d times the layout had changed", cut, changed)
	}
	if counted := seen(list, "precision", "a"); counted > n {
		t.Errorf("what was replaced counted %d of %d packets", counted, n)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "xdpmon", "*", "current")); len(left) != 0 {
		t.Errorf("%v stay", left)
	}
	t.Logf("%d packets, %d upgrades, %d of them to another layout of one algorithm", n, times, changed)
}
