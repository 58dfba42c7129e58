package config

import (
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/pin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	file "github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/config/parts"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Bounds and defaults.
const (
	DefaultSocket = "/run/xdpmon/agent.sock"
	DefaultStore  = "/var/lib/xdpmon/windows.db"
	DefaultPath   = "/etc/xdpmon/agent.yaml"

	defaultInterfaces = 1024
	defaultInstances  = 64
	defaultMemory     = 256 << 20
	defaultHeap       = 256 << 20
)

// Kinds are the values of `kinds`.
var Kinds = []string{"physical", "loopback", "veth", "tap", "tun", "bridge", "bond", "team", "vlan", "vxlan", "geneve", "macvlan", "macvtap",
	"ipvlan", "dummy", "ifb", "wireguard", "vrf", "ipip", "gre", "other"}

// whole is the file.
func whole() object[Config] {
	return object[Config]{
		What: "the configuration",
		Defaults: func() Config {
			return Config{Log: settings.DefaultLog(), Metrics: settings.DefaultMetrics(), Window: session.DefaultWindow, Socket: DefaultSocket, Limits: defaultLimits(), Names: defaultNames(),
				BPFFS: pin.Root}
		},
		Fields: slices.Concat([]field[Config]{
			{Key: "instances", Help: "what is measured where: a list of rules", Kind: list[rule]{What: "instances", Of: instance(), Min: 1}, Required: true,
				Set: func(c *Config, v any) {
					c.rules = v.([]rule)
					for _, r := range c.rules {
						c.Instances = append(c.Instances, r.Instance)
					}
				}},
			{Key: "window", Help: "length of a window for rules that set none, 100ms to 24h (10s)", Kind: parts.Window, Required: false,
				Set: to(func(c *Config) *time.Duration { return &c.Window })},
			{Key: "outputs", Help: "streams of windows", Kind: settings.Outputs(), Required: false, Set: to(func(c *Config) *[]settings.Output { return &c.Outputs })},
			{Key: "listen", Help: "address of metrics, page and health; a port alone (:9400) is this host only", Kind: settings.Listen, Required: false,
				Set: to(func(c *Config) *string { return &c.Listen })},
			{Key: "web", Help: "page and API on the listener", Kind: settings.Webbing(), Required: false, Set: to(func(c *Config) *settings.Web { return &c.Web })},
			{Key: "socket", Help: "for `xdpmon history` on this host (" + DefaultSocket + ")", Kind: file.Path("socket"), Required: false, Set: to(func(c *Config) *string { return &c.Socket })},
			{Key: "store", Help: "store recent windows on disk", Kind: settings.Keep(DefaultStore, settings.WithSnapshots), Required: false, Set: func(c *Config, v any) { s := v.(settings.Store); c.Store = &s }},
			{Key: "promises", Help: "promises: `SUBJECT p99 < 50ms`, `SUBJECT loss < 0.1 %` or `SUBJECT share fair`; a broken one is a finding", Kind: settings.Promised(), Required: false,
				Set: to(func(c *Config) *[]string { return &c.Promises })},
			{Key: "alerts", Help: "receivers of findings", Kind: settings.Alerting(), Required: false, Set: to(func(c *Config) *settings.Alerts { return &c.Alerts })},
			{Key: "names", Help: "sources of names for interfaces, addresses and ports", Kind: names(), Required: false, Set: to(func(c *Config) *Names { return &c.Names })},
			{Key: "limits", Help: "limits of the agent: interfaces, instances, memory", Kind: limits(), Required: false, Set: to(func(c *Config) *Limits { return &c.Limits })},
			{Key: "kernel_drops", Help: "count the packets that the kernel drops on measured interfaces, by its own reasons, as metrics (false)", Kind: flag{What: "kernel_drops"}, Required: false,
				Set: to(func(c *Config) *bool { return &c.KernelDrops })},
			{Key: "pin", Help: "pin programs and registers in the BPF file system when the agent ends, so that the next agent continues them (false)", Kind: flag{What: "pin"}, Required: false,
				Set: to(func(c *Config) *bool { return &c.Pin })},
			{Key: "bpffs", Help: "the BPF file system that pins are in (" + pin.Root + ")", Kind: file.Path("bpffs"), Required: false, Set: to(func(c *Config) *string { return &c.BPFFS })},
			file.Entry("bus", "link to a coordinator, which merges the windows of many hosts", busKind(), false, func(c *Config, v any) { b := v.(Bus); c.Bus = &b }),
			{Key: "log", Help: "format and level of the agent's log", Kind: settings.Logging(), Required: false, Set: to(func(c *Config) *settings.Log { return &c.Log })},
		}, settings.MetricFields(func(c *Config) *settings.Metrics { return &c.Metrics })),
		Check: checkWhole,
	}
}

func defaultNames() Names { return Names{Libvirt: true, Services: true} }

func names() kind {
	return object[Names]{What: "names", Defaults: defaultNames, Fields: []field[Names]{
		{Key: "libvirt", Help: "name interfaces by libvirt domain, if libvirt's run-time files can be read (true)", Kind: flag{What: "libvirt"}, Required: false, Set: to(func(n *Names) *bool { return &n.Libvirt })},
		{Key: "namespaces", Help: "name veths by the container or pod whose network namespace their other end is in (false)", Kind: flag{What: "namespaces"}, Required: false,
			Set: to(func(n *Names) *bool { return &n.Namespaces })},
		{Key: "services", Help: "name ports by their service (true)", Kind: flag{What: "services"}, Required: false, Set: to(func(n *Names) *bool { return &n.Services })},
		{Key: "dns", Help: "name addresses by DNS answers that arrive on measured interfaces; needs CAP_NET_RAW at the start (false)", Kind: flag{What: "dns"}, Required: false,
			Set: to(func(n *Names) *bool { return &n.DNS })},
		{Key: "databases", Help: "files in MaxMind's format (.mmdb) of autonomous systems or countries", Kind: list[string]{What: "databases", Of: file.Path("database"), Min: 1}, Required: false,
			Set: to(func(n *Names) *[]string { return &n.Databases })},
	}}
}

func defaultLimits() Limits {
	return Limits{Interfaces: defaultInterfaces, Instances: defaultInstances, Memory: defaultMemory, Heap: defaultHeap}
}

func limits() kind {
	return object[Limits]{What: "limits", Defaults: defaultLimits, Fields: []field[Limits]{
		{Key: "interfaces", Help: "most interfaces attached at the same time (1024)", Kind: number{What: "interfaces", Min: 1, Max: 65536}, Required: false, Set: func(l *Limits, v any) { l.Interfaces = int(v.(uint64)) }},
		{Key: "instances", Help: "most sets of registers at the same time (64)", Kind: number{What: "instances", Min: 1, Max: 4096}, Required: false, Set: func(l *Limits, v any) { l.Instances = int(v.(uint64)) }},
		{Key: "memory", Help: "of all registers, in the kernel (256MiB)", Kind: size{What: "memory", Min: 1 << 16, Max: 1 << 42}, Required: false, Set: to(func(l *Limits) *int64 { return &l.Memory })},
		{Key: "heap", Help: "memory limit of the process (GOMEMLIMIT), unless the environment sets another (256MiB)", Kind: size{What: "heap", Min: 32 << 20, Max: 1 << 42}, Required: false,
			Set: to(func(l *Limits) *int64 { return &l.Heap })},
	}}
}

// rule is an instance, with the parts that can only be checked once the whole file is read.
type rule struct {
	Instance
	algorithms []parts.Chosen
	windows    []parts.Own
	at         *yaml.Node
}

func instance() kind {
	return object[rule]{
		What: "an instance",
		Also: map[string]any{"anyOf": []any{map[string]any{"required": []string{"algorithms"}},
			map[string]any{"required": []string{"shared"}, "properties": map[string]any{"shared": map[string]any{"const": true}}}}},
		Defaults: func() rule {
			return rule{Instance: Instance{Hook: attach.HookAuto, Mode: attach.ModeNative, Hash: algo.HashFast}}
		},
		Fields: []field[rule]{
			{Key: "name", Help: "name of the rule, which windows and metrics have as instance", Kind: parts.RuleName, Required: true, Set: to(func(r *rule) *string { return &r.Name })},
			{Key: "interfaces", Help: "patterns of names (tap*, vnet*, eth0); with kinds both must match", Kind: parts.Patterns, Required: false, Set: to(func(r *rule) *[]string { return &r.Interfaces })},
			{Key: "kinds", Help: "kinds of interfaces: " + strings.Join(Kinds, ", "), Kind: list[string]{What: "kinds", Of: word{What: "kind", Choices: Kinds}, Min: 1}, Required: false,
				Set: to(func(r *rule) *[]string { return &r.Kinds })},
			{Key: "exclude", Help: "patterns of names that are excluded", Kind: parts.Patterns, Required: false, Set: to(func(r *rule) *[]string { return &r.Exclude })},
			file.Entry("required", "patterns of names: if no interface of a pattern is attached, /healthz and /readyz answer 503", parts.Patterns, false, to(func(r *rule) *[]string { return &r.Required })),
			{Key: "each", Help: "separate registers, windows and metrics for every interface, instead of one shared set (false)", Kind: flag{What: "each"}, Required: false,
				Set: to(func(r *rule) *bool { return &r.Each })},
			{Key: "algorithms", Help: "algorithms, in the order in which they process packets, each with its parameters; not with shared", Kind: parts.Algorithms{},
				Set: to(func(r *rule) *[]parts.Chosen { return &r.algorithms })},
			file.Entry("shared", "the coordinator's measurement of this name sets window, hashes and algorithms (false)", flag{What: "shared"}, false,
				to(func(r *rule) *bool { return &r.Shared })),
			{Key: "hook", Help: "auto, xdp or tc (auto)", Kind: enumOf("hook", attach.Hooks), Required: false, Set: toWord(func(r *rule) *attach.Hook { return &r.Hook })},
			{Key: "mode", Help: "how XDP runs: native, generic or auto (native)", Kind: enumOf("mode", attach.Modes), Required: false, Set: toWord(func(r *rule) *attach.Mode { return &r.Mode })},
			{Key: "direction", Help: "ingress, egress or both (both with each, else ingress: a forwarded packet would be seen twice)", Kind: enumOf("direction", attach.Directions), Required: false,
				Set: toWord(func(r *rule) *attach.Direction { return &r.Direction })},
			{Key: "window", Help: "length of a window, 100ms to 24h", Kind: parts.Window, Required: false, Set: to(func(r *rule) *time.Duration { return &r.Window })},
			file.Entry("windows", parts.WindowsHelp, parts.Windows{}, false, to(func(r *rule) *[]parts.Own { return &r.windows })),
			{Key: "seed", Help: "seed of the hashes; must be equal on hosts whose windows are merged (random)", Kind: number{What: "seed", Min: 1, Max: math.MaxUint64}, Required: false, Set: to(func(r *rule) *uint64 { return &r.Seed })},
			{Key: "hash", Help: "hash functions: fast, or crc, those of the P4 twin on a switch (fast)", Kind: enumOf("hash", algo.Hashes), Required: false,
				Set: toWord(func(r *rule) *algo.Hash { return &r.Hash })},
			{Key: "decap", Help: "look into VXLAN, GENEVE, GRE, IPIP and 6in4, one level (false)", Kind: flag{What: "decap"}, Required: false, Set: to(func(r *rule) *bool { return &r.Decap })},
		},
		Check: checkRule,
	}
}

func enumOf[T ~string](what string, values []T) kind {
	choices := make([]string, len(values))
	for i, v := range values {
		choices[i] = string(v)
	}
	return word{What: what, Choices: choices}
}

// toWord is to for fields that enumOf decodes.
func toWord[V ~string](f func(*rule) *V) func(*rule, any) {
	return func(r *rule, v any) { *f(r) = V(v.(string)) }
}

func checkRule(p *parser, at func(string) *yaml.Node, r *rule) {
	r.at = at("name")
	if len(r.Interfaces) == 0 && len(r.Kinds) == 0 {
		p.Errorf(at("name"), "instance %s matches no interfaces: set interfaces, kinds or both", r.Name)
	}
	if r.Chosen = r.Direction != ""; !r.Chosen {
		r.Direction = attach.Ingress
		if r.Each {
			r.Direction = attach.Both
		}
	}
	options := attach.Options{Hook: r.Hook, Mode: r.Mode, Direction: r.Direction}
	if err := options.Check(); err != nil {
		p.Errorf(at("hook"), "%s", strings.TrimPrefix(err.Error(), attach.ErrUsage.Error()+": "))
	}
	if r.Shared {
		for _, key := range []string{"algorithms", "window", "windows", "seed", "hash", "decap"} {
			if n := at(key); n != at("") {
				p.Errorf(n, "%s of a shared instance is set by the coordinator", key)
			}
		}
		return
	}
	if at("algorithms") == at("") {
		p.Errorf(at(""), "an instance needs algorithms, or shared: true")
		return
	}
	window := r.Window
	if window == 0 {
		window = session.DefaultWindow
	}
	parts.SetWindows(p, r.algorithms, r.windows)
	r.Algorithms = parts.Judge(p, r.algorithms, algo.Setup{Hash: r.Hash, WindowNS: int64(window)}, algo.Env{Seed: r.Seed, Arrives: r.Direction != attach.Egress})
}

func checkWhole(p *parser, at func(string) *yaml.Node, c *Config) {
	for i := range c.Instances {
		if c.Instances[i].Window == 0 {
			c.Instances[i].Window = c.Window
		}
		if c.Pin {
			c.Instances[i].Pin = c.BPFFS
		}
		parts.CheckWindows(p, c.rules[i].windows, c.Instances[i].Algorithms, c.Instances[i].Window, c.Pin)
		c.Instances[i].Snapshots = c.Store != nil && c.Store.Snapshots
	}
	for i, r := range c.Instances {
		if slices.ContainsFunc(c.Instances[:i], func(o Instance) bool { return o.Name == r.Name }) {
			p.Errorf(parts.NameNode(at("instances"), i), "two instances are named %s", r.Name)
		}
	}
	for i, r := range c.Instances {
		if r.Shared && c.Bus == nil {
			p.Errorf(parts.NameNode(at("instances"), i), "instance %s is shared: it needs bus, with the coordinator's address", r.Name)
		}
	}
	settings.CheckOutputs(p, at("outputs"), c.Outputs)
	checkMemory(p, at, c)
}
