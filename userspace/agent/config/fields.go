package config

import (
	"fmt"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/pin"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// Bounds and defaults.
const (
	minWindow = 100 * time.Millisecond
	maxWindow = 24 * time.Hour

	DefaultSocket = "/run/xdpmon/agent.sock"
	DefaultStore  = "/var/lib/xdpmon/windows.db"
	DefaultPath   = "/etc/xdpmon/agent.yaml"

	defaultInterfaces = 1024
	defaultInstances  = 64
	defaultMemory     = 256 << 20
	defaultHeap       = 256 << 20
)

// Kinds are the interfaces that `kinds` can name.
var Kinds = []string{"physical", "loopback", "veth", "tap", "tun", "bridge", "bond", "team", "vlan", "vxlan", "geneve", "macvlan", "macvtap",
	"ipvlan", "dummy", "ifb", "wireguard", "vrf", "ipip", "gre", "other"}

// whole is the file.
func whole() object[Config] {
	return object[Config]{
		what: "the configuration",
		defaults: func() Config {
			return Config{Log: defaultLog(), Window: session.DefaultWindow, Socket: DefaultSocket, Limits: defaultLimits(), Names: Names{Libvirt: true},
				BPFFS: pin.Root}
		},
		fields: []field[Config]{
			{"instances", "what is measured where: a list of rules", list[rule]{"instances", instance(), 1}, true,
				func(c *Config, v any) {
					for _, r := range v.([]rule) {
						c.Instances = append(c.Instances, r.Instance)
					}
				}},
			{"window", "length of a window for rules that name none, 100ms to 24h (10s)", windowKind, false,
				to(func(c *Config) *time.Duration { return &c.Window })},
			{"outputs", "streams of windows", list[Output]{"outputs", output(), 0}, false, to(func(c *Config) *[]Output { return &c.Outputs })},
			{"listen", "address of metrics, page and health; a port alone (:9400) is this host only", word{what: "listen", check: checkListen}, false,
				to(func(c *Config) *string { return &c.Listen })},
			{"metrics_rows", "serve metrics of flows, addresses and prefixes, too: every one becomes a series, and names somebody", flag{"metrics_rows"}, false,
				to(func(c *Config) *bool { return &c.MetricsRows })},
			{"socket", "for `xdpmon history` on this host (" + DefaultSocket + ")", pathKind("socket"), false, to(func(c *Config) *string { return &c.Socket })},
			{"store", "keep windows on disk for a while", keep(), false, func(c *Config, v any) { s := v.(Store); c.Store = &s }},
			{"names", "name interfaces by what they serve", names(), false, to(func(c *Config) *Names { return &c.Names })},
			{"limits", "what the agent may take", limits(), false, to(func(c *Config) *Limits { return &c.Limits })},
			{"pin", "keep programs and registers in the BPF file system when the agent ends, so that the next one counts on (false)", flag{"pin"}, false,
				to(func(c *Config) *bool { return &c.Pin })},
			{"bpffs", "the BPF file system that pins are in (" + pin.Root + ")", pathKind("bpffs"), false, to(func(c *Config) *string { return &c.BPFFS })},
			{"log", "how the agent speaks", logging(), false, to(func(c *Config) *Log { return &c.Log })},
		},
		check: checkWhole,
	}
}

var windowKind = duration{"window", minWindow, maxWindow}

func pathKind(what string) kind {
	return word{what: what, pattern: "^/", check: func(text string) error {
		if !filepath.IsAbs(text) {
			return fmt.Errorf("%s %q: give a path from the root (/...)", what, text)
		}
		return nil
	}}
}

func checkListen(text string) error {
	_, _, err := prom.Address(text)
	return err
}

func defaultLog() Log { return Log{Format: "text", Level: "info"} }

func logging() kind {
	return object[Log]{what: "log", defaults: defaultLog, fields: []field[Log]{
		{"format", "text or json (text)", word{what: "format", choices: []string{"text", "json"}}, false, to(func(l *Log) *string { return &l.Format })},
		{"level", "debug, info, warn or error (info)", word{what: "level", choices: []string{"debug", "info", "warn", "error"}}, false,
			to(func(l *Log) *string { return &l.Level })},
	}}
}

func output() kind {
	return object[Output]{what: "an output", defaults: func() Output { return Output{} }, fields: []field[Output]{
		{"json", "JSON lines into this file, or to standard output with -", word{what: "json", pattern: "^(-$|/)", check: func(text string) error {
			if text != "-" && !filepath.IsAbs(text) {
				return fmt.Errorf("json %q: give a path from the root (/...), or - for standard output", text)
			}
			return nil
		}}, true, to(func(o *Output) *string { return &o.JSON })},
		{"cdf", "write the steps of every distribution, too (false)", flag{"cdf"}, false, to(func(o *Output) *bool { return &o.CDF })},
	}}
}

func defaultStore() Store {
	return Store{Path: DefaultStore, MaxAge: store.DefaultMaxAge, MaxBytes: store.DefaultBytes}
}

func keep() kind {
	return object[Store]{what: "store", defaults: defaultStore, fields: []field[Store]{
		{"path", "the file (" + DefaultStore + ")", pathKind("path"), false, to(func(s *Store) *string { return &s.Path })},
		{"max_age", "older windows go (168h)", duration{"max_age", time.Minute, 10 * 365 * 24 * time.Hour}, false, to(func(s *Store) *time.Duration { return &s.MaxAge })},
		{"max_bytes", "of the file; the oldest windows go (256MiB)", size{"max_bytes", store.MinBytes, 1 << 40}, false, to(func(s *Store) *int64 { return &s.MaxBytes })},
	}}
}

func names() kind {
	return object[Names]{what: "names", defaults: func() Names { return Names{Libvirt: true} }, fields: []field[Names]{
		{"libvirt", "by domain, where libvirt's run-time files can be read (true)", flag{"libvirt"}, false, to(func(n *Names) *bool { return &n.Libvirt })},
		{"namespaces", "veths by the container or pod whose network namespace their other end is in (false)", flag{"namespaces"}, false,
			to(func(n *Names) *bool { return &n.Namespaces })},
	}}
}

func defaultLimits() Limits {
	return Limits{Interfaces: defaultInterfaces, Instances: defaultInstances, Memory: defaultMemory, Heap: defaultHeap}
}

func limits() kind {
	return object[Limits]{what: "limits", defaults: defaultLimits, fields: []field[Limits]{
		{"interfaces", "attached at the same time (1024)", number{"interfaces", 1, 65536}, false, func(l *Limits, v any) { l.Interfaces = int(v.(uint64)) }},
		{"instances", "sets of registers at the same time (64)", number{"instances", 1, 4096}, false, func(l *Limits, v any) { l.Instances = int(v.(uint64)) }},
		{"memory", "of all registers, in the kernel (256MiB)", size{"memory", 1 << 16, 1 << 42}, false, to(func(l *Limits) *int64 { return &l.Memory })},
		{"heap", "of the process (GOMEMLIMIT), unless the environment says another (256MiB)", size{"heap", 32 << 20, 1 << 42}, false,
			to(func(l *Limits) *int64 { return &l.Heap })},
	}}
}

// rule is an instance, and what of it is only judged when the whole file is known.
type rule struct {
	Instance
	algorithms []chosen
	at         *yaml.Node
}

var instanceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$`)

var patterns = list[string]{"a list of patterns", word{what: "a pattern", check: func(text string) error {
	if _, err := path.Match(text, ""); err != nil || strings.ContainsAny(text, "/ ") {
		return fmt.Errorf("pattern %q: a name with * ? and [a-z], without / and blanks", text)
	}
	return nil
}}, 1}

func instance() kind {
	return object[rule]{
		what:     "an instance",
		defaults: func() rule { return rule{Instance: Instance{Hook: "auto", Mode: "native"}} },
		fields: []field[rule]{
			{"name", "of the rule: windows and metrics carry it", word{what: "name", pattern: instanceName.String(), check: func(text string) error {
				if !instanceName.MatchString(text) {
					return fmt.Errorf("name %q: 1 to 32 letters, digits, dots, - and _", text)
				}
				return nil
			}}, true, to(func(r *rule) *string { return &r.Name })},
			{"interfaces", "patterns of names (tap*, vnet*, eth0); with kinds both must fit", patterns, false, to(func(r *rule) *[]string { return &r.Interfaces })},
			{"kinds", "kinds of interfaces: " + strings.Join(Kinds, ", "), list[string]{"kinds", word{what: "kind", choices: Kinds}, 1}, false,
				to(func(r *rule) *[]string { return &r.Kinds })},
			{"exclude", "patterns of names that are left alone", patterns, false, to(func(r *rule) *[]string { return &r.Exclude })},
			{"each", "registers, windows and metrics for every interface, instead of one set that all share (false)", flag{"each"}, false,
				to(func(r *rule) *bool { return &r.Each })},
			{"algorithms", "what is measured, in the order in which packets meet them, each with its parameters", algorithms{}, true,
				to(func(r *rule) *[]chosen { return &r.algorithms })},
			{"hook", "auto, xdp or tc (auto)", enumOf("hook", attach.Hooks), false, to(func(r *rule) *string { return &r.Hook })},
			{"mode", "how XDP runs: native, generic or auto (native)", enumOf("mode", attach.Modes), false, to(func(r *rule) *string { return &r.Mode })},
			{"direction", "ingress, egress or both (both with each, else ingress: a forwarded packet would be seen twice)", enumOf("direction", attach.Directions), false,
				to(func(r *rule) *string { return &r.Direction })},
			{"window", "length of a window, 100ms to 24h", windowKind, false, to(func(r *rule) *time.Duration { return &r.Window })},
			{"seed", "of the hashes; hosts whose windows are merged share it (random)", number{"seed", 1, math.MaxUint64}, false, to(func(r *rule) *uint64 { return &r.Seed })},
			{"hash", "fast, or crc as the P4 twin on a switch has them (fast)", word{what: "hash", choices: []string{"fast", "crc"}}, false,
				func(r *rule, v any) { r.CRC = v.(string) == "crc" }},
			{"decap", "look into VXLAN, GENEVE, GRE, IPIP and 6in4, one level (false)", flag{"decap"}, false, to(func(r *rule) *bool { return &r.Decap })},
		},
		check: checkRule,
	}
}

func enumOf[T ~string](what string, values []T) kind {
	choices := make([]string, len(values))
	for i, v := range values {
		choices[i] = string(v)
	}
	return word{what: what, choices: choices}
}

func checkRule(p *parser, at func(string) *yaml.Node, r *rule) {
	r.at = at("name")
	if len(r.Interfaces) == 0 && len(r.Kinds) == 0 {
		p.say(at("name"), "instance %s names no interfaces: give interfaces, kinds or both", r.Name)
	}
	if r.Direction == "" {
		r.Direction = string(attach.Ingress)
		if r.Each {
			r.Direction = string(attach.Both)
		}
	}
	options := attach.Options{Hook: attach.Hook(r.Hook), Mode: attach.Mode(r.Mode), Direction: attach.Direction(r.Direction)}
	if err := options.Check(); err != nil {
		p.say(at("hook"), "%s", strings.TrimPrefix(err.Error(), attach.ErrUsage.Error()+": "))
	}
	window := r.Window
	if window == 0 {
		window = session.DefaultWindow
	}
	r.Algorithms = judge(p, r.algorithms, algo.Env{CPUs: maps.PossibleCPUs(), CRC: r.CRC, WindowNS: int64(window), Seed: r.Seed})
}

func checkWhole(p *parser, at func(string) *yaml.Node, c *Config) {
	for i := range c.Instances {
		if c.Instances[i].Window == 0 {
			c.Instances[i].Window = c.Window
		}
		if c.Pin {
			c.Instances[i].Pin = c.BPFFS
		}
	}
	for i, r := range c.Instances {
		if slices.ContainsFunc(c.Instances[:i], func(o Instance) bool { return o.Name == r.Name }) {
			p.say(nameNode(at("instances"), i), "two instances are named %s", r.Name)
		}
	}
	var files []string
	for _, o := range c.Outputs {
		if slices.Contains(files, o.JSON) {
			p.say(at("outputs"), "two outputs write to %s", o.JSON)
		}
		files = append(files, o.JSON)
	}
	checkMemory(p, at, c)
}

// nameNode is the value of `name` of the rule of a number.
func nameNode(list *yaml.Node, i int) *yaml.Node {
	if list.Kind != yaml.SequenceNode || i >= len(list.Content) {
		return list
	}
	r := list.Content[i]
	for k := 0; k+1 < len(r.Content); k += 2 {
		if r.Content[k].Value == "name" {
			return r.Content[k+1]
		}
	}
	return r
}
