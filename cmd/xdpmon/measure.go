package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/naming"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/topverb"
	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/names"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/draw"
	"github.com/xdpmon/xdpmon/userspace/web"
)

// measurement is one run from its start to its last window: it shows windows, serves metrics, and ends on a signal.
type measurement struct {
	env    *environment
	hub    feed.Hub
	sink   report.Sink
	drawer *draw.Drawer
	store  *prom.Store
	api    *api.API // nil: not served
	server *prom.Server

	findings  *diagnose.Engine // nil in a replay: xdpmon check reads captures
	snapshots *snapshotWriter  // nil: not requested
	names     *names.Names
	listener  *names.Listener // nil: nothing is learned from live traffic

	mu      sync.Mutex
	run     report.Run
	started bool
	ctx     context.Context // of the run: its end releases writers that wait for a reader
	cancel  func()          // ends the run
	failed  error           // what made the run end, when it was not the engine
}

// measureOptions are the flags of verbs that measure.
type measureOptions struct {
	output     *cli.Enum[string]
	listen     string
	rows       bool // metrics of rows that are named by traffic
	quality    bool // metrics of the measuring itself
	histograms *cli.Enum[prom.Histograms]
	series     int // that are served at most
	cdf        bool
	details    bool
	full       bool // a full screen may be used
	names      *naming.Options
}

func addMeasure(cmd *cobra.Command) *measureOptions {
	o := &measureOptions{output: addOutput(cmd), names: naming.Add(cmd, "services")}
	cmd.Flags().StringVar(&o.listen, "listen", "", "serve Prometheus metrics on `ADDRESS`; a port alone (:9400) is this host only")
	o.histograms = cli.AddEnum(cmd, "metrics-histograms", prom.BothHistograms, "form of histograms: classic (a series a bucket), native (one series, for Prometheus that scrapes protobuf) or both", prom.HistogramForms...)
	cmd.Flags().IntVar(&o.series, "metrics-limit", prom.DefaultLimit, "series `N` that are served at most; rows of tables are left out first")
	cmd.Flags().BoolVar(&o.rows, "metrics-rows", false, "serve metrics of flows, addresses and prefixes, too: every one becomes a series, with personal data in its labels")
	cmd.Flags().BoolVar(&o.quality, "metrics-details", false, "serve metrics of the measurement itself, too: sizes, settings, ratios of counters, kernel memory, percentiles of further distributions")
	cmd.Flags().BoolVar(&o.details, "details", false, "tables have every counter of every algorithm, not findings and answers alone")
	cmd.Flags().BoolVar(&o.cdf, "cdf", false, "write the steps of every distribution into JSON lines, too: often more than all the rest")
	return o
}

// newMeasurement checks the privilege and opens the run's outputs. The listener is opened first: it may need privileges that are dropped later,
// and a port that is in use is reported before anything is attached.
func newMeasurement(env *environment, o *measureOptions, run report.Run, live bool) (*measurement, error) {
	if err := env.engine.privilege(); err != nil {
		return nil, fmt.Errorf("%s: %w", run.Command, err)
	}
	if o.series < 1 {
		return nil, cli.UsageError("--metrics-limit %d: give a positive number", o.series)
	}
	m := &measurement{env: env, run: run, store: prom.NewStore(env.now), ctx: context.Background(), cancel: func() {}}
	if o.rows {
		m.store.Rows()
	}
	m.store.Details(o.quality)
	m.store.ServeHistograms(o.histograms.Value)
	m.store.Limit(o.series, func(dropped int) {
		m.notice("metrics: %d series more than --metrics-limit %d allows are not served", dropped, o.series)
	})
	var err error
	if m.names, m.listener, err = o.names.Open(live, m.notice); err != nil {
		return nil, err
	}
	if live {
		m.findings = diagnose.New()
		m.findings.SetClock(run.Clock)
		m.store.Findings(nil)
		m.store.Live()
	}
	if o.full = o.full && o.output.Value == "auto" && topverb.Full(env.forTop()); o.full || o.listen != "" {
		m.api = api.New(api.Options{Hub: &m.hub, Now: env.now, Health: m.store.Health, Findings: m.goOn})
	}
	if o.listen == "" {
		m.open(o, live)
		return m, nil
	}
	address, loopback, err := prom.Address(o.listen)
	if err != nil {
		return nil, cli.AsUsage(fmt.Errorf("--%w", err))
	}
	errorLog := log.New(noticeWriter{m}, "", 0)
	front := m.api.Front(api.GuardOf(address), web.Front(prom.Handler(m.store, errorLog)))
	if m.server, err = prom.Serve(address, front, errorLog); err != nil {
		return nil, err
	}
	m.open(o, live)
	m.notice("metrics are at http://%s/metrics", m.server.Address())
	m.notice("the page is at http://%s/", m.server.Address())
	if loopback {
		m.notice("only this host can read them; --listen 0.0.0.0:PORT lets every host")
	}
	return m, nil
}

// open starts the outputs. Live, a reader that is too slow loses windows, which a notice reports; a replay waits for the reader.
func (m *measurement) open(o *measureOptions, live bool) {
	style := m.env.style()
	style.Brief, style.Findings = !o.details, live
	if m.sink = m.env.sink(o.output.Value, live, style); o.full {
		m.sink = topverb.Sink(m.env.forTop(), style, m.env.size, m.api.Handler(), m.end)
	}
	if j, ok := m.sink.(*report.JSON); ok && o.cdf {
		j.CDF()
	}
	m.drawer = draw.New(m.sink, m.hub.Subscribe(feed.Options{Name: "output", Wait: !live}), m.fail)
}

// start announces the run, once; change may add details that are known only after attaching.
func (m *measurement) start(change func(*report.Run)) {
	m.mu.Lock()
	if m.started {
		m.mu.Unlock()
		return
	}
	m.started = true
	if change != nil {
		change(&m.run)
	}
	run := m.run
	m.mu.Unlock()
	m.store.Start(run)
	m.api.Start(run)
	m.hub.Publish(m.ending(), feed.Event{Run: &run})
}

// measuring reports whether start has been called.
func (m *measurement) measuring() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started
}

// emit takes a finished window.
func (m *measurement) emit(l report.Line) error {
	shown := l
	shown.Snapshot = nil
	shown = m.names.Line(shown)
	l.Report = shown.Report
	m.store.Add(shown)
	m.api.Add(shown)
	m.start(nil)
	if m.findings != nil {
		m.diagnose(shown) // first, so that a table has the findings before their windows
	}
	return m.draw(l)
}

// diagnose shows the findings that begin or end with a window.
func (m *measurement) diagnose(l report.Line) {
	for _, f := range m.names.Findings(m.findings.Line(l)) {
		event := f.Output()
		m.api.Found(f)
		m.hub.Publish(m.ending(), feed.Event{Finding: &event})
	}
	m.store.Findings(m.findings.Open())
}

// goOn are the findings that continue.
func (m *measurement) goOn() []finding.Finding { return m.names.Findings(m.findings.Open()) }

// draw shows a line that is not a window and counts in no metric. Its error is that of an earlier line.
func (m *measurement) draw(l report.Line) error {
	m.start(nil)
	m.hub.Publish(m.ending(), feed.Event{Line: &l})
	return m.failure()
}

// notice prints a message for the operator.
func (m *measurement) notice(format string, args ...any) {
	m.hub.Publish(m.ending(), feed.Event{Notice: fmt.Sprintf(format, args...)})
}

// measure runs until fn returns; its context ends with the first signal, and one that arrives later than signalGrace ends
// the process.
func (m *measurement) measure(fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m.begin(ctx, cancel)
	stop := m.watchSignals(cancel)
	err := fn(ctx)
	stop()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = m.ended()
	}
	err = errors.Join(err, m.close())
	if failed := m.failure(); failed != nil && !errors.Is(err, failed) {
		return errors.Join(failed, err)
	}
	return err
}

// begin makes the run cancellable, and ends it when its output has no reader any more.
func (m *measurement) begin(ctx context.Context, cancel func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ctx, m.cancel = ctx, cancel
	if m.failed != nil {
		cancel()
	}
}

func (m *measurement) ending() context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ctx
}

// failure is what ended the run, when it was not the engine.
func (m *measurement) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}

// ended is the error of a run that the operator ended: nil, unless it has no results.
func (m *measurement) ended() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started || m.failed != nil {
		return nil
	}
	return errors.New("ended by a signal before anything was attached or measured")
}

// fail ends the run because of an error that the engine does not see.
func (m *measurement) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && m.failed == nil {
		m.failed = err
		m.cancel()
	}
}

// end ends the run as a signal does, or because of an error.
func (m *measurement) end(err error) {
	m.fail(err)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancel()
}

func (m *measurement) close() error {
	m.hub.Close()
	err := m.drawer.Close(m.env.after)
	if m.snapshots != nil {
		err = errors.Join(err, m.snapshots.close(m.env.after))
	}
	if m.server != nil {
		err = errors.Join(err, m.server.Close())
	}
	m.listener.Close()
	m.names.Close()
	return err
}

// signalGrace is the time after a signal in which further ones count as the same request: timeout(1) sends two, a shell and
// a service manager may each send one, and a person may press Ctrl-C twice.
const signalGrace = time.Second

func (m *measurement) watchSignals(cancel func()) (stop func()) {
	signals, unsubscribe := m.env.signals()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-signals:
		case <-done:
			return
		}
		cancel()
		select {
		case <-m.env.after(signalGrace):
			drain(signals)
		case <-done:
			return
		}
		select {
		case <-signals:
			m.abandon()
		case <-done:
		}
	}()
	return func() { close(done); <-ended; unsubscribe() }
}

// drain takes what has arrived.
func drain(signals <-chan os.Signal) {
	for {
		select {
		case <-signals:
		default:
			return
		}
	}
}

// abandon exits at once, after restoring the terminal.
func (m *measurement) abandon() {
	if s, ok := m.sink.(interface{ Restore() }); ok {
		s.Restore()
	}
	fmt.Fprintln(m.env.stderr, "xdpmon: ended by a second signal; the last window is lost")
	m.env.exit(cli.ExitFailed)
}

// noticeWriter passes the metrics server's errors to the operator.
type noticeWriter struct{ m *measurement }

func (w noticeWriter) Write(b []byte) (int, error) {
	w.m.notice("%s", string(b))
	return len(b), nil
}
