// Package outlet writes windows to outputs: files of JSON lines, Prometheus, the page, and the store. Each output has its own
// queue. A long-running process publishes to one Set, whose outputs a new configuration replaces while windows arrive.
package outlet

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/names"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// Options of a Set.
type Options struct {
	Log    *slog.Logger
	Stdout io.Writer           // for outputs named -
	Clock  func() report.Clock // of the windows; nil: this host's, since it booted
	// Parquet opens Parquet files; nil in a program whose configuration has none.
	Parquet func(p settings.Parquet, cdf bool) (Sink, error)
	Handler func() http.Handler // serves further paths on listener and socket
	// Diagnosed is called with the active findings of the windows whenever one starts or ends. If it is set, these are not published; those given to Found are.
	Diagnosed func(open []finding.Finding)
}

// Config lists the outputs of windows.
type Config struct {
	Outputs  []settings.Output
	Store    *settings.Store // nil: windows are not stored
	Listen   string          // "": none
	Metrics  settings.Metrics
	Web      settings.Web
	Keys     *keys.Files // of the bus, for Web; nil: none
	Socket   string
	Promises []string // that findings compare values with
	Alerts   settings.Alerts
	Names    *names.Names // added to rows and findings; nil: none
}

// Set is the set of all outputs of windows. It is safe for concurrent use.
type Set struct {
	opts    Options
	hub     feed.Hub
	metrics *prom.Store
	engine  *diagnose.Engine
	api     *api.API
	names   atomic.Pointer[names.Names]
	probe   atomic.Pointer[func() Probe] // nil: no state of the process was given yet

	finds sync.Mutex        // of found alone: publishing a window does not wait for a change of configuration
	found []finding.Finding // active, as given to Found or as the engine has them

	mu      sync.Mutex
	outputs []*output
	keeper  *keeper
	alerts  *alerter // nil: no receiver
	servers servers
}

// New returns a Set without outputs.
func New(o Options) *Set {
	if o.Clock == nil {
		o.Clock = hostclock.Read
	}
	s := &Set{opts: o, metrics: prom.NewStore(time.Now), engine: diagnose.New()}
	s.metrics.Findings(nil)
	s.api = api.New(api.Options{Hub: &s.hub, Clock: o.Clock, Findings: s.current, Store: s.past, Health: s.state})
	return s
}

// past returns the store; nil if there is none.
func (s *Set) past() store.Past {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keeper == nil {
		return nil
	}
	return s.keeper.store
}

// Hub publishes every window; others may subscribe.
func (s *Set) Hub() *feed.Hub { return &s.hub }

// Metrics are the metrics that are served.
func (s *Set) Metrics() *prom.Store { return s.metrics }

// Publish passes a window to all outputs.
func (s *Set) Publish(ctx context.Context, l report.Line) {
	l = s.names.Load().Line(l)
	if !l.Encoding.Fits(l) {
		l.Encoding = report.NewEncoding(l)
	}
	s.metrics.Add(l)
	s.api.Add(l)
	s.hub.Publish(ctx, feed.Event{Line: &l})
	s.diagnose(ctx, l)
}

// Describe passes the description of the run to all outputs.
func (s *Set) Describe(ctx context.Context, run report.Run) {
	s.api.Start(run)
	s.hub.Publish(ctx, feed.Event{Run: &run})
}

// Forget removes an instance that was closed.
func (s *Set) Forget(key string) {
	s.metrics.Forget(key)
	s.api.Forget(key)
}

// Opened is everything that a configuration needs from the system and the running one does not have. All that can fail is done before
// anything of the running configuration is closed.
type Opened struct {
	cfg    Config
	sinks  []Sink // one per output
	store  *store.Store
	server *prom.Server
	socket *socket
}

// Prepare opens what Commit needs.
func (s *Set) Prepare(cfg Config) (*Opened, error) {
	o := &Opened{cfg: cfg}
	if err := o.open(s); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func (o *Opened) open(s *Set) (err error) {
	for _, out := range o.cfg.Outputs {
		sink, err := s.openOutput(out)
		if err != nil {
			return err
		}
		o.sinks = append(o.sinks, sink)
	}
	if c := o.cfg.Store; c != nil && (s.keeper == nil || s.keeper.cfg.Path != c.Path) {
		if o.store, err = openStore(*c, s.opts.Log); err != nil {
			return err
		}
	}
	if l := o.cfg.Listen; l != "" && (s.servers.http == nil || s.servers.listen != l || s.servers.web != o.cfg.Web) {
		if err := o.listen(s, l); err != nil {
			return err
		}
	}
	if path := o.cfg.Socket; path != "" && (s.servers.socket == nil || s.servers.socket.path != path) {
		if o.socket, err = listenSocket(path, s.handler(api.Guard{Certified: true})); err != nil {
			s.opts.Log.Warn("query socket unavailable", "error", err)
		}
	}
	return nil
}

// Close closes what was prepared and not committed.
func (o *Opened) Close() error {
	var errs []error
	for _, f := range o.sinks {
		errs = append(errs, f.Close())
	}
	if o.store != nil {
		errs = append(errs, o.store.Close())
	}
	if o.server != nil {
		errs = append(errs, o.server.Close())
	}
	return errors.Join(append(errs, o.socket.close())...)
}

// beyond is called when there are more series than the limit.
func (s *Set) beyond(dropped int) {
	s.opts.Log.Warn("metrics left out of the scrape: more series than metrics_limit", "dropped", dropped)
}

// Commit applies what was opened, and closes what the configuration no longer has.
func (s *Set) Commit(o *Opened) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names.Store(o.cfg.Names)
	s.metrics.ShowRows(o.cfg.Metrics.Rows)
	s.metrics.Details(o.cfg.Metrics.Details)
	s.metrics.ServeHistograms(o.cfg.Metrics.Histograms)
	s.metrics.Limit(cmp.Or(o.cfg.Metrics.Limit, prom.DefaultLimit), s.beyond)
	s.engine.Promise(parsed(o.cfg.Promises))
	s.alert(o.cfg.Alerts)
	var outputs []*output
	for i, c := range o.cfg.Outputs {
		at := slices.IndexFunc(s.outputs, func(x *output) bool { return x.cfg == c })
		if at < 0 {
			outputs = append(outputs, newOutput(c, o.sinks[i], s))
			continue
		}
		s.outputs[at].reopen(o.sinks[i])
		outputs = append(outputs, s.outputs[at])
	}
	for _, x := range s.outputs {
		if !slices.Contains(outputs, x) {
			x.leave()
		}
	}
	s.outputs = outputs
	s.keep(o)
	s.metrics.LookBack(s.keeper != nil)
	s.serve(o)
}

func (s *Set) keep(o *Opened) {
	c := o.cfg.Store
	switch {
	case s.keeper != nil && c != nil && o.store == nil:
		s.keeper.store.Limit(c.MaxAge, c.MaxBytes)
		s.keeper.whole.Store(c.Snapshots)
		return
	case s.keeper != nil:
		s.keeper.sub.Finish()
		if err := s.keeper.close(); err != nil {
			s.opts.Log.Error("close store failed", "error", err)
		}
		s.keeper = nil
	}
	if c != nil {
		s.keeper = newKeeper(*c, o.store, s)
	}
}

func (s *Set) serve(o *Opened) {
	if o.server != nil || o.cfg.Listen == "" {
		if s.servers.http != nil {
			_ = s.servers.http.Close()
		}
		s.servers.http, s.servers.listen, s.servers.web = o.server, o.cfg.Listen, o.cfg.Web
		if o.server != nil {
			s.opts.Log.Info("listening for metrics, page and health", "address", o.server.Address())
		}
	}
	if o.socket != nil {
		_ = s.servers.socket.close()
		s.servers.socket = o.socket
	}
}

// Close closes all outputs, after writing what was published before.
func (s *Set) Close() error {
	s.hub.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, o := range s.outputs {
		errs = append(errs, o.close())
	}
	s.alerts.wait()
	if s.keeper != nil {
		errs = append(errs, s.keeper.close())
	}
	return errors.Join(append(errs, s.servers.close()...)...)
}

// LogWriter passes messages of libraries to the log.
type LogWriter struct{ Log *slog.Logger }

// Write logs one message.
func (w LogWriter) Write(b []byte) (int, error) {
	w.Log.Warn(string(b))
	return len(b), nil
}
