// Package coordinator merges the windows of many hosts and reports as if one host had seen all packets. Agents send windows over the bus;
// the merged reports go to the same outputs as an agent's own. The package names no algorithm: each algorithm merges its own windows
// (algo.Merger).
package coordinator

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/bus/server"
	file "github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/coordinator/config"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/outlet"
	"github.com/xdpmon/xdpmon/userspace/outlet/parquet"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/suspect"
)

// Options of a coordinator.
type Options struct {
	Path     string // of the configuration file
	Log      func(settings.Log) slog.Handler
	Notify   func(state string) // reports a state to the service manager; nil: there is none
	Reload   <-chan os.Signal
	Stdout   io.Writer
	Version  string
	Watchdog time.Duration
	// Started is called once with the address that agents connect to; may be nil.
	Started func(address string)

	watch func(*Coordinator) // for tests: called before anything is opened
}

// Coordinator is a running coordinator.
type Coordinator struct {
	opts    Options
	log     *slog.Logger
	out     *outlet.Set
	holder  *keys.Holder
	lock    *os.File       // of the data folder
	server  *server.Server // nil with an external one
	conn    *nats.Conn
	state   *keyValue
	engine  *engine
	gate    *gate
	inbox   *inbox
	started time.Time
	ctx     context.Context

	observe func(report.Line) // for tests: called with every answer before it is published
	opened  atomic.Bool

	mu       sync.Mutex
	cfg      *config.Config
	leading  bool
	sub      *nats.Subscription
	refusal  string
	saving   bool
	saved    time.Time
	gathered time.Time // last call of gather; used by loop only
	trouble  string    // error of saving the state; "" if it is saved
}

// Run runs a coordinator until the end of ctx.
func Run(ctx context.Context, opts Options) error {
	cfg, err := config.Load(opts.Path)
	if err != nil {
		return err
	}
	if opts.Notify == nil {
		opts.Notify = func(string) {}
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(cfg.Limits.Heap)
	}
	c := &Coordinator{opts: opts, cfg: cfg, log: slog.New(opts.Log(cfg.Log)), inbox: newInbox(), started: time.Now(),
		gate: newGate(cfg.Limits.Rate, cfg.Limits.Agents, int(cfg.Limits.Message))}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	c.ctx = inner
	c.out = outlet.New(outlet.Options{Log: c.log, Stdout: opts.Stdout, Handler: c.handler,
		Clock: func() report.Clock { return report.Clock{Name: "unix"} },
		Parquet: func(p settings.Parquet, cdf bool) (outlet.Sink, error) {
			return parquet.New(p, cdf, time.Now)
		},
		Diagnosed: func(open []finding.Finding) { c.engine.found.Own(open) }})
	if opts.watch != nil {
		opts.watch(c)
	}
	if err := c.open(ctx); err != nil {
		if ctx.Err() != nil {
			err = nil // it was ended while it waited for the other coordinators
		}
		return errors.Join(err, c.close())
	}
	if text := file.Exposed(opts.Path); text != "" {
		c.log.Warn(text)
	}
	c.log.Info("coordinator starts", "version", opts.Version, "configuration", opts.Path, "agents_connect_to", c.address(), "mutual_tls", cfg.Bus.Keys != nil)
	if opts.Started != nil {
		opts.Started(c.address())
	}
	opts.Notify("READY=1\nSTATUS=" + c.Health().summary())
	err = c.loop(ctx)
	opts.Notify("STOPPING=1")
	return errors.Join(err, c.close())
}

func (c *Coordinator) address() string {
	if c.server == nil {
		return strings.Join(c.cfg.Bus.External, ",")
	}
	return c.server.Address()
}

func where(c *config.Config) outlet.Config {
	return outlet.Config{Outputs: c.Outputs, Store: c.Store, Listen: c.Listen, Metrics: c.Metrics, Socket: c.Socket, Web: c.Web, Keys: c.Bus.Keys, Promises: c.Promises, Alerts: c.Alerts}
}

func (c *Coordinator) open(ctx context.Context) error {
	next, err := c.out.Prepare(where(c.cfg))
	if err != nil {
		return err
	}
	c.out.Commit(next)
	if f := c.cfg.Bus.Keys; f != nil {
		if c.holder, err = keys.Hold(*f); err != nil {
			return err
		}
		if text := c.holder.Trouble(time.Now()); text != "" {
			c.log.Warn(text, "certificate", f.Certificate)
		}
	}
	if err := c.connect(); err != nil {
		return err
	}
	replicas := 1
	if c.cfg.Bus.Cluster != nil || len(c.cfg.Bus.External) > 1 {
		replicas = 3
	}
	name := "coordinator"
	if c.cfg.Bus.Cluster != nil {
		name = c.cfg.Bus.Cluster.Name
	}
	c.opts.Notify("STATUS=waiting for the bus' store")
	if c.state, err = openKeyValue(ctx, c.conn, name, replicas, c.log); err != nil {
		return err
	}
	seeds, err := c.seeds(ctx, c.cfg)
	if err != nil {
		return err
	}
	if c.engine, err = newEngine(c.cfg, seeds, c.log, c.emit); err != nil {
		return err
	}
	if c.engine.paths, err = paths(c.cfg); err != nil {
		return err
	}
	c.describe(c.cfg)
	c.opened.Store(true)
	return nil
}

func paths(cfg *config.Config) (*suspect.Paths, error) {
	if cfg.Paths == "" {
		return nil, nil
	}
	return suspect.Load(cfg.Paths)
}

// connect starts the server inside, or connects to the one outside.
func (c *Coordinator) connect() (err error) {
	options := []nats.Option{nats.Name("coordinator"), nats.MaxReconnects(-1), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		c.log.Warn("NATS error", "error", err)
	})}
	b := c.cfg.Bus
	if len(b.External) > 0 {
		if c.holder != nil {
			options = append(options, nats.Secure(c.holder.Client()))
		}
		if c.conn, err = nats.Connect(strings.Join(b.External, ","), options...); err != nil {
			return fmt.Errorf("connect to the bus: %w", err)
		}
		return nil
	}
	if err := os.MkdirAll(c.cfg.Data, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", c.cfg.Data, err)
	}
	if c.lock, err = lock(c.cfg.Data); err != nil {
		return err
	}
	o := server.Options{Listen: b.Listen, Store: filepath.Join(c.cfg.Data, "bus"), Message: int(c.cfg.Limits.Message), Agents: c.cfg.Limits.Agents,
		Name: "coordinator", Log: c.log, Identify: c.identify}
	if c.holder != nil {
		o.TLS = c.holder.Server()
	}
	if cl := b.Cluster; cl != nil {
		o.Name, o.Cluster, o.Routes = cl.Name, cl.Listen, cl.Routes
		if c.holder != nil {
			o.Peers = c.holder.Peers()
		}
	}
	if c.server, err = server.Serve(o); err != nil {
		return err
	}
	c.conn, err = c.server.Connect(options...)
	return err
}

// identify returns name and serial of a certificate, and refuses agents that were disconnected for exceeding their rate.
func (c *Coordinator) identify(s *tls.ConnectionState) (name, serial string, err error) {
	name, serial, err = c.holder.Peer(s, keys.Agent)
	if until := c.gate.held(name); err == nil && time.Now().Before(until) {
		err = fmt.Errorf("%s exceeded its rate limit: refused until %s", name, until.Format(time.TimeOnly))
	}
	return name, serial, err
}

// seeds of the measurements: drawn by the first coordinator, and stored for all.
func (c *Coordinator) seeds(ctx context.Context, cfg *config.Config) (map[string]uint64, error) {
	all := map[string]uint64{}
	for _, m := range cfg.Measurements {
		if m.Seed != 0 {
			continue
		}
		seed, err := c.state.seed(ctx, m.Name)
		if err != nil {
			return nil, err
		}
		all[m.Name] = seed
	}
	return all, nil
}

func (c *Coordinator) emit(l report.Line) {
	if c.observe != nil {
		c.observe(l)
	}
	c.out.Publish(c.ctx, l)
}

// describe emits the description of the run to the outputs. It omits the seeds, which are secret.
func (c *Coordinator) describe(cfg *config.Config) {
	run := report.Run{Version: c.opts.Version, Command: "coordinator", Hash: "fast", Clock: report.Clock{Name: "unix"}}
	c.out.Metrics().Start(run)
	for _, m := range cfg.Measurements {
		one := run
		one.Instance = m.Name
		if m.CRC {
			one.Hash = "crc"
		}
		session.Describe(&one, m.Algorithms, m.Window)
		c.out.Describe(c.ctx, one)
	}
}

const (
	beat    = 50 * time.Millisecond
	look    = 5 * time.Second // interval of checking keys and CRL
	saves   = 200 * time.Millisecond
	portion = 256 // most messages handled before timers and other events
)

func (c *Coordinator) loop(ctx context.Context) error {
	tick, watch := time.NewTicker(beat), time.NewTicker(look)
	defer tick.Stop()
	defer watch.Stop()
	leads := make(chan uint64, 1) // number of the term; 0: it lost leadership
	leading := make(chan struct{})
	campaign, cancel := context.WithCancel(ctx)
	go func() { defer close(leading); c.state.campaign(campaign, leads) }()
	defer func() { cancel(); <-leading }()
	for {
		select {
		case <-ctx.Done():
			c.save(true)
			return nil
		case run := <-leads:
			if err := c.turn(ctx, run); err != nil {
				return err
			}
		case <-c.inbox.some:
			c.drain()
		case now := <-tick.C:
			c.tick(now)
		case <-watch.C:
			c.look()
		case <-c.opts.Reload:
			c.reload(ctx)
		}
	}
}

// turn takes over leadership, or gives it up (run is 0).
func (c *Coordinator) turn(ctx context.Context, run uint64) error {
	c.mu.Lock()
	before := c.sub
	c.leading, c.sub = run != 0, nil
	c.mu.Unlock()
	if before != nil {
		_ = before.Unsubscribe() // the connection may be closed
	}
	if run == 0 {
		c.log.Warn("lost leadership")
		c.out.ForgetFindings() // the new leader publishes findings
		return nil
	}
	s, err := c.state.load(ctx)
	if err != nil {
		c.log.Error("saved state unreadable, starting fresh", "error", err)
		s = state{}
	}
	c.engine.lead(run, time.Now(), s)
	sub, err := c.conn.Subscribe(bus.UpAll, c.receive)
	if err == nil {
		err = sub.SetPendingLimits(1<<17, 128<<20)
	}
	if err != nil {
		return fmt.Errorf("listen to agents: %w", err)
	}
	c.mu.Lock()
	c.sub = sub
	c.mu.Unlock()
	c.log.Info("gained leadership", "agents_known", len(s.Agents))
	return nil
}

// receive puts an incoming message into its agent's mailbox. It does no other work, so that a flooding agent does not delay the
// others.
func (c *Coordinator) receive(m *nats.Msg) {
	name, kind, ok := bus.Sender(m.Subject)
	if !ok {
		return
	}
	now := time.Now()
	reason, end := c.gate.admit(name, len(m.Data), now)
	if reason == "" && !c.inbox.put(name, message{kind, m.Data}) {
		reason, end = flood, c.gate.overflow(name, now)
	}
	if reason != "" {
		c.engine.refusals.log(name, reason, byGate[reason])
	}
	if end && c.server != nil {
		c.log.Warn("rate limit exceeded, disconnecting", "agent", name, "for", hold)
		go c.server.Drop(name)
	}
}

// drain handles some of the messages received.
func (c *Coordinator) drain() {
	for range portion {
		name, m, ok := c.inbox.take()
		if !ok {
			return
		}
		if a := c.engine.receive(name, m, time.Now()); a != nil {
			c.answer(name, a)
		}
	}
	c.inbox.more()
}

func (c *Coordinator) answer(name string, a *bus.Answer) {
	data, err := bus.Encode(*a)
	if err == nil {
		err = c.conn.Publish(bus.DownSubject(name), data)
	}
	if err != nil {
		c.log.Debug("answer to agent failed", "agent", name, "error", err) // the agent repeats its request
	}
}

func (c *Coordinator) tick(now time.Time) {
	c.mu.Lock()
	leading := c.leading
	c.mu.Unlock()
	if !leading {
		return
	}
	for name, a := range c.engine.tick(now) {
		c.answer(name, a)
	}
	c.gather(now)
	c.save(false)
}

// save stores the state that survives a restart, in the background because the store may be slow.
func (c *Coordinator) save(wait bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.leading || c.saving || time.Since(c.saved) < saves && !wait {
		return
	}
	age := time.Since(c.saved)
	if wait {
		age = time.Hour
	}
	s, dirty := c.engine.changed(age)
	if !dirty {
		return
	}
	c.saving, c.saved = true, time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := c.state.save(s)
		c.mu.Lock()
		c.saving = false
		if err != nil {
			if c.trouble == "" {
				c.log.Error("state not saved", "error", err)
			}
			c.trouble = err.Error()
		} else {
			c.trouble = ""
		}
		c.mu.Unlock()
		c.engine.stored(s, err == nil)
	}()
	if wait {
		c.mu.Unlock()
		<-done
		c.mu.Lock()
	}
}

// look reloads keys and CRL if their files have changed.
func (c *Coordinator) look() {
	if c.holder != nil {
		if err := c.holder.Refresh(); err != nil {
			c.log.Error("CRL unreadable, keeping the previous CRL", "error", err)
		}
		if c.server != nil {
			c.server.DropRevoked(c.holder.Revoked)
		}
	}
	h := c.Health()
	c.opts.Notify("STATUS=" + h.summary())
	if c.opts.Watchdog > 0 {
		c.opts.Notify("WATCHDOG=1")
	}
}

// reload applies a changed configuration, or logs why it is refused and keeps the running one.
func (c *Coordinator) reload(ctx context.Context) {
	cfg, err := config.Load(c.opts.Path)
	if err == nil && (!reflect.DeepEqual(cfg.Bus, c.cfg.Bus) || cfg.Data != c.cfg.Data) {
		err = errors.New("bus and data are read at the start only: restart the coordinator")
	}
	if err == nil {
		err = c.exchange(ctx, cfg)
	}
	c.mu.Lock()
	c.refusal = ""
	if err != nil {
		c.refusal = err.Error()
	}
	c.mu.Unlock()
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			c.log.Error("configuration refused, keeping the running one", "error", strings.TrimSpace(line))
		}
		return
	}
	c.log.Info("configuration applied", "measurements", len(cfg.Measurements))
}

func (c *Coordinator) exchange(ctx context.Context, cfg *config.Config) error {
	found, err := paths(cfg)
	if err != nil {
		return err
	}
	seeds, err := c.seeds(ctx, cfg)
	if err != nil {
		return err
	}
	next, err := c.out.Prepare(where(cfg))
	if err != nil {
		return err
	}
	if err := c.engine.follow(cfg, seeds); err != nil {
		return errors.Join(err, next.Close())
	}
	c.engine.setPaths(found)
	c.out.Commit(next)
	c.mu.Lock()
	c.cfg = cfg
	c.mu.Unlock()
	c.describe(cfg)
	return nil
}

// lock reserves a folder for this process until the file is closed: two coordinators in one folder would overwrite each other's
// state.
func lock(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open data: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another coordinator uses %s: give this one a folder of its own (data)", path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

func (c *Coordinator) close() error {
	if c.conn != nil {
		c.conn.Close()
	}
	if c.server != nil {
		c.server.Close()
	}
	if c.lock != nil {
		c.lock.Close()
	}
	return c.out.Close()
}

// Preview describes the effects of a configuration. It opens only the key files.
func Preview(cfg *config.Config) ([]string, error) {
	var lines []string
	for _, m := range cfg.Measurements {
		lines = append(lines, fmt.Sprintf("%s; windows of %v, and a wait of %v for late ones", m, m.Window, m.Wait))
	}
	if f := cfg.Bus.Keys; f != nil {
		h, err := keys.Hold(*f)
		if err != nil {
			return nil, err
		}
		until, name := h.Until()
		lines = append(lines, fmt.Sprintf("%s: certificate of %s, until %s", f.Certificate, name, until.Format(time.DateOnly)))
		if text := h.Trouble(time.Now()); text != "" {
			lines = append(lines, text)
		}
	}
	if _, err := paths(cfg); err != nil {
		return nil, err
	}
	if _, err := os.Stat(cfg.Data); err == nil {
		lines = append(lines, cfg.Data+" exists: the coordinator continues from its saved state")
	}
	return lines, nil
}

// draw is a random number that is not 0.
func draw() (uint64, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("draw a number: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]) | 1, nil
}
