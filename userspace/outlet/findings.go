package outlet

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// diagnose examines a published window, and publishes each finding that starts or ends with it: to outputs, store, metrics and log.
func (s *Set) diagnose(ctx context.Context, l report.Line) {
	s.engine.SetClock(s.opts.Clock())
	changed := s.engine.Line(l)
	if len(changed) == 0 {
		return
	}
	known := s.names.Load()
	open := known.Findings(s.engine.Open())
	if s.opts.Diagnosed != nil {
		s.opts.Diagnosed(open)
		return
	}
	s.put(ctx, known.Findings(changed), open)
}

// put publishes findings that start or end; open are the active ones.
func (s *Set) put(ctx context.Context, changed, open []finding.Finding) {
	s.finds.Lock()
	s.found = open
	s.finds.Unlock()
	for _, f := range changed {
		s.logFinding(f)
		shown := f.Output()
		s.api.Found(f)
		s.hub.Publish(ctx, feed.Event{Finding: &shown})
	}
	s.metrics.Findings(open)
}

// Open are the active findings, the most severe first.
func (s *Set) Open() []finding.Finding {
	s.finds.Lock()
	defer s.finds.Unlock()
	return s.found
}

// current are the active findings with their latest values.
func (s *Set) current() []finding.Finding {
	if s.opts.Diagnosed == nil {
		return s.names.Load().Findings(s.engine.Open())
	}
	return s.Open()
}

// Subjects are the networks and hosts that the latest windows could judge.
func (s *Set) Subjects() []string { return s.engine.Subjects() }

// Found replaces the active findings: one with a new key starts, a missing one ends now. It must not be called concurrently.
func (s *Set) Found(ctx context.Context, open []finding.Finding, now time.Time) {
	before := map[string]finding.Finding{}
	for _, f := range s.Open() {
		before[f.Key()] = f
	}
	var changed []finding.Finding
	for i := range open {
		if _, goes := before[open[i].Key()]; !goes {
			begins := open[i]
			begins.State = finding.Begins
			changed = append(changed, begins)
		}
		delete(before, open[i].Key())
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		f := before[key]
		f.State, f.Until = finding.Ends, cmp.Or(f.Seen, now.UnixNano())
		changed = append(changed, f)
	}
	s.put(ctx, changed, open)
}

// ForgetFindings forgets those given to Found without publishing their end: another process publishes them from now on.
func (s *Set) ForgetFindings() {
	s.finds.Lock()
	s.found = nil
	s.finds.Unlock()
	s.metrics.Findings(nil)
}

// parsed parses promises that the configuration has checked.
func parsed(texts []string) (list []finding.Promise) {
	for _, text := range texts {
		if p, err := finding.ParsePromise(text); err == nil {
			list = append(list, p)
		}
	}
	return list
}

var levels = map[finding.Severity]slog.Level{finding.Info: slog.LevelInfo, finding.Warning: slog.LevelWarn, finding.Critical: slog.LevelError}

func (s *Set) logFinding(f finding.Finding) {
	level, what := levels[f.Severity], "finding begins"
	if f.State == finding.Ends {
		level, what = slog.LevelInfo, "finding ends"
	}
	s.opts.Log.Log(context.Background(), level, what, "kind", string(f.Kind), "subject", f.Subject.Name, "interface", f.Interface, "severity", f.Severity.String(), "text", f.Sentence())
}

// finding appends the record of a finding that started or ended.
func (k *keeper) finding(list []store.Record, shown report.Finding) []store.Record {
	var b bytes.Buffer
	if err := report.NewJSON(&b, io.Discard).Finding(shown); err != nil {
		k.log.Error("store finding failed", "error", err)
		return list
	}
	r := store.Record{End: time.Now(), Algorithm: api.FindingRecords, Line: bytes.TrimSpace(b.Bytes())}
	if f, ok := shown.Object.(finding.Finding); ok {
		r.Key = f.Interface
		if f.Interface != "" {
			r.Interfaces = []string{f.Interface}
		}
	}
	return append(list, r)
}
