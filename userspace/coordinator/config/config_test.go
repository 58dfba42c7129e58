package config

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	file "github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// cell is an algorithm of this test alone.
type cell struct{}

func (cell) Configure(*ebpf.CollectionSpec) error                { return nil }
func (cell) Needs() maps.Need                                    { return 0 }
func (cell) Bind(*maps.Set) error                                { return nil }
func (cell) Read(report.Window, int) (*snapshot.Snapshot, error) { return &snapshot.Snapshot{}, nil }

type (
	cellConfig  struct{}
	addedConfig struct{ cellConfig }
	never       struct{ addedConfig }
)

func (cellConfig) New(algo.Env) (algo.Instance, error)                        { return cell{}, nil }
func (cellConfig) Report(*snapshot.Snapshot) (algo.Result, error)             { return algo.Result{}, nil }
func (addedConfig) Merge(a, _ *snapshot.Snapshot) (*snapshot.Snapshot, error) { return a, nil }

func (never) CheckMerge() error { return errors.New("set never.export=true") }

// The windows of cells cannot be put together, those of added can; acting may drop packets.
func init() {
	cells := algo.Descriptor{Name: "cells", Summary: "cells of the test", Spec: func() (*ebpf.CollectionSpec, error) { return &ebpf.CollectionSpec{}, nil },
		Config: algo.Typed(func(algo.Values, algo.Setup) (cellConfig, error) { return cellConfig{}, nil })}
	added := cells
	added.Name = "added"
	added.Config = algo.Typed(func(algo.Values, algo.Setup) (addedConfig, error) { return addedConfig{}, nil })
	acting := added
	acting.Name, acting.Enforces = "acting", true
	unmerged := added
	unmerged.Name, unmerged.Config = "unmerged", algo.Typed(func(algo.Values, algo.Setup) (never, error) { return never{}, nil })
	for _, d := range []*algo.Descriptor{&cells, &added, &acting, &unmerged} {
		algo.Register(d)
	}
}

const full = `# everything that there is
measurements:
  - name: edge
    window: 30s
    wait: 4s
    seed: 7
    hash: crc
    decap: true
    vantage: [{name: leaves, hosts: ["leaf*"]}, {name: spines, hosts: ["spine*", core1]}]
    algorithms: {added: {}}
  - name: all
    algorithms: {added: }
bus:
  listen: 192.0.2.7:4222
  keys: {ca: /k/ca.crt, certificate: /k/c.crt, key: /k/c.key, revoked: /k/revoked.crl}
  cluster: {name: c0, listen: "192.0.2.7:6222", routes: ["192.0.2.8:6222", "192.0.2.9:6222"]}
data: /var/lib/xdpmon/coordinator
paths: /etc/xdpmon/paths
limits: {agents: 100, message: 2MiB, rate: 50, heap: 128MiB}
outputs: [{json: "-"}]
listen: ":9401"
metrics_rows: true
metrics_histograms: native
metrics_limit: 9000
socket: /run/xdpmon/coordinator.sock
store: {path: /var/lib/xdpmon/windows.db, max_age: 24h, max_bytes: 64MiB}
log: {format: json, level: debug}
`

func TestFull(t *testing.T) {
	c, err := Parse("f", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	edge, all := c.Measurements[0], c.Measurements[1]
	if edge.Window != 30*time.Second || edge.Wait != 4*time.Second || edge.Seed != 7 || !edge.CRC || !edge.Decap || len(edge.Vantage) != 2 || len(edge.Algorithms) != 1 {
		t.Errorf("%+v", edge)
	}
	if all.Window != 10*time.Second || all.Wait != time.Second || all.Seed != 0 || len(all.Of("x")) != 1 {
		t.Errorf("%+v", all)
	}
	if got := edge.Of("spine3"); len(got) != 1 || got[0] != "spines" || edge.Of("host") != nil {
		t.Errorf("spine3 is in %v, host in %v", got, edge.Of("host"))
	}
	want := keys.Files{CA: "/k/ca.crt", Certificate: "/k/c.crt", Key: "/k/c.key", Revoked: "/k/revoked.crl"}
	if want := (settings.Metrics{Rows: true, Histograms: prom.NativeHistograms, Limit: 9000}); c.Metrics != want {
		t.Errorf("%+v, want %+v", c.Metrics, want)
	}
	if c.Bus.Listen != "192.0.2.7:4222" || *c.Bus.Keys != want || c.Bus.Cluster.Name != "c0" || len(c.Bus.Cluster.Routes) != 2 || c.Paths != "/etc/xdpmon/paths" ||
		c.Limits != (Limits{100, 2 << 20, 50, 128 << 20}) {
		t.Errorf("%+v", c)
	}
}

// least is right; more is added to it.
const least = "measurements:\n  - name: a\n    algorithms: {added: }\n"

func TestWrong(t *testing.T) {
	schema := compiled(t)
	const ka = "keys: {ca: /a, certificate: /b, key: /c}"
	for _, c := range []struct {
		text, at, contains string
		structure          bool
	}{
		{"bus: {}\n", "1:1", "lacks measurements", true},
		{"measurements: []\n", "1:15", "is empty", true},
		{least + "  - name: a\n    algorithms: {added: }\n", "4:11", "two measurements are named a", false},
		{least + "    algorithms: {added: }\n", "4:5", "given twice", false},
		{"measurements:\n  - name: a/b\n    algorithms: {added: }\n", "2:11", "letters, digits", true},
		{"measurements:\n  - name: a\n    algorithms: {acting: }\n", "3:18", "only be enabled in a host's own configuration", false},
		{"measurements:\n  - name: a\n    algorithms: {cells: }\n", "3:18", "windows of hosts cannot be merged", false},
		{"measurements:\n  - name: a\n    algorithms: {unmerged: }\n", "3:18", "windows of two hosts cannot be merged: set never.export=true", false},
		{"measurements:\n  - name: a\n    algorithms: {ade: }\n", "3:18", "added", true},
		{"measurements:\n  - name: a\n    wait: 1ms\n    algorithms: {added: }\n", "3:11", "allowed are 10ms", false},
		{"measurements:\n  - name: a\n    seed: 0\n    algorithms: {added: }\n", "3:11", "an integer from 1", true},
		{"measurements:\n  - name: a\n    vantage: [{name: x}]\n    algorithms: {added: }\n", "3:15", "lacks hosts", true},
		{"measurements:\n  - name: a\n    vantage: [{name: x, hosts: ['[']}]\n    algorithms: {added: }\n", "3:33", "pattern", false},
		{least + "bus: {listen: '0.0.0.0:4222'}\n", "4:15", "is reachable from other hosts: set keys", false},
		{least + "bus: {listen: 4222}\n", "4:15", "HOST:PORT", true},
		{least + "bus: {keys: {ca: /a, certificate: /b}}\n", "4:13", "lacks key", true},
		{least + "bus: {keys: {ca: a, certificate: /b, key: /c}}\n", "4:18", "absolute path", true},
		{least + "bus: {cluster: {name: c, listen: '192.0.2.1:1', routes: ['192.0.2.2:1']}}\n", "4:16", "is on another host: set keys", false},
		{least + "bus: {cluster: {name: c, listen: '127.0.0.1:1'}}\n", "4:16", "lacks routes", true},
		{least + "bus: {external: ['nats://192.0.2.1:4222']}\n", "4:17", "is on another host", false},
		{least + "bus: {external: ['tls://192.0.2.1:4222']}\n", "4:17", "needs keys", false},
		{least + "bus: {external: ['http://192.0.2.1']}\n", "4:18", "tls:// or nats://", false},
		{least + "bus: {external: ['tls://192.0.2.1:4222'], " + ka + ", cluster: {name: c, listen: '127.0.0.1:1', routes: ['127.0.0.1:2']}}\n", "4:94", "with external servers it cannot be set", false},
		{least + "limits: {rate: 1}\n", "4:16", "an integer from 10", true},
		{least + "limits: {message: 1kB}\n", "4:19", "allowed are", false},
		{least + "limits: {agents: 0}\n", "4:18", "an integer from 1", true},
		{least + "pahts: /x\n", "4:1", "did you mean paths?", true},
	} {
		_, err := Parse("f", []byte(c.text))
		var problems *file.Error
		if !errors.As(err, &problems) {
			t.Errorf("taken, or refused without a place: %q: %v", c.text, err)
			continue
		}
		if got := err.Error(); !strings.Contains(got, "f:"+c.at+": ") || !strings.Contains(got, c.contains) {
			t.Errorf("%q is refused with %q, want %s and %q", c.text, got, c.at, c.contains)
		}
		var v any
		if yaml.Unmarshal([]byte(c.text), &v) != nil {
			continue
		}
		if refused := schema.Validate(v) != nil; refused != c.structure {
			t.Errorf("%q: the schema refuses it: %v, want %v", c.text, refused, c.structure)
		}
	}
	for _, text := range []string{full, least, least + "bus: {external: ['tls://192.0.2.1:4222'], " + ka + "}\n"} {
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
	if err := c.AddResource("coordinator.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("coordinator.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every number, duration and size of a file has bounds, and is accepted at both of them, at any position.
func TestBounds(t *testing.T) {
	const coordinator = "measurements:\n  - {name: a, algorithms: {added: }"
	for _, c := range []struct {
		before, after                 string
		least, less, most, more, none string
	}{
		{coordinator + ", window: ", "}", "100ms", "99ms", "24h", "25h", "~"},
		{coordinator + ", wait: ", "}", "10ms", "9999us", "1h", "1h1ns", "true"},
		{coordinator + ", seed: ", "}", "1", "0", "18446744073709551615", "-1", "1.5"},
		{coordinator + "}\nlimits: {agents: ", "}", "1", "0", "131072", "131073", "all"},
		{coordinator + "}\nlimits: {message: ", "}", "65536", "65535", "32MiB", "33554433", "much"},
		{coordinator + "}\nlimits: {rate: ", "}", "10", "9", "1048576", "1048577", "{}"},
		{coordinator + "}\nlimits: {heap: ", "}", "64MiB", "67108863", "4096GiB", "4398046511105", "[]"},
	} {
		for text, ok := range map[string]bool{c.least: true, c.less: false, c.most: true, c.more: false, c.none: false} {
			if _, err := Parse("f", []byte(c.before+text+c.after)); (err == nil) != ok {
				t.Errorf("%s%s%s: %v", c.before, text, c.after, err)
			}
		}
	}
}

// Names are as long as they may be.
func TestLengths(t *testing.T) {
	for name, ok := range map[string]bool{strings.Repeat("n", 32): true, strings.Repeat("n", 33): false, "A.b_c-9": true, "-a": false, ".a": false} {
		if _, err := Parse("f", []byte("measurements:\n  - {name: "+name+", algorithms: {added: }}\n")); (err == nil) != ok {
			t.Errorf("measurement %q: %v", name, err)
		}
	}
}
