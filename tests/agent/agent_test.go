package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// Interfaces are attached to when they appear, by name and kind, and released when they go, are renamed or are excluded.
func TestFollowsInterfaces(t *testing.T) {
	network := quietNetwork(t)
	handle := netlinkOf(t, network.A)
	p := newPlace(t, network.A)
	p.write(`window: 200ms
instances:
  - name: some
    interfaces: ["xdpmon-v*"]
    kinds: [veth]
    exclude: [xdpmon-v9]
    algorithms: {precision: {}}
  - name: every
    interfaces: ["lo"]
    each: true
    algorithms: {fridge: {}}
`)
	addVeth(t, handle, "xdpmon-v1", "xdpmon-p1")
	r := p.start(binary)
	second := addVeth(t, handle, "xdpmon-v2", "xdpmon-p2")
	addVeth(t, handle, "xdpmon-v9", "xdpmon-p9")
	eventually(t, "attaching", func() bool {
		return slices.Equal(r.attached("some"), []string{"xdpmon-v1", "xdpmon-v2"}) && slices.Equal(r.attached("every/lo"), []string{"lo"})
	})
	if err := handle.LinkSetDown(second); err != nil {
		t.Fatal(err)
	}
	if err := handle.LinkSetName(second, "xdpmon-w2"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "releasing a renamed one", func() bool { return slices.Equal(r.attached("some"), []string{"xdpmon-v1"}) })
	if err := handle.LinkSetName(second, "xdpmon-v3"); err != nil {
		t.Fatal(err)
	}
	first, err := handle.LinkByName("xdpmon-v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := handle.LinkDel(first); err != nil {
		t.Fatal(err)
	}
	addVeth(t, handle, "xdpmon-v1", "xdpmon-p1") // another interface of the same name
	eventually(t, "following", func() bool { return slices.Equal(r.attached("some"), []string{"xdpmon-v3", "xdpmon-v1"}) })
	eventually(t, "a window in the store", func() bool { return len(p.history("--algo", "precision", "--interface", "some")) > 2 })
	if h := r.health(); h.Status != "ok" || h.Store.Failed != 0 || h.Reloads.Taken != 0 {
		t.Errorf("%+v", h)
	}
	r.stop()
	if last := p.windows(); !last[len(last)-1].Window.Last {
		t.Error("the last window was not reported")
	}
	if n, m := len(p.windows()), len(p.history()); n != m {
		t.Errorf("%d windows in the output, %d in the store", n, m)
	}
	for name, want := range map[string]os.FileMode{"windows.jsonl": 0o600, "store/windows.db": 0o600, "store": 0o700} {
		if info, err := os.Stat(p.file(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}

// reloads are consecutive configurations; the errors of rejected ones name the position.
func reloads(flood netnstest.Flood, n int) (text, refused string) {
	other := "lo"
	if flood.Interface == other {
		other = "xdpmon-*"
	}
	rule := func(window, algorithms, more string) string {
		return fmt.Sprintf("instances:\n  - name: a\n    interfaces: [%s%s]\n    hook: tc\n    direction: %s\n    window: %s\n    algorithms: %s\n",
			flood.Interface, more, flood.Direction, window, algorithms)
	}
	switch n % 8 {
	case 0:
		return rule("200ms", "{precision: {}, fridge: {match: dns}}", ""), ""
	case 1:
		return rule("200ms", "{precision: {}, fridge: {mach: dns}}", ""), `:10:42: fridge has no key "mach"`
	case 2:
		return rule("300ms", "{precision: {}, fridge: {match: dns}}", ""), ""
	case 3:
		return rule("300ms", "{precisio: {}}", ""), `:10:18: there is no algorithm "precisio"`
	case 4:
		return rule("300ms", "{fridge: {match: dns}, precision: {}}", ", "+other), ""
	case 5:
		return "instances: [\n", "no YAML"
	case 6:
		return rule("200ms", "{precision: {}, reorder: {}}", "") + "  - name: b\n    interfaces: [" + other + "]\n    algorithms: {fridge: {}}\n", ""
	}
	return rule("200ms", "{precision: {}}", "") + "limits: {memory: 64KiB}\n", ":11:9: one instance of every rule needs"
}

// Configurations change while packets arrive: every packet is in exactly one window, and an error is rejected with its position while the rest
// continues.
func TestReload(t *testing.T) { storm(t, 8, datagrams) }

func storm(t *testing.T, times int, traffic func(*testing.T, *netns.Topology) netnstest.Flood) {
	network := quietNetwork(t)
	flood := traffic(t, network)
	p := newPlace(t, network.A)
	text, _ := reloads(flood, 0)
	p.write(text)
	r := p.start(binary)
	eventually(t, "attaching", func() bool { return len(r.attached("a")) == 1 })
	end := begin(t, flood)
	taken, refused := 0, 0
	for n := 1; n <= times; n++ {
		text, refusal := reloads(flood, n)
		p.write(text)
		if got := r.hangup(); !slices.Contains(got, "RELOADING=1") {
			t.Errorf("the service manager was not notified of a reload: %q", got)
		}
		if refusal == "" {
			taken++
			continue
		}
		refused++
		eventually(t, "refusing with "+refusal, func() bool { return strings.Contains(r.log.String(), strings.ReplaceAll(refusal, `"`, `\"`)) })
	}
	h := r.health()
	n := end()
	r.stop()
	if h.Reloads.Taken != taken || h.Reloads.Refused != refused {
		t.Errorf("%+v, want %d and %d", h.Reloads, taken, refused)
	}
	if n == 0 {
		t.Fatal("nothing was sent")
	}
	list := p.windows()
	if counted := seen(list, "precision", "a"); counted != n {
		t.Errorf("counted %d of %d packets", counted, n)
	}
	if counted := seen(p.history(), "precision", "a"); counted != n {
		t.Errorf("the store has %d of %d packets", counted, n)
	}
	t.Logf("%d packets in %d configurations taken and %d refused, %d windows", n, taken, refused, len(list))
	contiguous(t, list)
}

// contiguous: the windows of a permanent instance follow each other without a gap.
func contiguous(t *testing.T, list []line) {
	t.Helper()
	end := int64(0)
	for _, l := range list {
		if l.Algorithm != "precision" || l.Interface != "a" {
			continue
		}
		if end != 0 && l.Window.Start != end {
			t.Errorf("a window starts %d ns after the one before ended", l.Window.Start-end)
		}
		end = l.Window.End
	}
}

// An agent that is killed leaves a store that the next one opens, and at most the last window is missing in it.
func TestKilled(t *testing.T) { killed(t, 3) }

func killed(t *testing.T, times int) {
	network := quietNetwork(t)
	p := newPlace(t, network.A)
	p.write(fmt.Sprintf("instances:\n  - name: a\n    interfaces: [%s]\n    window: 100ms\n    algorithms: {precision: {}}\n", network.A.Interface))
	stored := 0
	for range times {
		if err := os.RemoveAll(p.file("windows.jsonl")); err != nil {
			t.Fatal(err)
		}
		r := p.start(binary)
		eventually(t, "windows", func() bool { return len(p.windows()) > 2 })
		time.Sleep(time.Duration(time.Now().UnixNano() % int64(300*time.Millisecond)))
		r.kill()
		list, all := p.windows(), p.history()
		if missing := len(list) - (len(all) - stored); missing > 1 {
			t.Errorf("%d windows are missing in the store", missing)
		}
		stored = len(all)
		if strings.Contains(r.log.String(), "could not be read") {
			t.Errorf("the store was damaged: %s", r.log.String())
		}
	}
	t.Logf("%d kills, %d windows in the store", times, stored)
}

// Snapshots are stored as soon as the configuration requests them, and one answer can be made of many windows.
func TestSnapshotsAreStored(t *testing.T) {
	network := quietNetwork(t)
	p := newPlace(t, network.A)
	p.write(fmt.Sprintf("instances:\n  - name: a\n    interfaces: [%s]\n    window: 100ms\n    direction: egress\n    algorithms: {precision: {}}\n", network.A.Interface))
	r := p.start(binary)
	eventually(t, "windows", func() bool { return len(p.windows()) > 2 })
	dir := p.file("snapshots")
	write := func() error {
		return exec.Command(binary, "history", "--config", p.file("agent.yaml"), "--snapshots", dir).Run()
	}
	if write() == nil {
		t.Error("snapshots of windows that have none")
	}
	text, err := os.ReadFile(p.file("agent.yaml"))
	if err == nil {
		err = os.WriteFile(p.file("agent.yaml"), bytes.Replace(text, []byte("windows.db}"), []byte("windows.db, snapshots: true}"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	end := begin(t, datagrams(t, network))
	r.hangup()
	stored := func() []string {
		_ = write() // none may be there yet
		files, err := filepath.Glob(filepath.Join(dir, "*.xdpsnap"))
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	eventually(t, "snapshots", func() bool { return len(stored()) > 3 })
	end()
	r.stop()
	files := stored() // no agent is running: from the store itself
	out, err := exec.Command(binary, append([]string{"merge", "--output", "json"}, files...)...).Output()
	if err != nil {
		t.Fatalf("merge %d snapshots: %v", len(files), err)
	}
	merged, all := windows(t, out), p.windows()
	if len(merged) != 1 || len(all) <= len(files) || merged[0].Packets.Seen != seen(all[len(all)-len(files):], "precision", "a") || merged[0].Packets.Seen == 0 {
		t.Errorf("%d of %d windows have a snapshot and make %+v of the last %d packets", len(files), len(all), merged,
			seen(all[max(0, len(all)-len(files)):], "precision", "a"))
	}
}

// The schema that is shipped is the one of this binary, and the configuration that is shipped is right.
func TestShipped(t *testing.T) {
	root := testutil.Root(t)
	algorithms := readJSON(t, filepath.Join(root, "deploy", "algorithms.schema.json"))
	delete(algorithms, "$schema")
	delete(algorithms, "title")
	for name, command := range serviceCommands(t) {
		out, err := exec.Command(command[0], append(command[1:], "--schema")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		var schema map[string]any
		if err := json.Unmarshal(out, &schema); err != nil {
			t.Fatal(err)
		}
		defs := schema["$defs"]
		delete(schema, "$defs")
		if !reflect.DeepEqual(defs, map[string]any{"algorithms": algorithms}) || !reflect.DeepEqual(schema, readJSON(t, filepath.Join(root, "deploy", name+".schema.json"))) {
			t.Errorf("deploy/%s.schema.json and algorithms.schema.json are not what the binary prints (make generate)", name)
		}
	}
	for name, command := range serviceCommands(t) {
		out, err := exec.Command(command[0], append(command[1:], "--check", "--config", filepath.Join(root, "deploy", name+".yaml"))...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	for name, documents := range map[string]int{"daemonset.yaml": 3, "coordinator.yaml": 4} {
		if n := manifest(t, filepath.Join(root, "deploy", "kubernetes", name)); n != documents {
			t.Errorf("%s has %d documents, want %d", name, n, documents)
		}
	}
}

func readJSON(t *testing.T, path string) (v map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// serviceCommands are what reads the configuration of a name.
func serviceCommands(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{"agent": {binary, "agent"}, "coordinator": {coordinatorBinary(t)}}
}

// manifest checks what can be checked without a cluster: documents with the fields that every object has, volumes for everything that is
// mounted, arguments and configurations that the binary accepts.
func manifest(t *testing.T, path string) (documents int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; documents++ {
		var o struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
			Metadata   struct{ Name, Namespace string }
			Data       map[string]string
			Spec       struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Image        string
							Args         []string
							VolumeMounts []struct {
								Name      string
								MountPath string `yaml:"mountPath"`
							} `yaml:"volumeMounts"`
						}
						Volumes []struct{ Name string }
					}
				}
				VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
			}
		}
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return documents
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if o.APIVersion == "" || o.Kind == "" || o.Metadata.Name == "" || o.Kind != "Namespace" && o.Metadata.Namespace != "xdpmon" {
			t.Errorf("%s: %+v", path, o)
		}
		for name, text := range o.Data {
			if err := checkedWithoutKeys(t, strings.TrimSuffix(name, ".yaml"), text); err != nil {
				t.Errorf("%s, %s: %v", path, name, err)
			}
		}
		volumes := map[string]bool{}
		for _, v := range o.Spec.Template.Spec.Volumes {
			volumes[v.Name] = true
		}
		for _, v := range o.Spec.VolumeClaimTemplates {
			volumes[v.Metadata.Name] = true
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			if args := strings.Join(append([]string{c.Image}, c.Args...), " "); args != "xdpmon:latest agent --config /etc/xdpmon/agent.yaml" &&
				args != "xdpmon-coordinator:latest --config /etc/xdpmon-coordinator/config/coordinator.yaml" {
				t.Errorf("%s: %s", path, args)
			}
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("%s: nothing is to be mounted at %s", path, m.MountPath)
				}
			}
		}
	}
}

// checkedWithoutKeys is --check with keys that are there.
func checkedWithoutKeys(t *testing.T, name, text string) error {
	t.Helper()
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	host, _ := os.Hostname()
	for _, args := range [][]string{{"keys", "init"}, {"keys", "coordinator", "tls", "--host", "127.0.0.1"}, {"keys", "agent", host}} {
		if out, err := exec.Command(coordinatorBinary(t), append(args, "--dir", keys)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	text = strings.NewReplacer("/etc/xdpmon/keys/agent", filepath.Join(keys, host), "/etc/xdpmon/keys", keys, "/etc/xdpmon-coordinator/keys", keys).Replace(text)
	path := filepath.Join(dir, name+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := serviceCommands(t)[name]
	out, err := exec.Command(command[0], append(command[1:], "--check", "--config", path)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
