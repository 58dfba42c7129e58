package p4

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// hostOnly are parameters that change a host's bytecode or maps and neither the twin nor what its control plane writes, with the reason.
var hostOnly = map[string]string{
	"ahab.burst":         "of ceilings, which the exact form has",
	"ahab.grace":         "the same",
	"beaucoup.ring":      "memory of the host's reports: a switch copies packets",
	"conquest.source":    "auto: where a host knows its queue from; a switch measures its own",
	"conquest.buffer":    "of the queue that a replay calculates",
	"conquest.expire":    "of digests of a tap",
	"conquest.whom":      "of an action, which is refused",
	"conquest.chance":    "the same",
	"conquest.hold":      "the same",
	"conquest.drop_from": "the same",
	"conquest.gap":       "the same",
	"conquest.weight":    "the same",
	"carpe.groups":       "entries of a host's map: the switch's table has as many as are allowed, at least",
	"fridge.correction":  "auto is chosen by a host's load: a switch has the table",
	"hhh.bits6":          "of IPv6, which is refused",
	"lean.ring":          "memory of the host's reports: a switch sends digests",
	"reorder.ring":       "the same",
	"reorder.Rshare":     "a switch's control plane applies it to digests",
}

// texts are other values of parameters that are read as texts of their own.
var texts = map[string][]string{
	"ahab.config":       {`{slices: [{name: a, ceiling: 1Mbit, match: {marks: [7]}}]}`, `{slices: [{name: a, ceiling: 1Mbit, match: {interfaces: [lo]}}]}`},
	"beaucoup.queries":  {"a: count distinct dst by src > 9 in 10s", "a: count distinct dst by tcp.flags > 9 in 10s", "a: count distinct dns.qname by src > 9 in 10s"},
	"beaucoup.file":     {},
	"beaucoup.compiled": {},
	"lean.switch.rate":  {"1000"},
	"lean.switch.limit": {"latency=300,ooo=20"},
}

// alternatives are other values of a parameter, some of which may be allowed.
func alternatives(name string, p algo.Param, now string) []string {
	if list, ok := texts[name]; ok {
		return list
	}
	switch p.Type {
	case algo.Enum:
		return p.Choices
	case algo.Bool:
		return []string{"true", "false"}
	case algo.Int:
		n, err := strconv.ParseInt(now, 0, 64)
		if err != nil {
			return []string{p.Min, p.Max}
		}
		return []string{fmt.Sprint(2 * n), fmt.Sprint(n + 1), p.Min}
	}
	return []string{p.Min, p.Max, "3", "1ms", "0.3", "src/8"}
}

// ofSwitch is all that xdpmon writes for a switch: its text and, where there are some, its rules.
func ofSwitch(d *algo.Descriptor, v algo.Values) (map[string]string, error) {
	parts, err := d.P4(v)
	if err != nil {
		return nil, err
	}
	parts = maps.Clone(parts)
	if algo.Implements[algo.TwinRules](d) {
		rules, err := d.P4Rules(v)
		if err != nil {
			return nil, err
		}
		parts["rules"] = string(rules)
	}
	return parts, nil
}

// bytecode is what a parameter can change of an eBPF object: constants and sizes.
func bytecode(t *testing.T, d *algo.Descriptor, v algo.Values) (string, bool) {
	t.Helper()
	objects, _, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Hash: algo.HashCRC}, true)
	if err != nil {
		return "", false
	}
	var lines []string
	for name, one := range objects[0].Spec.Variables {
		lines = append(lines, fmt.Sprintf("%s %x", name, one.Value))
	}
	for name, m := range objects[0].Spec.Maps {
		if !strings.HasPrefix(name, ".") {
			lines = append(lines, fmt.Sprintf("%s %d", name, m.MaxEntries))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), true
}

// TestParametersHaveForms: another value of any parameter of any twin changes what is written for the switch, or is refused by the parameter's name,
// or changes nothing of the bytecode either, but for the list. Nothing is ignored in silence.
func TestParametersHaveForms(t *testing.T) {
	met := map[string]bool{}
	for _, d := range algo.All() {
		if !algo.Implements[algo.Twin](d) {
			continue
		}
		base := valuesOf(t, d)
		parts, err := ofSwitch(d, base)
		if err != nil {
			t.Fatal(err)
		}
		code, ok := bytecode(t, d, base)
		if !ok {
			t.Fatalf("%s cannot be configured", d.Name)
		}
		for _, p := range d.Params {
			name := d.Name + "." + p.Key
			for _, text := range alternatives(name, p, base.Text(p.Key)) {
				v, ok := with(d, base, p.Key, text)
				if !ok {
					continue
				}
				got, err := ofSwitch(d, v)
				if err != nil {
					if !strings.Contains(err.Error(), "set "+d.Name+".") || !strings.Contains(err.Error(), "the P4 twin has ") {
						t.Errorf("%s=%s is refused without name and form: %v", name, text, err)
					}
					continue
				}
				if maps.Equal(got, parts) {
					if other, ok := bytecode(t, d, v); ok && other != code {
						if met[name] = true; hostOnly[name] == "" {
							t.Errorf("%s=%s changes the bytecode, and nothing of the switch", name, text)
						}
					}
				}
			}
		}
	}
	for name := range hostOnly {
		if !met[name] {
			t.Errorf("%s changes nothing that the switch lacks: remove it from the list", name)
		}
	}
}

// with another value; not ok: the algorithm does not have it at all.
func with(d *algo.Descriptor, base algo.Values, key, text string) (algo.Values, bool) {
	if text == "" || text == base.Text(key) {
		return base, false
	}
	set := map[string]string{}
	for _, p := range d.Params {
		set[p.Key] = base.Text(p.Key)
	}
	set[key] = text
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		return v, false
	}
	_, err = d.Configure(v, algo.Switch())
	return v, err == nil
}
