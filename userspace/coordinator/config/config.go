// Package config reads a coordinator's configuration: a YAML file, checked against one table of keys.
package config

import (
	"net"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/bus"
	file "github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/config/parts"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Config is a checked configuration of a coordinator.
type Config struct {
	Log          settings.Log
	Listen       string
	Metrics      settings.Metrics
	Web          settings.Web
	Socket       string
	Outputs      []settings.Output
	Store        *settings.Store
	Data         string // folder of the state that survives a restart; mode 0700
	Bus          Server
	Measurements []Measurement
	Paths        string // file with the paths of prefix pairs, for suspect links; "" for none
	Promises     []string
	Alerts       settings.Alerts
	Limits       Limits
}

// Server is the coordinator's side of the bus.
type Server struct {
	Listen   string // of its own server
	Keys     *keys.Files
	Cluster  *Cluster
	External []string // external servers, instead of its own
}

// Cluster is the configuration of one coordinator among several.
type Cluster struct {
	Name   string
	Listen string
	Routes []string
}

// Limits bound the load that agents can put on a coordinator.
type Limits struct {
	Agents  int
	Message int64 // bytes of one message
	Rate    int   // messages of an agent a second
	Heap    int64
}

// Measurement is a measurement that agents share.
type Measurement struct {
	Name       string
	Window     time.Duration
	Wait       time.Duration // for late windows; 0: a tenth of the window, at least 1 s
	Seed       uint64        // 0: drawn once
	CRC, Decap bool
	Algorithms []session.Selected
	Vantage    []Vantage // empty: one set of all hosts, and every packet passes one of them
}

// Vantage is a set of hosts of which a packet passes at most one. Counts of different sets are not added up.
type Vantage struct {
	Name  string
	Hosts []string // patterns
}

// Defaults of a configuration.
const (
	DefaultData      = "/var/lib/xdpmon-coordinator/data"
	DefaultPath      = "/etc/xdpmon-coordinator/coordinator.yaml"
	DefaultBusListen = "127.0.0.1:4222"
	DefaultStore     = "/var/lib/xdpmon-coordinator/windows.db"
	DefaultSocket    = "/run/xdpmon-coordinator/coordinator.sock"
)

func whole() file.Object[Config] {
	return file.Object[Config]{
		What: "the configuration",
		Defaults: func() Config {
			return Config{Log: settings.DefaultLog(), Metrics: settings.DefaultMetrics(), Socket: DefaultSocket, Data: DefaultData, Bus: Server{Listen: DefaultBusListen},
				Limits: Limits{Agents: 4096, Message: bus.DefaultMessage, Rate: 200, Heap: 512 << 20}}
		},
		Fields: slices.Concat([]file.Field[Config]{
			file.Entry("measurements", "measurements that agents share: a list", file.List[measured]{What: "measurements", Of: measurement(), Min: 1}, true,
				func(c *Config, v any) {
					for _, m := range v.([]measured) {
						c.Measurements = append(c.Measurements, m.Measurement)
					}
				}),
			file.Entry("bus", "where agents connect to", serve(), false, file.To(func(c *Config) *Server { return &c.Bus })),
			file.Entry("data", "folder of the state that survives a restart ("+DefaultData+")", file.Path("data"), false, file.To(func(c *Config) *string { return &c.Data })),
			file.Entry("paths", "file with the links that the traffic of prefix pairs takes, to find suspect links", file.Path("paths"), false,
				file.To(func(c *Config) *string { return &c.Paths })),
			file.Entry("promises", "promises on all hosts together, as in an agent's file; agents have their own", settings.Promised(), false, file.To(func(c *Config) *[]string { return &c.Promises })),
			file.Entry("alerts", "receivers of findings: alertmanager, webhook", settings.Alerting(), false, file.To(func(c *Config) *settings.Alerts { return &c.Alerts })),
			file.Entry("outputs", "streams of windows", settings.AllOutputs(), false, file.To(func(c *Config) *[]settings.Output { return &c.Outputs })),
			file.Entry("listen", "address of metrics, page and health; a port alone (:9401) is this host only", settings.Listen, false,
				file.To(func(c *Config) *string { return &c.Listen })),
			file.Entry("web", "page and API on the listener", settings.Webbing(), false, file.To(func(c *Config) *settings.Web { return &c.Web })),
			file.Entry("socket", "for `xdpmon history --socket` on this host ("+DefaultSocket+")", file.Path("socket"), false,
				file.To(func(c *Config) *string { return &c.Socket })),
			file.Entry("store", "keep windows on disk for a while", settings.Keep(DefaultStore), false, func(c *Config, v any) { s := v.(settings.Store); c.Store = &s }),
			file.Entry("limits", "limits of agents: number, messages, bytes", limits(), false, file.To(func(c *Config) *Limits { return &c.Limits })),
			file.Entry("log", "format and level of the coordinator's log", settings.Logging(), false, file.To(func(c *Config) *settings.Log { return &c.Log })),
		}, settings.MetricFields(func(c *Config) *settings.Metrics { return &c.Metrics })),
		Check: checkWhole,
	}
}

func serve() file.Kind {
	return file.Object[Server]{What: "bus", Defaults: func() Server { return Server{Listen: DefaultBusListen} }, Fields: []file.Field[Server]{
		file.Entry("listen", "HOST:PORT ("+DefaultBusListen+")", parts.Address("listen"), false, file.To(func(s *Server) *string { return &s.Listen })),
		file.Entry("keys", "certificates, as `xdpmon-coordinator keys` makes them; required unless all addresses are on this host", parts.KeyFiles(), false,
			func(s *Server, v any) { f := v.(keys.Files); s.Keys = &f }),
		file.Entry("cluster", "this coordinator is one of three", file.Object[Cluster]{What: "cluster", Defaults: func() Cluster { return Cluster{} }, Fields: []file.Field[Cluster]{
			file.Entry("name", "this coordinator's name in the cluster", parts.HostName, true, file.To(func(c *Cluster) *string { return &c.Name })),
			file.Entry("listen", "HOST:PORT that the other coordinators connect to", parts.Address("listen"), true, file.To(func(c *Cluster) *string { return &c.Listen })),
			file.Entry("routes", "HOST:PORT of the other coordinators", file.List[string]{What: "routes", Of: parts.Address("a route"), Min: 1}, true, file.To(func(c *Cluster) *[]string { return &c.Routes })),
		}}, false, func(s *Server, v any) { c := v.(Cluster); s.Cluster = &c }),
		file.Entry("external", "servers of an external NATS cluster, instead of the built-in one: tls://HOST:PORT", parts.Servers("external"),
			false, file.To(func(s *Server) *[]string { return &s.External })),
	}, Check: checkServe}
}

// checkServe requires keys for every address off this host, so that traffic is encrypted and both ends are authenticated.
func checkServe(p *file.Parser, at func(string) *yaml.Node, s *Server) {
	if len(s.External) > 0 {
		if s.Cluster != nil {
			p.Errorf(at("cluster"), "a cluster consists of the coordinators' built-in servers; with external servers it cannot be set")
		}
		parts.CheckServers(p, at("external"), s.External, s.Keys)
		return
	}
	host, _, _ := net.SplitHostPort(s.Listen)
	if s.Keys == nil && !parts.Loopback(host) {
		p.Errorf(at("listen"), "%s is reachable from other hosts: set keys (make them with `xdpmon-coordinator keys`), or listen on 127.0.0.1", s.Listen)
	}
	if c := s.Cluster; c != nil && s.Keys == nil {
		for _, a := range append([]string{c.Listen}, c.Routes...) {
			if host, _, _ := net.SplitHostPort(a); !parts.Loopback(host) {
				p.Errorf(at("cluster"), "%s is on another host: set keys", a)
			}
		}
	}
}

func limits() file.Kind {
	return file.Object[Limits]{What: "limits",
		Defaults: func() Limits { return whole().Defaults().Limits },
		Fields: []file.Field[Limits]{
			file.Entry("agents", "most agents that are known at the same time (4096)", file.Number{What: "agents", Min: 1, Max: 1 << 17}, false, func(l *Limits, v any) { l.Agents = int(v.(uint64)) }),
			file.Entry("message", "bytes of one (1MiB)", file.Size{What: "message", Min: 1 << 16, Max: bus.MaxMessage}, false, file.To(func(l *Limits) *int64 { return &l.Message })),
			file.Entry("rate", "messages of an agent a second, averaged over ten seconds (200)", file.Number{What: "rate", Min: 10, Max: 1 << 20}, false, func(l *Limits, v any) { l.Rate = int(v.(uint64)) }),
			file.Entry("heap", "memory limit of the process (GOMEMLIMIT), unless the environment sets another (512MiB)", file.Size{What: "heap", Min: 64 << 20, Max: 1 << 42}, false,
				file.To(func(l *Limits) *int64 { return &l.Heap })),
		}}
}

// measured is a measurement with the positions of its algorithms in the file.
type measured struct {
	Measurement
	algorithms []parts.Chosen
	windows    []parts.Own
}

func measurement() file.Kind {
	return file.Object[measured]{What: "a measurement",
		Defaults: func() measured { return measured{Measurement: Measurement{Window: session.DefaultWindow}} },
		Fields: []file.Field[measured]{
			file.Entry("name", "name of the measurement, by which agents' rules refer to it", parts.RuleName, true, file.To(func(m *measured) *string { return &m.Name })),
			file.Entry("algorithms", "algorithms, each with its parameters", parts.Algorithms{}, true, file.To(func(m *measured) *[]parts.Chosen { return &m.algorithms })),
			file.Entry("window", "its length, 100ms to 24h (10s)", parts.Window, false, file.To(func(m *measured) *time.Duration { return &m.Window })),
			file.Entry("windows", parts.WindowsHelp, parts.Windows{}, false, file.To(func(m *measured) *[]parts.Own { return &m.windows })),
			file.Entry("wait", "how long to wait for late windows (a tenth of the window, at least 1s)", file.Duration{What: "wait", Min: 10 * time.Millisecond, Max: time.Hour}, false,
				file.To(func(m *measured) *time.Duration { return &m.Wait })),
			file.Entry("seed", "seed of the hashes (drawn once, and stored)", file.Number{What: "seed", Min: 1, Max: 1<<64 - 1}, false, file.To(func(m *measured) *uint64 { return &m.Seed })),
			file.Entry("hash", "hash functions: fast, or crc, those of the P4 twin on a switch (fast)", file.Word{What: "hash", Choices: []string{"fast", "crc"}}, false,
				func(m *measured, v any) { m.CRC = v.(string) == "crc" }),
			file.Entry("decap", "look into VXLAN, GENEVE, GRE, IPIP and 6in4, one level (false)", file.Flag{What: "decap"}, false, file.To(func(m *measured) *bool { return &m.Decap })),
			file.Entry("vantage", "sets of hosts: a packet passes one host of a set at most, and sets are not added up (all hosts are one)",
				file.List[Vantage]{What: "vantage", Of: file.Object[Vantage]{What: "a set", Defaults: func() Vantage { return Vantage{} }, Fields: []file.Field[Vantage]{
					file.Entry("name", "of the set", parts.HostName, true, file.To(func(v *Vantage) *string { return &v.Name })),
					file.Entry("hosts", "patterns of agents' names", parts.Patterns, true, file.To(func(v *Vantage) *[]string { return &v.Hosts })),
				}}, Min: 1}, false, file.To(func(m *measured) *[]Vantage { return &m.Vantage })),
		},
		Check: func(p *file.Parser, at func(string) *yaml.Node, m *measured) {
			if m.Wait == 0 {
				m.Wait = max(time.Second, m.Window/10)
			}
			parts.SetWindows(p, m.algorithms, m.windows)
			m.Algorithms = parts.Judge(p, m.algorithms, algo.Setup{Hash: algo.HashOf(m.CRC), WindowNS: int64(m.Window)}, algo.Env{Seed: m.Seed})
			parts.CheckWindows(p, m.windows, m.Algorithms, m.Window, false)
			for i, c := range m.algorithms {
				if check, ok := m.Algorithms[i].Config.(algo.MergeChecker); ok {
					if err := check.CheckMerge(); err != nil {
						p.Errorf(c.At, "windows of two hosts cannot be merged: %s", err)
					}
				}
				if c.Descriptor.Enforces {
					p.Errorf(c.At, "%s acts on packets: it can only be enabled in a host's own configuration", c.Descriptor.Name)
				} else if !algo.Implements[algo.Merger](c.Descriptor) && !algo.Implements[algo.CoordinatorProvider](c.Descriptor) {
					p.Errorf(c.At, "%s: windows of hosts cannot be merged", c.Descriptor.Name)
				}
			}
		},
	}
}

func checkWhole(p *file.Parser, at func(string) *yaml.Node, c *Config) {
	for i, m := range c.Measurements {
		if slices.ContainsFunc(c.Measurements[:i], func(o Measurement) bool { return o.Name == m.Name }) {
			p.Errorf(parts.NameNode(at("measurements"), i), "two measurements are named %s", m.Name)
		}
	}
	settings.CheckOutputs(p, at("outputs"), c.Outputs)
}

// Of returns the sets that a host belongs to.
func (m Measurement) Of(host string) []string {
	if len(m.Vantage) == 0 {
		return []string{""}
	}
	var sets []string
	for _, v := range m.Vantage {
		if slices.ContainsFunc(v.Hosts, func(pattern string) bool { ok, _ := path.Match(pattern, host); return ok }) {
			sets = append(sets, v.Name)
		}
	}
	return sets
}

// Load reads and checks a file. An error of its content is a *config.Error of userspace/config.
func Load(name string) (*Config, error) {
	text, err := file.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, text)
}

// Parse checks a configuration; name is the file's name in errors.
func Parse(name string, text []byte) (*Config, error) {
	return file.Parse(name, "measurements are", text, whole())
}

// Schema is the JSON schema of the file, self-contained.
func Schema() ([]byte, error) { return schema(parts.Bundled()) }

// ShippedSchema is the JSON schema that refers to the separate file of algorithms.
func ShippedSchema() ([]byte, error) { return schema(nil) }

func schema(defs map[string]any) ([]byte, error) {
	return file.WriteSchema(whole(), "configuration of xdpmon-coordinator", defs)
}

// String describes a measurement, for people.
func (m Measurement) String() string {
	var list []string
	for _, a := range m.Algorithms {
		list = append(list, a.Descriptor.Name)
	}
	return m.Name + ": " + strings.Join(list, ", ")
}
