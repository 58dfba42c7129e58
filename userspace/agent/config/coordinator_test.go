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

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// added is an algorithm of this test alone, whose windows can be put together; acting is one that may drop packets.
func init() {
	d := algo.Descriptor{Name: "added", Summary: "what adds up", Spec: func() (*ebpf.CollectionSpec, error) { return &ebpf.CollectionSpec{}, nil },
		New: func(algo.Values, algo.Env) (algo.Instance, error) { return cells{2}, nil },
		Merge: func(_ algo.Values, _ algo.Env, a, _ *snapshot.Snapshot) (*snapshot.Snapshot, error) {
			return a, nil
		}}
	algo.Register(&d)
	acts := d
	acts.Name, acts.Enforces = "acting", true
	algo.Register(&acts)
}

const fullCoordinator = `# everything that there is
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
socket: /run/xdpmon/coordinator.sock
store: {path: /var/lib/xdpmon/windows.db, max_age: 24h, max_bytes: 64MiB}
log: {format: json, level: debug}
`

func TestCoordinatorFull(t *testing.T) {
	c, err := ParseCoordinator("f", []byte(fullCoordinator))
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
	if c.Bus.Listen != "192.0.2.7:4222" || *c.Bus.Keys != want || c.Bus.Cluster.Name != "c0" || len(c.Bus.Cluster.Routes) != 2 || c.Paths != "/etc/xdpmon/paths" ||
		c.Limits != (CoordinatorLimits{100, 2 << 20, 50, 128 << 20}) {
		t.Errorf("%+v", c)
	}
}

// leastCoordinator is right; more is added to it.
const leastCoordinator = "measurements:\n  - name: a\n    algorithms: {added: }\n"

func TestCoordinatorWrong(t *testing.T) {
	schema := coordinatorSchema(t)
	const ka = "keys: {ca: /a, certificate: /b, key: /c}"
	for _, c := range []struct {
		text, at, says string
		structure      bool
	}{
		{"bus: {}\n", "1:1", "lacks measurements", true},
		{"measurements: []\n", "1:15", "is empty", true},
		{leastCoordinator + "  - name: a\n    algorithms: {added: }\n", "4:11", "two measurements are named a", false},
		{leastCoordinator + "    algorithms: {added: }\n", "4:5", "given twice", false},
		{"measurements:\n  - name: a/b\n    algorithms: {added: }\n", "2:11", "letters, digits", true},
		{"measurements:\n  - name: a\n    algorithms: {acting: }\n", "3:18", "by its own configuration only", false},
		{"measurements:\n  - name: a\n    algorithms: {cells: }\n", "3:18", "how windows of hosts are put together", false},
		{"measurements:\n  - name: a\n    algorithms: {ade: }\n", "3:18", "added", true},
		{"measurements:\n  - name: a\n    wait: 1ms\n    algorithms: {added: }\n", "3:11", "allowed are 10ms", false},
		{"measurements:\n  - name: a\n    seed: 0\n    algorithms: {added: }\n", "3:11", "whole number from 1", true},
		{"measurements:\n  - name: a\n    vantage: [{name: x}]\n    algorithms: {added: }\n", "3:15", "lacks hosts", true},
		{"measurements:\n  - name: a\n    vantage: [{name: x, hosts: ['[']}]\n    algorithms: {added: }\n", "3:33", "pattern", false},
		{leastCoordinator + "bus: {listen: '0.0.0.0:4222'}\n", "4:15", "leaves this host: give keys", false},
		{leastCoordinator + "bus: {listen: 4222}\n", "4:15", "HOST:PORT", true},
		{leastCoordinator + "bus: {keys: {ca: /a, certificate: /b}}\n", "4:13", "lacks key", true},
		{leastCoordinator + "bus: {keys: {ca: a, certificate: /b, key: /c}}\n", "4:18", "from the root", true},
		{leastCoordinator + "bus: {cluster: {name: c, listen: '192.0.2.1:1', routes: ['192.0.2.2:1']}}\n", "4:16", "leaves this host: give keys", false},
		{leastCoordinator + "bus: {cluster: {name: c, listen: '127.0.0.1:1'}}\n", "4:16", "lacks routes", true},
		{leastCoordinator + "bus: {external: ['nats://192.0.2.1:4222']}\n", "4:17", "leaves this host", false},
		{leastCoordinator + "bus: {external: ['tls://192.0.2.1:4222']}\n", "4:17", "needs keys", false},
		{leastCoordinator + "bus: {external: ['http://192.0.2.1']}\n", "4:18", "tls:// or nats://", false},
		{leastCoordinator + "bus: {external: ['tls://192.0.2.1:4222'], " + ka + ", cluster: {name: c, listen: '127.0.0.1:1', routes: ['127.0.0.1:2']}}\n", "4:94", "external has its own", false},
		{leastCoordinator + "limits: {rate: 1}\n", "4:16", "whole number from 10", true},
		{leastCoordinator + "limits: {message: 1kB}\n", "4:19", "allowed are", false},
		{leastCoordinator + "limits: {agents: 0}\n", "4:18", "whole number from 1", true},
		{leastCoordinator + "pahts: /x\n", "4:1", "did you mean paths?", true},
	} {
		_, err := ParseCoordinator("f", []byte(c.text))
		var problems *Error
		if !errors.As(err, &problems) {
			t.Errorf("taken, or refused without a place: %q: %v", c.text, err)
			continue
		}
		if got := err.Error(); !strings.Contains(got, "f:"+c.at+": ") || !strings.Contains(got, c.says) {
			t.Errorf("%q is refused with %q, want %s and %q", c.text, got, c.at, c.says)
		}
		var v any
		if yaml.Unmarshal([]byte(c.text), &v) != nil {
			continue
		}
		if refused := schema.Validate(v) != nil; refused != c.structure {
			t.Errorf("%q: the schema refuses it: %v, want %v", c.text, refused, c.structure)
		}
	}
	for _, text := range []string{fullCoordinator, leastCoordinator, leastCoordinator + "bus: {external: ['tls://192.0.2.1:4222'], " + ka + "}\n"} {
		if _, err := ParseCoordinator("f", []byte(text)); err != nil {
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

// What an agent's configuration says of its coordinator.
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
		shared + "bus: {servers: ['nats://192.0.2.7:4222']}\n":                                                                       "leaves this host or has keys: tls://192.0.2.7:4222",
		shared + "bus: {servers: ['tls://192.0.2.7:4222']}\n":                                                                        "needs keys: make them with `xdpmon keys`",
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

func coordinatorSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := CoordinatorSchema()
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
