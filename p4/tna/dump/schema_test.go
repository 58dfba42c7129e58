package dump_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	_ "github.com/xdpmon/xdpmon/p4/all"
	"github.com/xdpmon/xdpmon/p4/tna/dump"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	_ "github.com/xdpmon/xdpmon/userspace/all"
)

func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	document, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, document); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile(name)
}

func holds(t *testing.T, s *jsonschema.Schema, v any) error {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(document)
}

// TestSchemas: dumps and plans of every twin match the committed schemas, and another geometry does not.
func TestSchemas(t *testing.T) {
	registers, plans := schema(t, "registers.schema.json"), schema(t, "plan.schema.json")
	for _, tw := range twin.All() {
		for _, target := range []run.Target{run.Tofino1, run.Tofino2} {
			sw, err := tw.Build(target, twin.Form{})
			if err != nil {
				t.Fatal(err)
			}
			d := dump.Of(tw, sw, 1, 5, 6)
			for name, r := range d.Registers { // some of their words: a validator takes its time
				r.Data = r.Data[:min(len(r.Data), 64)]
				d.Registers[name] = r
			}
			d.Digests = []dump.Digest{{Name: "reports", Values: map[string]uint64{"prefix": 1}}}
			d.Copies = []twin.Copy{{Time: 5, Packet: []byte{1, 2, 3}}}
			plan, err := dump.PlanOf(tw, sw, target)
			if err := errors.Join(err, holds(t, registers, d), holds(t, plans, plan)); err != nil {
				t.Errorf("%s, Tofino %d: %v", tw.Name, target, err)
			}
			d.Bank = 2
			if holds(t, registers, d) == nil {
				t.Errorf("%s: a third bank is allowed", tw.Name)
			}
			plan.Registers[0].Words = 3
			if holds(t, plans, plan) == nil {
				t.Errorf("%s: elements of three words are allowed", tw.Name)
			}
		}
	}
}
