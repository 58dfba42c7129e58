package beaucoup

import (
	"errors"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// What cannot be is refused with its name.
func TestRefusals(t *testing.T) {
	for want, set := range map[string]map[string]string{
		"powers of two from 16":     {"entries": "17"},
		"not both":                  {"queries": "a: count distinct dst by src > 5 in 1s", "file": "x.yaml"},
		"choose rotate or export":   {"rotate": "true", "export": "true"},
		`"a..b" is no DNS name`:     {"names": "good.example,a..b"},
		"no such field":             {"queries": "a: count distinct dst by colour > 5 in 1s"},
		"it cannot be a key":        {"queries": "a: count distinct dst by timestamp > 5 in 1s"},
		"allowed are 1 to 10000000": {"queries": "a: count distinct dst by src > 0 in 1s"},
		"allowed are 1ms to 30m":    {"queries": "a: count distinct dst by src > 5 in 1h"},
		"occurs twice":              {"queries": "a: count distinct dst by src > 5 in 1s; a: count distinct src by dst > 5 in 1s"},
		"the terms contradict":      {"queries": "a: count distinct dst/24 by src > 5 in 1s if ipv6"},
		"a prefix has 1 to 32 bits": {"queries": "a: count distinct dst/129 by src > 5 in 1s"},
		"vlan is a number from 0":   {"queries": "a: count distinct dst by src > 5 in 1s if vlan=5000"},
		"no such file":              {"file": "/nowhere/queries.yaml"},
	} {
		d := descriptor()
		values, err := algo.NewValues(d.Name, d.Params, set)
		if err == nil {
			_, err = d.New(values, algo.Env{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", set, err, want)
		}
	}
	for _, key := range []string{"keyed", "rotate"} { // the switch's hashes have no secret
		values, err := algo.NewValues(Name, params, map[string]string{key: "true"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := descriptor().New(values, algo.Env{Setup: algo.Setup{Hash: algo.HashCRC}}); err == nil || !strings.Contains(err.Error(), "--hash crc") {
			t.Errorf("%s with --hash crc: %v", key, err)
		}
	}
}

// A field that the parser was not asked for at the start is refused by its name while it runs.
func TestLateFields(t *testing.T) {
	i, _ := loaded(t, map[string]string{"queries": "a: count distinct dst by src > 5 in 1s"})
	before := i.program
	for _, field := range []string{"dns.qname", "dns.id"} {
		queries, err := compile.ParseQueries("b: count distinct " + field + " by src > 5 in 1s")
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Update(queries); !errors.Is(err, compile.ErrField) || !strings.Contains(err.Error(), field) || i.program != before {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// configured is an instance that nothing is loaded for.
func configured(v algo.Values, env algo.Env) (*instance, error) {
	c, err := newConfig(v, env.Setup)
	if err != nil {
		return nil, err
	}
	return c.instance(env)
}
