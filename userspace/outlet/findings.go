package outlet

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// diagnose looks at a window that was published, and publishes what begins or ends with it: to outputs, store, metrics and the log.
func (s *Set) diagnose(ctx context.Context, l report.Line) {
	s.engine.SetClock(s.opts.Clock())
	changed := s.engine.Line(l)
	if len(changed) == 0 {
		return
	}
	for _, f := range changed {
		s.logFinding(f)
		said := f.Said()
		s.api.Found(f)
		s.hub.Publish(ctx, feed.Event{Finding: &said})
	}
	s.metrics.Findings(s.engine.Open())
}

// parsed are promises that a configuration has checked.
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

// finding is a record of one that began or ended.
func (k *keeper) finding(list []store.Record, said report.Said) []store.Record {
	var b bytes.Buffer
	if err := report.NewJSON(&b, io.Discard).Finding(said); err != nil {
		k.log.Error("store finding failed", "error", err)
		return list
	}
	r := store.Record{End: time.Now(), Algorithm: api.FindingRecords, Line: bytes.TrimSpace(b.Bytes())}
	if f, ok := said.Object.(finding.Finding); ok {
		r.Key = f.Interface
		if f.Interface != "" {
			r.Interfaces = []string{f.Interface}
		}
	}
	return append(list, r)
}
