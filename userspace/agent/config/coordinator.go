package config

import (
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Coordinator is a checked configuration of a coordinator.
type Coordinator struct {
	Log          Log
	Listen       string
	MetricsRows  bool
	Socket       string
	Outputs      []Output
	Store        *Store
	Data         string // what it must know after a restart; 0700
	Bus          Server
	Measurements []Measurement
	Paths        string // of prefix pairs, for suspect links; "" for none
	Limits       CoordinatorLimits
}

// Server is the coordinator's side of the bus.
type Server struct {
	Listen   string // of its own server
	Keys     *keys.Files
	Cluster  *Cluster
	External []string // servers of others, instead of its own
}

// Cluster is a coordinator among several.
type Cluster struct {
	Name   string
	Listen string
	Routes []string
}

// CoordinatorLimits bound what agents can make a coordinator do.
type CoordinatorLimits struct {
	Agents  int
	Message int64 // bytes of one
	Rate    int   // messages of an agent a second
	Heap    int64
}

// Measurement is what agents measure together.
type Measurement struct {
	Name       string
	Window     time.Duration
	Wait       time.Duration // for windows on their way; 0: a tenth of the window, 1 s at least
	Seed       uint64        // 0: drawn once
	CRC, Decap bool
	Algorithms []session.Selected
	Vantage    []Vantage // empty: one, and every packet passes one of the hosts
}

// Vantage is a set of hosts of which a packet passes one at most. What sets count is not added up.
type Vantage struct {
	Name  string
	Hosts []string // patterns
}

// DefaultData is where a coordinator keeps what it must know.
const (
	DefaultData            = "/var/lib/xdpmon/coordinator"
	DefaultCoordinator     = "/etc/xdpmon/coordinator.yaml"
	DefaultBusListen       = "127.0.0.1:4222"
	DefaultCoordinatorSock = "/run/xdpmon/coordinator.sock"
)

func coordinator() object[Coordinator] {
	return object[Coordinator]{
		What: "the configuration",
		Defaults: func() Coordinator {
			return Coordinator{Log: defaultLog(), Socket: DefaultCoordinatorSock, Data: DefaultData, Bus: Server{Listen: DefaultBusListen},
				Limits: CoordinatorLimits{Agents: 4096, Message: bus.DefaultMessage, Rate: 200, Heap: 512 << 20}}
		},
		Fields: []field[Coordinator]{
			entry("measurements", "what agents measure together: a list", list[measured]{What: "measurements", Of: measurement(), Min: 1}, true,
				func(c *Coordinator, v any) {
					for _, m := range v.([]measured) {
						c.Measurements = append(c.Measurements, m.Measurement)
					}
				}),
			entry("bus", "where agents connect to", serve(), false, to(func(c *Coordinator) *Server { return &c.Bus })),
			entry("data", "a folder for what must outlive a restart ("+DefaultData+")", pathKind("data"), false, to(func(c *Coordinator) *string { return &c.Data })),
			entry("paths", "a file of the links that traffic of prefix pairs takes, to find suspect ones", pathKind("paths"), false,
				to(func(c *Coordinator) *string { return &c.Paths })),
			entry("outputs", "streams of windows", list[Output]{What: "outputs", Of: output()}, false, to(func(c *Coordinator) *[]Output { return &c.Outputs })),
			entry("listen", "address of metrics, page and health; a port alone (:9401) is this host only", word{What: "listen", Check: checkListen}, false,
				to(func(c *Coordinator) *string { return &c.Listen })),
			entry("metrics_rows", "serve metrics of flows, addresses and prefixes, too: every one becomes a series, and names somebody", flag{What: "metrics_rows"}, false,
				to(func(c *Coordinator) *bool { return &c.MetricsRows })),
			entry("socket", "for `xdpmon history --socket` on this host ("+DefaultCoordinatorSock+")", pathKind("socket"), false,
				to(func(c *Coordinator) *string { return &c.Socket })),
			entry("store", "keep windows on disk for a while", keep(), false, func(c *Coordinator, v any) { s := v.(Store); c.Store = &s }),
			entry("limits", "what agents may make it do", coordinatorLimits(), false, to(func(c *Coordinator) *CoordinatorLimits { return &c.Limits })),
			entry("log", "how the coordinator speaks", logging(), false, to(func(c *Coordinator) *Log { return &c.Log })),
		},
		Check: checkCoordinator,
	}
}

func serve() kind {
	return object[Server]{What: "bus", Defaults: func() Server { return Server{Listen: DefaultBusListen} }, Fields: []field[Server]{
		entry("listen", "HOST:PORT ("+DefaultBusListen+")", addressKind("listen"), false, to(func(s *Server) *string { return &s.Listen })),
		entry("keys", "certificates, as `xdpmon keys` makes them; needed as soon as anything leaves this host", keyFiles(), false,
			func(s *Server, v any) { f := v.(keys.Files); s.Keys = &f }),
		entry("cluster", "this coordinator is one of three", object[Cluster]{What: "cluster", Defaults: func() Cluster { return Cluster{} }, Fields: []field[Cluster]{
			entry("name", "of this one among them", nameKind, true, to(func(c *Cluster) *string { return &c.Name })),
			entry("listen", "HOST:PORT for the others", addressKind("listen"), true, to(func(c *Cluster) *string { return &c.Listen })),
			entry("routes", "HOST:PORT of the others", list[string]{What: "routes", Of: addressKind("a route"), Min: 1}, true, to(func(c *Cluster) *[]string { return &c.Routes })),
		}}, false, func(s *Server, v any) { c := v.(Cluster); s.Cluster = &c }),
		entry("external", "servers of a NATS cluster of yours, instead of the one inside: tls://HOST:PORT", list[string]{What: "external", Of: word{What: "a server", Check: checkServer}, Min: 1},
			false, to(func(s *Server) *[]string { return &s.External })),
	}, Check: checkServe}
}

func addressKind(what string) kind {
	return word{What: what, Check: func(text string) error {
		host, port, err := net.SplitHostPort(text)
		if err != nil || host == "" {
			return fmt.Errorf("%s %q: HOST:PORT", what, text)
		}
		if _, err := net.LookupPort("tcp", port); err != nil {
			return fmt.Errorf("%s %q: %q is not a TCP port", what, text, port)
		}
		return nil
	}}
}

// checkServe: what leaves this host is encrypted, and both ends are known.
func checkServe(p *parser, at func(string) *yaml.Node, s *Server) {
	if len(s.External) > 0 {
		if s.Cluster != nil {
			p.Say(at("cluster"), "a cluster is of the servers inside of coordinators; external has its own")
		}
		b := Bus{Servers: s.External, Keys: s.Keys}
		checkBus(p, func(string) *yaml.Node { return at("external") }, &b)
		return
	}
	host, _, _ := net.SplitHostPort(s.Listen)
	if s.Keys == nil && !loopback(host) {
		p.Say(at("listen"), "%s leaves this host: give keys (make them with `xdpmon keys`), or listen on 127.0.0.1", s.Listen)
	}
	if c := s.Cluster; c != nil && s.Keys == nil {
		for _, a := range append([]string{c.Listen}, c.Routes...) {
			if host, _, _ := net.SplitHostPort(a); !loopback(host) {
				p.Say(at("cluster"), "%s leaves this host: give keys", a)
			}
		}
	}
}

func coordinatorLimits() kind {
	return object[CoordinatorLimits]{What: "limits",
		Defaults: func() CoordinatorLimits { return coordinator().Defaults().Limits },
		Fields: []field[CoordinatorLimits]{
			entry("agents", "that are known at the same time (4096)", number{What: "agents", Min: 1, Max: 1 << 17}, false, func(l *CoordinatorLimits, v any) { l.Agents = int(v.(uint64)) }),
			entry("message", "bytes of one (1MiB)", size{What: "message", Min: 1 << 16, Max: bus.MaxMessage}, false, to(func(l *CoordinatorLimits) *int64 { return &l.Message })),
			entry("rate", "messages of an agent a second, over ten seconds (200)", number{What: "rate", Min: 10, Max: 1 << 20}, false, func(l *CoordinatorLimits, v any) { l.Rate = int(v.(uint64)) }),
			entry("heap", "of the process (GOMEMLIMIT), unless the environment says another (512MiB)", size{What: "heap", Min: 64 << 20, Max: 1 << 42}, false,
				to(func(l *CoordinatorLimits) *int64 { return &l.Heap })),
		}}
}

// measured is a measurement and where its algorithms stand in the file.
type measured struct {
	Measurement
	algorithms []chosen
}

func measurement() kind {
	return object[measured]{What: "a measurement",
		Defaults: func() measured { return measured{Measurement: Measurement{Window: session.DefaultWindow}} },
		Fields: []field[measured]{
			entry("name", "the rules of agents that share it bear it", word{What: "name", Pattern: instanceName.String(), Check: func(text string) error {
				if !instanceName.MatchString(text) {
					return fmt.Errorf("name %q: 1 to 32 letters, digits, dots, - and _", text)
				}
				return nil
			}}, true, to(func(m *measured) *string { return &m.Name })),
			entry("algorithms", "what is measured, each with its parameters", algorithms{}, true, to(func(m *measured) *[]chosen { return &m.algorithms })),
			entry("window", "its length, 100ms to 24h (10s)", windowKind, false, to(func(m *measured) *time.Duration { return &m.Window })),
			entry("wait", "for windows that are on their way (a tenth of the window, 1s at least)", duration{What: "wait", Min: 10 * time.Millisecond, Max: time.Hour}, false,
				to(func(m *measured) *time.Duration { return &m.Wait })),
			entry("seed", "of the hashes (drawn once, and kept)", number{What: "seed", Min: 1, Max: 1<<64 - 1}, false, to(func(m *measured) *uint64 { return &m.Seed })),
			entry("hash", "fast, or crc as the P4 twin on a switch has them (fast)", word{What: "hash", Choices: []string{"fast", "crc"}}, false,
				func(m *measured, v any) { m.CRC = v.(string) == "crc" }),
			entry("decap", "look into VXLAN, GENEVE, GRE, IPIP and 6in4, one level (false)", flag{What: "decap"}, false, to(func(m *measured) *bool { return &m.Decap })),
			entry("vantage", "sets of hosts: a packet passes one host of a set at most, and sets are not added up (all hosts are one)",
				list[Vantage]{What: "vantage", Of: object[Vantage]{What: "a set", Defaults: func() Vantage { return Vantage{} }, Fields: []field[Vantage]{
					entry("name", "of the set", nameKind, true, to(func(v *Vantage) *string { return &v.Name })),
					entry("hosts", "patterns of agents' names", patterns, true, to(func(v *Vantage) *[]string { return &v.Hosts })),
				}}, Min: 1}, false, to(func(m *measured) *[]Vantage { return &m.Vantage })),
		},
		Check: func(p *parser, at func(string) *yaml.Node, m *measured) {
			if m.Wait == 0 {
				m.Wait = max(time.Second, m.Window/10)
			}
			m.Algorithms = judge(p, m.algorithms, algo.Env{CPUs: maps.PossibleCPUs(), CRC: m.CRC, WindowNS: int64(m.Window), Seed: m.Seed})
			for _, c := range m.algorithms {
				if c.Descriptor.Enforces {
					p.Say(c.at, "%s acts on packets: a host does that by its own configuration only", c.Descriptor.Name)
				} else if c.Descriptor.Merge == nil && c.Descriptor.Coordinate == nil {
					p.Say(c.at, "%s: nothing is known of how windows of hosts are put together", c.Descriptor.Name)
				}
			}
		},
	}
}

func checkCoordinator(p *parser, at func(string) *yaml.Node, c *Coordinator) {
	for i, m := range c.Measurements {
		if slices.ContainsFunc(c.Measurements[:i], func(o Measurement) bool { return o.Name == m.Name }) {
			p.Say(nameNode(at("measurements"), i), "two measurements are named %s", m.Name)
		}
	}
	var files []string
	for _, o := range c.Outputs {
		if slices.Contains(files, o.JSON) {
			p.Say(at("outputs"), "two outputs write to %s", o.JSON)
		}
		files = append(files, o.JSON)
	}
}

// Of says which sets a host belongs to.
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

// LoadCoordinator reads and checks a file. An error of its content is an *Error.
func LoadCoordinator(name string) (*Coordinator, error) {
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return ParseCoordinator(name, text)
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("read configuration %s: %d bytes are too many: at most %d", name, info.Size(), maxFile)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return text, nil
}

// ParseCoordinator checks a coordinator's configuration; file is its name in complaints.
func ParseCoordinator(file string, text []byte) (*Coordinator, error) {
	return parse(file, "measurements are", text, coordinator())
}

func parse[T any](file, lacks string, text []byte, k object[T]) (*T, error) {
	p := &parser{File: file}
	root := p.Read(text, lacks)
	if root == nil {
		return nil, p.Err()
	}
	v, ok := k.Decode(p, root)
	if err := p.Err(); err != nil || !ok {
		return nil, err
	}
	c := v.(T)
	return &c, nil
}

// CoordinatorSchema is the JSON schema of the file.
func CoordinatorSchema() ([]byte, error) {
	return schema(coordinator(), "configuration of xdpmon coordinator")
}

// names of a mapping's algorithms, for people.
func (m Measurement) String() string {
	var list []string
	for _, a := range m.Algorithms {
		list = append(list, a.Descriptor.Name)
	}
	return m.Name + ": " + strings.Join(list, ", ")
}
