package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	file "github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// cells is an algorithm of this test alone: 8 bytes a cell, and an odd number of them is one that only it can refuse.
type cells struct{ n uint32 }

func (c cells) Configure(s *ebpf.CollectionSpec) error {
	s.Maps = map[string]*ebpf.MapSpec{"cells": {Name: "cells", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: c.n}}
	return nil
}
func (cells) Needs() maps.Need                                    { return 0 }
func (cells) Bind(*maps.Set) error                                { return nil }
func (cells) Read(report.Window, int) (*snapshot.Snapshot, error) { return &snapshot.Snapshot{}, nil }

func init() {
	algo.Register(&algo.Descriptor{
		Name: "cells", Summary: "cells of the test",
		Params: []algo.Param{
			{Key: "number", Type: algo.Int, Default: "1024", Min: "2", Max: "1048576", Help: "cells"},
			{Key: "match", Type: algo.Enum, Default: "tcp", Choices: []string{"tcp", "dns"}, Help: "what is matched"},
			{Key: "share", Type: algo.Float, Default: "1/4", Min: "0", Max: "1", Help: "share"},
			{Key: "after", Type: algo.Duration, Default: "1s", Help: "time"},
			{Key: "text", Type: algo.String, Default: "", Help: "text"},
			{Key: "on", Type: algo.Bool, Default: "true", Help: "switch"},
		},
		Spec: func() (*ebpf.CollectionSpec, error) { return &ebpf.CollectionSpec{}, nil },
		Config: algo.Typed(func(v algo.Values, _ algo.Setup) (cellConfig, error) {
			if v.Int("number")%2 == 1 {
				return cellConfig{}, v.Error("number", "an even number is needed")
			}
			return cellConfig{uint32(v.Int("number"))}, nil
		}),
	})
}

type cellConfig struct{ number uint32 }

func (c cellConfig) New(algo.Env) (algo.Instance, error)          { return cells{c.number}, nil }
func (cellConfig) Report(*snapshot.Snapshot) (algo.Result, error) { return algo.Result{}, nil }

const full = `# everything that there is
log: {format: json, level: debug}
window: 30s
listen: ":9400"
metrics_rows: true
metrics_histograms: native
metrics_limit: 9000
socket: /run/xdpmon/agent.sock
outputs:
  - json: "-"
  - {json: /var/log/xdpmon/windows.jsonl, cdf: true}
store: {path: /var/lib/xdpmon/windows.db, max_age: 24h, max_bytes: 64MiB}
names: {libvirt: false, namespaces: true}
limits: {interfaces: 300, instances: 20, memory: 32MiB, heap: 64MiB}
pin: true
bpffs: /run/xdpmon/bpf
instances:
  - name: tenants
    interfaces: ["tap*", "vnet[0-9]*"]
    kinds: [tap, veth]
    exclude: [tap0]
    each: true
    window: 1m
    windows: {cells: 2m}
    hook: tc
    mode: native
    direction: egress
    seed: 7
    hash: crc
    decap: true
    algorithms:
      cells: {number: 4096, match: dns, share: 1/2, after: 5s, text: "a b", on: false}
  - name: edge
    kinds: [physical]
    algorithms:
      cells:
`

func TestFull(t *testing.T) {
	c, err := Parse("agent.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	tenants, edge := c.Instances[0], c.Instances[1]
	v := tenants.Algorithms[0].Values
	if want := (settings.Metrics{Rows: true, Histograms: prom.NativeHistograms, Limit: 9000}); c.Metrics != want {
		t.Errorf("%+v, want %+v", c.Metrics, want)
	}
	if c.Window != 30*time.Second || c.Listen != ":9400" || len(c.Outputs) != 2 || !c.Outputs[1].CDF || c.Store.MaxBytes != 64<<20 ||
		c.Names.Libvirt || !c.Names.Namespaces || c.Limits != (Limits{300, 20, 32 << 20, 64 << 20}) || !c.Pin || c.Log.Level != "debug" {
		t.Errorf("%+v", c)
	}
	if tenants.Algorithms[0].Window != int64(2*time.Minute) || tenants.Algorithms[0].Setup.WindowNS != int64(2*time.Minute) || edge.Algorithms[0].Window != 0 {
		t.Errorf("windows of %+v and %+v", tenants.Algorithms[0], edge.Algorithms[0])
	}
	if tenants.Window != time.Minute || !tenants.Each || tenants.Seed != 7 || tenants.Hash != algo.HashCRC || !tenants.Decap || tenants.Direction != "egress" ||
		v.Int("number") != 4096 || v.Float("share") != .5 || v.Bool("on") || v.Text("text") != "a b" {
		t.Errorf("%+v %v", tenants, v.Map())
	}
	if edge.Window != 30*time.Second || edge.Direction != "ingress" || edge.Hook != "auto" || edge.Algorithms[0].Values.Int("number") != 1024 {
		t.Errorf("%+v", edge)
	}
	if n, err := tenants.Memory(); err != nil || n != 4096*8 {
		t.Errorf("memory %d, %v", n, err)
	}
	if tenants.SameRegisters(edge) || !tenants.SameRegisters(tenants) {
		t.Error("two rules are taken for one")
	}
}

// least is a configuration that is right; more is added to it.
const least = "instances:\n  - name: a\n    interfaces: [eth0]\n    algorithms: {cells: {}}\n"

// wrong are configurations that are rejected: with position and error. structure marks those that the schema refuses as well: the others are
// wrong by what values mean together.
var wrong = []struct {
	text, at, message string
	structure         bool
}{
	{"", "1:1", "empty", false},
	{"# nothing\n", "1:1", "empty", false},
	{"[]", "1:1", "is a mapping", true},
	{"a: [1,\nb: 2", "2:1", "no YAML", false},
	{least + "---\na: b\n", "5:1", "second document", false},
	{"window: 1s\n", "1:1", "lacks instances", true},
	{"instances: []\n", "1:12", "instances is empty", true},
	{least + "windw: 1s\n", "5:1", "did you mean window?", true},
	{least + "window: 10\n", "5:9", "give a duration like", true},
	{least + "window: 1ms\n", "5:9", "allowed are 100ms", false},
	{least + "window: [1s]\n", "5:9", "one value, not a list", true},
	{least + "    windows: {fridge: 1m}\n", "5:15", "windows of fridge, which is not among the algorithms", true},
	{least + "    windows: {cells: 1ms}\n", "5:22", "allowed are 100ms", false},
	{least + "    windows: [cells]\n", "5:14", "windows is a mapping", true},
	{least + "window: 1s\nwindow: 2s\n", "6:1", "given twice: line 5", false},
	{least + "listen: ':999999'\n", "5:9", "not a TCP port", false},
	{least + "pin: perhaps\n", "5:6", "true or false", true},
	{least + "socket: agent.sock\n", "5:9", "absolute path", true},
	{least + "log: {format: xml}\n", "5:15", "choose one of text, json", true},
	{least + "log: {levl: info}\n", "5:7", "did you mean level?", true},
	{least + "outputs: [{}]\n", "5:11", "lacks json", true},
	{least + "outputs: [{json: w.jsonl}]\n", "5:18", "absolute path", true},
	{least + "outputs: [{json: '-'}, {json: '-'}]\n", "5:10", "two outputs", false},
	{least + "store: {max_bytes: 1kB}\n", "5:20", "allowed are", false},
	{least + "store: {max_bytes: much}\n", "5:20", "give a size like", true},
	{least + "limits: {instances: 0}\n", "5:21", "an integer from 1", true},
	{least + "limits: {instances: '3'}\n", "5:21", "an integer", true},
	{least + "  - name: a\n    kinds: [veth]\n    algorithms: {cells: }\n", "5:11", "two instances are named a", false},
	{"instances:\n  - name: a/b\n    kinds: [veth]\n    algorithms: {cells: }\n", "2:11", "letters, digits", true},
	{"instances:\n  - name: a\n    algorithms: {cells: }\n", "2:11", "matches no interfaces", false},
	{"instances:\n  - name: a\n    interfaces: []\n    algorithms: {cells: }\n", "3:17", "is empty", true},
	{"instances:\n  - name: a\n    interfaces: ['[']\n    algorithms: {cells: }\n", "3:18", "pattern", false},
	{"instances:\n  - name: a\n    kinds: [vet]\n    algorithms: {cells: }\n", "3:13", "did you mean veth?", true},
	{"instances:\n  - name: a\n    kinds: [veth]\n", "2:5", "needs algorithms", true},
	{"instances:\n  - name: a\n    kinds: [veth]\n    algorithms: {}\n", "4:17", "algorithms are missing", true},
	{"instances:\n  - name: a\n    kinds: [veth]\n    algorithms: {cels: }\n", "4:18", "did you mean cells?", true},
	{"instances:\n  - name: a\n    kinds: [veth]\n    algorithms:\n      cells: {numbr: 4}\n", "5:15", "did you mean number?", true},
	{"instances:\n  - name: a\n    kinds: [veth]\n    algorithms:\n      cells: {number: 1}\n", "5:23", "allowed are 2 to", false},
	{"instances:\n  - name: a\n    kinds: [veth]\n    algorithms:\n      cells: {number: 3}\n", "5:7", "even number", false},
	{"instances:\n  - name: a\n    kinds: [veth]\n    algorithms:\n      cells: {match: udp}\n", "5:22", "choose one of tcp, dns", true},
	{"instances:\n  - name: a\n    kinds: [veth]\n    hook: xdp\n    direction: egress\n    algorithms: {cells: }\n", "4:11", "XDP sees arriving packets only", false},
	{"x: &a [*a]\n", "1:1", "no key", true},
	{least + "names: {libvirt: }\n", "5:18", "true or false", true},
	{least + "names: {libvirt: yes}\n", "5:18", "libvirt is true or false, not \"yes\"", true},
	{"instances:\n  - name: a\n    kinds: [veth]\n    algorithms:\n      cells: {match: }\n", "5:22", "cells.match has no value", true},
	{"instances:\n  - name: a\n    kinds: [veth]\n    algorithms:\n      cells: {match: [tcp]}\n", "5:22", "cells.match is one value, not a list", true},
	{"instances:\n  - name: a\n    kinds: [veth]\n    algorithms:\n      cells: 7\n", "5:14", "cells is a mapping (key: value), not \"7\"", true},
	{"instances:\n  - name: a\n    kinds: veth\n    algorithms: {cells: }\n", "3:12", "kinds is a list, not \"veth\"", true},
	{"instances:\n  - name: a\n    kinds: [veth]\n    algorithms: {cells: , cells: }\n", "4:27", "cells is given twice: line 4", false},
	{"instances:\n  - name:\n    kinds: [veth]\n    algorithms: {cells: }\n", "2:10", "name is empty", true},
	{"instances:\n  - {name: a, kinds: [veth], shared: true, window: 1s}\nbus: {servers: ['nats://127.0.0.1']}\n", "2:52", "window of a shared instance is set by the coordinator", false},
	{"instances:\n  - {name: a, kinds: [veth], shared: true}\n", "2:12", "instance a is shared: it needs bus", false},
	{least + "[a]: 1\n", "5:1", "a key is a word, not a list", false},
	{least + "log: text\n", "5:6", "log is a mapping (key: value), not \"text\"", true},
	{least + "socket: {}\n", "5:9", "socket is one value, not a mapping", true},
	{least + "bus: {servers: []}\n", "5:16", "servers is empty", true},
	{least + "bus: {}\n", "5:6", "bus lacks servers", true},
	{least + "bus: {servers: ['tls://h:1'], keys: {ca: /a, certificate: /b}}\n", "5:37", "keys lacks key", true},
	{least + "bus: {servers: ['http://h:1']}\n", "5:17", "tls:// or nats://", false},
	{least + "bus: {servers: ['nats://h:1']}\n", "5:16", "nats://h:1 is on another host, or keys are set: use tls://h:1", false},
}

func TestWrong(t *testing.T) {
	schema := compiled(t)
	for _, c := range wrong {
		_, err := Parse("f", []byte(c.text))
		var problems *file.Error
		if !errors.As(err, &problems) {
			t.Errorf("taken, or refused without a place: %q: %v", c.text, err)
			continue
		}
		if got := err.Error(); !strings.Contains(got, "f:"+c.at+": ") || !strings.Contains(got, c.message) {
			t.Errorf("%q is refused with %q, want %s and %q", c.text, got, c.at, c.message)
		}
		var v any
		if yaml.Unmarshal([]byte(c.text), &v) != nil || v == nil || strings.Contains(c.text, "---") {
			continue
		}
		if refused := schema.Validate(v) != nil; refused != c.structure {
			t.Errorf("%q: the schema refuses it: %v, want %v", c.text, refused, c.structure)
		}
	}
}

// All errors are reported together, in the order of the file.
func TestAllProblems(t *testing.T) {
	_, err := Parse("f", []byte("windw: 1\ninstances:\n  - name: a\n    kinds: [vet, veht]\n    algorithms: {cels: , cells: {match: x}}\n"))
	var problems *file.Error
	if !errors.As(err, &problems) || len(problems.Problems) != 5 {
		t.Fatalf("%v", err)
	}
	for i, p := range problems.Problems[1:] {
		if before := problems.Problems[i]; before.Line > p.Line || before.Line == p.Line && before.Column > p.Column {
			t.Errorf("%v precedes %v", before, p)
		}
	}
}

// compiled is the schema as a validator reads it.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("agent.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("agent.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What the code takes the schema takes.
func TestSchemaTakesWhatIsRight(t *testing.T) {
	schema := compiled(t)
	for _, text := range []string{full, least, least + "limits:\nnames:\nstore:\n", least + "window: 1.5h30m\n",
		least + "limits: {memory: 1048576}\n", strings.Replace(least, "{}", "{number: '2', share: .5, on: 'false'}", 1)} {
		if _, err := Parse("f", []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%q: the schema refuses it: %v", text, err)
		}
	}
}

// Memory is judged before anything is loaded.
func TestMemory(t *testing.T) {
	big := strings.Replace(least, "{}", "{number: 1048576}", 1)
	if _, err := Parse("f", []byte(big+"limits: {memory: 8MiB}\n")); err != nil {
		t.Error(err)
	}
	if _, err := Parse("f", []byte(big+"limits: {memory: 7MiB}\n")); err == nil || !strings.Contains(err.Error(), "f:5:9: one instance of every rule needs 8388608 bytes") {
		t.Errorf("%v", err)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for mode, message := range map[os.FileMode]string{0o600: "", 0o640: "read by others", 0o660: "writable by others"} {
		if err := os.WriteFile(path, []byte(least), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err != nil {
			t.Error(err)
		}
		if got := file.Exposed(path); (got == "") != (message == "") || !strings.Contains(got, message) {
			t.Errorf("mode %v: %q", mode, got)
		}
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("# much\n"), file.MaxFile/7+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("%v", err)
	}
}

// Whatever is read, it is taken or refused with a place, and nothing panics.
func FuzzParse(f *testing.F) {
	f.Add(full)
	for _, c := range wrong {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Parse("f", []byte(text))
		var problems *file.Error
		if err != nil && (!errors.As(err, &problems) || problems.Problems[0].Line < 1 || problems.Problems[0].Column < 1) {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// An instance becomes another one while it runs only if both count the same packets with the same hashes.
func TestSameRegisters(t *testing.T) {
	full := Instance{Name: "a", Each: true, Hook: "tc", Mode: "native", Direction: "ingress", Seed: 7, Hash: algo.HashCRC, Decap: true, Pin: "/a"}
	if other := full; !full.SameRegisters(other) {
		t.Error("an instance cannot become itself")
	}
	for what, change := range map[string]func(*Instance){
		"name": func(i *Instance) { i.Name = "b" }, "each": func(i *Instance) { i.Each = false }, "hook": func(i *Instance) { i.Hook = "xdp" },
		"mode": func(i *Instance) { i.Mode = "generic" }, "direction": func(i *Instance) { i.Direction = "egress" }, "seed": func(i *Instance) { i.Seed = 8 },
		"hash": func(i *Instance) { i.Hash = algo.HashFast }, "decap": func(i *Instance) { i.Decap = false }, "pin": func(i *Instance) { i.Pin = "/b" },
	} {
		other := full
		if change(&other); full.SameRegisters(other) || other.SameRegisters(full) {
			t.Errorf("another %s, and the registers stay", what)
		}
	}
}

// The coordinator section of an agent's configuration.
func TestBus(t *testing.T) {
	const shared = "instances:\n  - {name: a, interfaces: [eth0], shared: true}\n"
	const ka = "keys: {ca: /a, certificate: /b, key: /c, revoked: /d}"
	c, err := Parse("f", []byte(shared+"bus: {servers: ['tls://192.0.2.7:4222', 'tls://central:4222'], name: host1, buffer: 32MiB, plan: /p, "+ka+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if b := c.Bus; len(b.Servers) != 2 || b.Name != "host1" || b.Buffer != 32<<20 || b.Plan != "/p" || b.Keys.Revoked != "/d" || !c.Instances[0].Shared {
		t.Errorf("%+v", b)
	}
	for text, want := range map[string]string{
		shared:                      "bus",
		shared + "bus: {name: x}\n": "f:3:6: ",
		shared + "bus: {servers: ['nats://192.0.2.7:4222']}\n":                                                                       "is on another host, or keys are set: use tls://192.0.2.7:4222",
		shared + "bus: {servers: ['tls://192.0.2.7:4222']}\n":                                                                        "needs keys: make them with `xdpmon-coordinator keys`",
		shared + "bus: {servers: ['tls://u:p@192.0.2.7:4222']}\n":                                                                    "tls://HOST:PORT",
		shared + "bus: {servers: ['nats://127.0.0.1'], name: a b}\n":                                                                 `name "a b"`,
		shared + "bus: {servers: ['nats://127.0.0.1'], buffer: 1}\n":                                                                 "f:3:46: ",
		"instances:\n  - {name: a, interfaces: [eth0], shared: true, algorithms: {cells: }}\nbus: {servers: ['nats://127.0.0.1']}\n": "coordinator",
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
