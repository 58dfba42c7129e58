package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// measurement is one run from its start to its last window: it draws, serves metrics, and ends on a signal.
type measurement struct {
	env    *environment
	sink   report.Sink
	store  *prom.Store
	server *prom.Server

	mu      sync.Mutex
	run     report.Run
	started bool
	cancel  func() // ends the run
	failed  error  // what made the run end, when it was not the engine
	before  func() // called before anything is drawn: clears the progress line
	leaves  string // what is left behind when the process ends at once
}

// measureOptions are the flags of verbs that measure.
type measureOptions struct {
	output *enum
	listen string
}

func addMeasure(cmd *cobra.Command) *measureOptions {
	o := &measureOptions{output: addOutput(cmd)}
	cmd.Flags().StringVar(&o.listen, "listen", "", "serve Prometheus metrics on `ADDRESS`; a port alone (:9400) is this host only")
	return o
}

// newMeasurement checks the privilege and opens what the run draws to. The listener comes first: it may need privileges that are dropped later,
// and a port that is taken is known before anything is attached.
func newMeasurement(env *environment, o *measureOptions, run report.Run, live bool) (*measurement, error) {
	if err := env.engine.privilege(); err != nil {
		return nil, fmt.Errorf("%s: %w", run.Command, err)
	}
	m := &measurement{env: env, run: run, store: prom.NewStore(env.now), before: func() {}}
	m.sink = env.sink(o.output.value, live)
	if o.listen == "" {
		return m, nil
	}
	address, loopback, err := prom.Address(o.listen)
	if err != nil {
		return nil, &usage{fmt.Errorf("--%w", err)}
	}
	if m.server, err = prom.Listen(address, m.store, log.New(noticeWriter{m}, "", 0)); err != nil {
		return nil, err
	}
	m.notice("metrics are at http://%s/metrics", m.server.Address())
	if loopback {
		m.notice("only this host can read them; --listen 0.0.0.0:PORT lets everybody")
	}
	return m, nil
}

// start shows what is running, once; change may fill in what only became known when it was attached.
func (m *measurement) start(change func(*report.Run)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started {
		return nil
	}
	m.started = true
	if change != nil {
		change(&m.run)
	}
	m.store.Start(m.run)
	m.before()
	return m.sink.Start(m.run)
}

// emit takes a finished window.
func (m *measurement) emit(l report.Line) error {
	m.store.Add(l)
	return m.draw(l)
}

// draw shows a line that is no window of its own, and adds to no metric.
func (m *measurement) draw(l report.Line) error {
	if err := m.start(nil); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before()
	return m.sink.Line(l)
}

// notice tells the operator something.
func (m *measurement) notice(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before()
	m.sink.Notice(fmt.Sprintf(format, args...))
}

// measure runs until fn returns; its context ends with the first signal, and the second one ends the process.
func (m *measurement) measure(fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m.cancel = cancel
	stop := m.watchSignals(cancel)
	err := fn(ctx)
	stop()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // the operator ended it
	}
	return errors.Join(m.failed, err, m.close())
}

// fail ends the run because of an error that the engine does not see.
func (m *measurement) fail(err error) {
	if err != nil && m.failed == nil {
		m.failed = err
		m.cancel()
	}
}

func (m *measurement) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before()
	err := m.sink.Close()
	if m.server != nil {
		err = errors.Join(err, m.server.Close())
	}
	return err
}

func (m *measurement) watchSignals(cancel func()) (stop func()) {
	signals, unsubscribe := m.env.signals()
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		cancel()
		select {
		case <-signals:
			m.abandon()
		case <-done:
		}
	}()
	return func() { close(done); unsubscribe() }
}

// abandon leaves at once, with the terminal as it was found.
func (m *measurement) abandon() {
	if s, ok := m.sink.(*report.Screen); ok {
		s.Restore()
	}
	fmt.Fprintln(m.env.stderr, "xdpmon: ended by a second signal; the last window is lost"+m.leaves)
	m.env.exit(exitFailed)
}

// noticeWriter carries the metrics server's complaints to the operator.
type noticeWriter struct{ m *measurement }

func (w noticeWriter) Write(b []byte) (int, error) {
	w.m.notice("%s", string(b))
	return len(b), nil
}
