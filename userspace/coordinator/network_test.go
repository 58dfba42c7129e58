package coordinator

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/bus/client"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// site is coordinators and agents of one test, with an authority of its own.
type site struct {
	t        *testing.T
	dir      string
	measured string                   // measurements of coordinators; "": one of the tests' own
	skew     map[string]time.Duration // of agents' clocks
	hello    time.Duration
	paths    string   // a file; "" for none
	external []string // external servers; nil: inside
	more     string   // lines of coordinators' files
	found    func(agent string) ([][]byte, uint64, []string)
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), hello: 100 * time.Millisecond}
	if err := s.folder().Init(1); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) folder() keys.Folder {
	return keys.Folder{Path: filepath.Join(s.dir, "keys"), Now: time.Now}
}

func (s *site) make(role, name string) {
	s.t.Helper()
	var hosts []string
	if role == keys.Coordinator {
		hosts = []string{"127.0.0.1"}
	}
	if err := s.folder().Make(role, name, hosts, 1); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) files(name string) keys.Files {
	at := func(file string) string { return filepath.Join(s.dir, "keys", file) }
	return keys.Files{CA: at("ca.crt"), Certificate: at(name + ".crt"), Key: at(name + ".key"), Revoked: at("revoked.crl")}
}

// running is a coordinator.
type running struct {
	*Coordinator
	address string
	end     func()
	mu      sync.Mutex
	lines   []report.Line
}

// closed ports.
func ports(t *testing.T, n int) (list []string) {
	t.Helper()
	var open []net.Listener
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		open, list = append(open, l), append(list, l.Addr().String())
	}
	for _, l := range open {
		l.Close()
	}
	return list
}

// coordinator starts one; cluster is its lines of YAML, and rate an agent's limit.
func (s *site) coordinator(name, listen, cluster string, rate int) *running {
	s.t.Helper()
	f := s.files(name)
	measured := cmp.Or(s.measured, "{name: m, window: 200ms, wait: 2s, seed: 77, algorithms: {sums: , received: }}")
	text := fmt.Sprintf(`measurements:
  - %s
bus:
  listen: %s
  keys: {ca: %s, certificate: %s, key: %s, revoked: %s}
%sdata: %s
socket: %s
limits: {rate: %d, message: 1MiB}
`, measured, listen, f.CA, f.Certificate, f.Key, f.Revoked, cluster, filepath.Join(s.dir, name), filepath.Join(s.dir, name+".sock"), rate)
	path := filepath.Join(s.dir, name+".yaml")
	if s.paths != "" {
		text += "paths: " + s.paths + "\n"
	}
	text += s.more
	if s.external != nil {
		text = strings.Replace(text, "  listen: \n", fmt.Sprintf("  external: [%s]\n", strings.Join(s.external, ", ")), 1)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r, shown, started, done := &running{}, make(chan struct{}), make(chan struct{}), make(chan error, 1)
	watch := func(c *Coordinator) {
		r.Coordinator = c
		defer close(shown)
		c.observe = func(l report.Line) { r.mu.Lock(); defer r.mu.Unlock(); r.lines = append(r.lines, l) }
	}
	go func() {
		done <- Run(ctx, Options{Path: path, watch: watch, Log: func(settings.Log) slog.Handler { return slog.NewTextHandler(io.Discard, nil) }, Stdout: io.Discard,
			Started: func(a string) { r.address = a; close(started) }})
	}()
	r.end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("%s: %v", name, err)
		}
	})
	s.t.Cleanup(r.end)
	<-shown
	if cluster == "" {
		<-started
	}
	return r
}

// agent is one whose windows a test makes.
type agentUnderTest struct {
	*client.Link
	hub  feed.Hub
	sent uint64
	last int64

	mu       sync.Mutex
	received []string
	renewed  int
}

func (s *site) agent(name string, servers ...string) *agentUnderTest {
	return s.agentAs(name, 0, servers...)
}

// agentAs is agent, whose messages wait for each other for so long.
func (s *site) agentAs(name string, linger time.Duration, servers ...string) *agentUnderTest {
	s.t.Helper()
	h, err := keys.Hold(s.files(name))
	if err != nil {
		s.t.Fatal(err)
	}
	a := &agentUnderTest{}
	var found func() ([][]byte, uint64, []string)
	if s.found != nil {
		found = func() ([][]byte, uint64, []string) { return s.found(name) }
	}
	a.Link, err = client.Open(client.Options{Name: name, Found: found, Renew: func() { a.mu.Lock(); defer a.mu.Unlock(); a.renewed++ },
		Message: func(m bus.Message) { a.mu.Lock(); defer a.mu.Unlock(); a.received = append(a.received, string(m.Data)) }, Servers: servers, TLS: h.Client(), Buffer: 4 << 20, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Plan: func(*bus.Plan) {}, Refused: func() map[string]string { return nil }, Clock: func() int64 { return hostclock.Now() + int64(s.skew[name]) },
		Wall: func() int64 { return time.Now().UnixNano() }, Hello: s.hello, Linger: linger}, &a.hub, func(string) bool { return true })
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { a.hub.Close(); a.Close() })
	return a
}

// window is one of 200 ms in which the agent has counted one.
func (a *agentUnderTest) window(t *testing.T, index int64) {
	t.Helper()
	const length = 200e6
	offset := a.Clock().Offset
	s := snapshot.New(snapshot.Head{Algorithm: "sums", Layout: 1, Params: map[string]string{"size": "16"}, Hashes: snapshot.HashMark(seed), WindowNS: length},
		report.Window{Start: index*length - offset, End: (index+1)*length - offset})
	s.Words["n"] = snapshot.Words{1}
	s.Words["flows"] = snapshot.Words{}
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	a.sent++
	a.hub.Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "sums", Identity: report.Identity{Instance: "m"}, Snapshot: data}})
}

// before is the window before this one, unless it was sent already.
func (a *agentUnderTest) before(t *testing.T) {
	if index := a.now() - 1; index > a.last {
		a.last = index
		a.window(t, index)
	}
}

// now is the number of the current window.
func (a *agentUnderTest) now() int64 { return (hostclock.Now() + a.Clock().Offset) / 200e6 }

const patience = 60 * time.Second // of what must happen, on a machine however busy

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// answered adds up answers by window; a window that is answered again after a restart counts once.
func answered(list ...*running) (sum uint64) {
	windows := map[int64]uint64{}
	for _, r := range list {
		r.mu.Lock()
		for _, l := range r.lines {
			windows[l.Window.Start] = max(windows[l.Window.Start], l.Report.Values[0].Value.(uint64))
		}
		r.mu.Unlock()
	}
	for _, n := range windows {
		sum += n
	}
	return sum
}

func late(r *running) (n uint64) {
	for _, a := range r.Health().Agents {
		n += a.Late + a.Refused[untimely]
	}
	return n
}

// A malicious agent with a certificate harms only itself: 10,000 messages that are malformed, or were sent
// before, or are another's, and a flood, are refused and counted, and the answers are those of the others.
func TestHostileAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.make(keys.Coordinator, "central")
	for _, name := range []string{"good", "bad", "lost"} {
		s.make(keys.Agent, name)
	}
	c := s.coordinator("central", "127.0.0.1:0", "", 2000)
	server := "tls://" + c.address
	good := s.agent("good", server)
	eventually(t, "an answer", func() bool { return good.Clock().Known })

	h, err := keys.Hold(s.files("bad"))
	if err != nil {
		t.Fatal(err)
	}
	complaints := make(chan error, 4096)
	conn, err := nats.Connect(server, nats.Secure(h.Client()), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			select {
			case complaints <- err:
			default:
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	publish := func(subject string, data []byte) {
		if err := conn.Publish(subject, data); err != nil {
			t.Fatal(err)
		}
	}
	hello, _ := bus.Encode(bus.Hello{Version: bus.Version, Incarnation: 5, Oldest: 1})
	publish(bus.HelloSubject("bad"), hello)
	eventually(t, "the other agent", func() bool { return len(c.Health().Agents) == 2 })
	// Another's name, reply subjects of others, the bus' own store.
	for _, subject := range []string{bus.HelloSubject("good"), bus.DataSubject("good"), bus.FindingsSubject("good"), bus.DownSubject("good"), "$JS.API.STREAM.DELETE.KV_xdpmon", "$KV.xdpmon.state"} {
		publish(subject, hello)
	}
	eventually(t, "subjects of others", func() bool { return c.Health().Violations == 6 })
	if _, err := conn.SubscribeSync("xdpmon.>"); err != nil {
		t.Fatal(err)
	}
	replay, _ := bus.Encode(bus.Batch{Version: bus.Version, Incarnation: 6, Number: 1, Oldest: 1})
	foreigner, _ := bus.Encode(bus.Batch{Version: bus.Version, Incarnation: 5, Number: 1, Oldest: 1, Items: []bus.Item{{Measurement: "other", Instance: "other", Algorithm: "sums", Snapshot: []byte("x")}}})
	broken, _ := bus.Encode(bus.Batch{Version: bus.Version, Incarnation: 5, Number: 2, Oldest: 1, Items: []bus.Item{{Measurement: "m", Instance: "m", Algorithm: "sums", Snapshot: []byte("xdpmsnap")}}})
	const each = 2500
	for n := range each {
		publish(bus.DataSubject("bad"), []byte{byte(n), byte(n >> 8), 0xff})
		publish(bus.DataSubject("bad"), replay)
		publish(bus.DataSubject("bad"), foreigner)
		publish(bus.DataSubject("bad"), broken)
		if n%200 == 0 { // below the rate
			good.before(t)
			time.Sleep(100 * time.Millisecond)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	bad := func() (k Known) {
		for _, a := range c.Health().Agents {
			if a.Name == "bad" {
				return a
			}
		}
		return k
	}
	eventually(t, "refusals", func() bool {
		k := bad()
		return k.Refused[malformed]+k.Refused[stranger]+k.Refused[foreign]+k.Again+k.Refused[flood] == 4*each
	})
	if k := bad(); k.Refused[foreign] != 1 || k.Refused[stranger] == 0 || k.Refused[malformed] == 0 || k.Windows != 0 {
		t.Errorf("%+v", k)
	}
	// A flood ends with the connection, and there is none for a while.
	for c.gate.held("bad").IsZero() {
		for range 1000 {
			_ = conn.Publish(bus.DataSubject("bad"), replay) // it may be cut off in the middle
		}
		_ = conn.Flush()
	}
	eventually(t, "keeping it out", func() bool { return !conn.IsConnected() })
	good.before(t)
	eventually(t, "all windows of the other one", func() bool { return answered(c)+late(c) == good.sent })
	for _, a := range c.Health().Agents {
		if a.Name == "good" && (a.Lost != 0 || a.Refused[malformed]+a.Refused[foreign]+a.Refused[flood] != 0) {
			t.Errorf("%+v", a)
		}
	}
	// No certificate, one of another authority, a coordinator's: all are refused.
	other := newSite(t)
	other.make(keys.Agent, "good")
	mixed := other.files("good")
	mixed.CA, mixed.Revoked = s.files("good").CA, ""
	if _, err := keys.Hold(mixed); err == nil {
		t.Error("a certificate of another authority is held")
	}
	config := func(f keys.Files) *tls.Config {
		h, err := keys.Hold(f)
		if err != nil {
			t.Fatal(err)
		}
		return h.Client()
	}
	outsider := config(other.files("good"))
	outsider.RootCAs = config(s.files("good")).RootCAs
	for name, how := range map[string]*tls.Config{"another authority": outsider, "a coordinator": config(s.files("central"))} {
		if conn, err := nats.Connect(server, nats.Secure(how)); err == nil {
			conn.Close()
			t.Errorf("%s is let in", name)
		}
	}
	if conn, err := nats.Connect("nats://" + c.address); err == nil {
		conn.Close()
		t.Error("a connection without a name is accepted")
	}
	// What is revoked is cut off, while it is connected.
	lost := s.agent("lost", server)
	eventually(t, "an agent", func() bool { return lost.Health().Connected })
	if err := s.folder().Revoke("lost"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "cutting off", func() bool { return !lost.Health().Connected })
	before, _ := c.server.Refused()
	eventually(t, "being refused again and again", func() bool { n, _ := c.server.Refused(); return n >= before+3 })
	if why := lost.Health().Trouble; !strings.Contains(why, "uthorization") {
		t.Errorf("the agent logs the reason as: %q", why)
	}
	if err := s.folder().Renew("lost", 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "coming back with another certificate", func() bool { return lost.Health().Connected })
	if data, err := json.Marshal(c.Health()); err != nil || len(data) == 0 {
		t.Error(err)
	}
}

// Two coordinators in one folder would overwrite what each other keeps.
func TestFolderIsTaken(t *testing.T) {
	dir := t.TempDir()
	first, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(dir); err == nil || !strings.Contains(err.Error(), "another coordinator uses "+dir) {
		t.Errorf("%v", err)
	}
	first.Close()
	again, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// A coordinator that ends and begins again, and agents that are cut off meanwhile: nothing is answered that was not counted, and every
// window is answered, or counted as late or lost.
func TestCoordinatorRestarts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.make(keys.Coordinator, "central")
	s.make(keys.Agent, "one")
	address := ports(t, 1)[0]
	c := s.coordinator("central", address, "", 200)
	a := s.agent("one", "tls://"+address)
	eventually(t, "an answer", func() bool { return a.Clock().Known })
	all := []*running{c}
	first := a.now()
	for i := range int64(20) {
		for a.now() <= first+i {
			time.Sleep(10 * time.Millisecond)
		}
		a.window(t, first+i)
		a.Publish("m", "received", hostclock.Now(), 0, []byte{'0' + byte(i)})
		if i == 6 {
			c.end()
		}
		if i == 11 {
			c = s.coordinator("central", address, "", 200)
			all = append(all, c)
		}
	}
	eventually(t, "all windows", func() bool { return answered(all...)+late(c) >= a.sent })
	if sum := answered(all...); sum > a.sent || a.Health().Lost != 0 {
		t.Errorf("%d of %d windows, %+v", sum, a.sent, a.Health())
	}
	if k := c.Health().Agents[0]; k.Lost != 0 {
		t.Errorf("%+v", k)
	}
	eventually(t, "forgetting what was used", func() bool { return a.Health().Bytes == 0 })
	// Each message of the algorithm was received once, by coordinators of which the second has the first one's state; both get them as new.
	a.Begin("m", "received")
	eventually(t, "a message to the agent", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return slices.Contains(a.received, "welcome") })
	c.end()
	if p := c.engine.parts[stream{measurement: "m", algorithm: "received"}].Coordinator.(*listener); p.received != 20 || p.missed != 0 {
		t.Errorf("%d messages were received and %d missed, of 20", p.received, p.missed)
	}
	if a.mu.Lock(); a.renewed < 2 {
		t.Errorf("%d times renewed by two coordinators", a.renewed)
	}
	a.mu.Unlock()
}

// One of three coordinators may go: another one leads, with what the first one knew.
func TestOneOfThree(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.make(keys.Agent, "one")
	names := []string{"c0", "c1", "c2"}
	at := ports(t, 6)
	var servers []string
	var all []*running
	for i, name := range names {
		s.make(keys.Coordinator, name)
		servers = append(servers, "tls://"+at[i])
		cluster := fmt.Sprintf("  cluster: {name: %s, listen: %s, routes: [%s, %s]}\n", name, at[3+i], at[3+(i+1)%3], at[3+(i+2)%3])
		all = append(all, s.coordinator(name, at[i], cluster, 200))
	}
	leader := func() (leads *running) {
		for _, c := range all {
			if c.opened.Load() && c.Health().Leading {
				leads = c
			}
		}
		return leads
	}
	eventually(t, "a leader", func() bool { return leader() != nil })
	a := s.agent("one", servers...)
	eventually(t, "an answer", func() bool { return a.Clock().Known })
	send := func(n int64) {
		first := a.now()
		for i := range n {
			for a.now() <= first+i {
				time.Sleep(10 * time.Millisecond)
			}
			a.window(t, first+i)
		}
	}
	send(10)
	killed := leader()
	eventually(t, "answers", func() bool { return answered(all...)+late(killed) >= a.sent })
	killed.server.Close() // as if it were killed: without a goodbye
	rest := all[:0:0]
	for _, c := range all {
		if c != killed {
			rest = append(rest, c)
		}
	}
	everyone := all
	all = rest
	send(10)
	eventually(t, "another leader", func() bool { return leader() != nil })
	send(5)
	eventually(t, "all windows", func() bool { return answered(everyone...)+late(leader()) >= a.sent })
	if sum := answered(everyone...); sum > a.sent || a.Health().Lost != 0 {
		t.Errorf("%d of %d windows, %+v", sum, a.sent, a.Health())
	}
}
