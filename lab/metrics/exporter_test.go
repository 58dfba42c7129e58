package metrics

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/storage"

	"github.com/xdpmon/xdpmon/lab/metrics/prometheus"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// exporter is what an agent serves, filled by replays; time is the packets', moved so that it ends a moment ago.
type exporter struct {
	t      *testing.T
	server *prometheus.Server
	name   string // of the target
	store  *prom.Store
	serve  http.Handler
	engine *diagnose.Engine
}

func newExporter(t *testing.T, server *prometheus.Server, name string) *exporter {
	t.Helper()
	e := &exporter{t: t, server: server, name: name, store: prom.NewStore(time.Now), engine: diagnose.New()}
	e.store.Start(report.Run{Version: "test", Command: "replay", Kernel: "none"})
	e.store.Findings(nil)
	e.serve = prom.Handler(e.store, log.New(io.Discard, "", 0))
	return e
}

// replayed is traffic of one instance.
type replayed struct {
	identity   report.Identity
	algorithms []string
	set        map[string]map[string]string // parameters, by algorithm
	window     time.Duration
	source     capture.Source
}

// replay runs packets through the programs, and has each round of windows scraped when it closes. The first window begins at from.
func (e *exporter) replay(r replayed, from time.Time) (end time.Time) {
	e.t.Helper()
	cfg := session.Config{Window: r.window, Seed: 1, Notice: func(string, ...any) {}}
	for _, name := range r.algorithms {
		d, err := algo.Lookup(name)
		if err != nil {
			e.t.Fatal(err)
		}
		values, err := algo.NewValues(name, d.Params, r.set[name])
		if err != nil {
			e.t.Fatal(err)
		}
		cfg.Algorithms = append(cfg.Algorithms, session.Selected{Descriptor: d, Values: values})
	}
	var shift int64
	last := r.algorithms[len(r.algorithms)-1]
	cfg.Emit = func(l report.Line) error {
		if shift == 0 {
			shift = from.UnixNano() - l.Window.Start
		}
		l.Identity = r.identity
		l.Window.Start, l.Window.End = l.Window.Start+shift, l.Window.End+shift
		e.store.Add(l)
		e.engine.Line(l)
		e.store.Findings(e.engine.Open())
		if end = time.Unix(0, l.Window.End); l.Algorithm != last {
			return nil
		}
		return e.scrape(end)
	}
	if err := session.ReplaySource(context.Background(), cfg, "capture", r.source, nil); err != nil && !errors.Is(err, session.ErrNoPackets) {
		e.t.Fatal(err)
	}
	return end
}

// scrape puts what is served into the storage, as of a time, by Prometheus' own parser: both forms of a histogram, as with always_scrape_classic_histograms.
func (e *exporter) scrape(at time.Time) error {
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	answer := httptest.NewRecorder()
	e.serve.ServeHTTP(answer, request)
	p, err := textparse.New(answer.Body.Bytes(), answer.Header().Get("Content-Type"), nil, textparse.ParserOptions{KeepClassicOnClassicAndNativeHistograms: true})
	if err != nil {
		return err
	}
	app := e.server.Storage().Appender(context.Background())
	if err := e.append(app, p, at.UnixMilli()); err != nil {
		return errors.Join(err, app.Rollback())
	}
	if _, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, "up", "job", "xdpmon", "instance", e.name), at.UnixMilli(), 1); err != nil {
		return errors.Join(err, app.Rollback())
	}
	return app.Commit()
}

func (e *exporter) append(app storage.Appender, p textparse.Parser, at int64) error {
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch entry {
		case textparse.EntrySeries:
			_, _, value := p.Series()
			_, err = app.Append(0, e.target(p), at, value)
		case textparse.EntryHistogram:
			_, _, h, f := p.Histogram()
			_, err = app.AppendHistogram(0, e.target(p), at, h, f)
		}
		if err != nil {
			return err
		}
	}
}

// target gives a series the labels of its target; what it has of these names itself is renamed, as by a scrape.
func (e *exporter) target(p textparse.Parser) labels.Labels {
	var l labels.Labels
	p.Labels(&l)
	b := labels.NewBuilder(l)
	for name, value := range map[string]string{"job": "xdpmon", "instance": e.name} {
		if own := l.Get(name); own != "" {
			b.Set("exported_"+name, own)
		}
		b.Set(name, value)
	}
	return b.Labels()
}
