package outlet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
)

// alerter reports findings to others over HTTP: each receiver has a goroutine and a queue of its own, so that one that does not answer delays nobody.
type alerter struct {
	cfg       settings.Alerts
	receivers []*receiver
}

// receiver is one of them. Its fields are of run's goroutine alone.
type receiver struct {
	name   string // for the log: a URL may hold a secret
	url    string
	sub    *feed.Subscription
	log    *slog.Logger
	client http.Client
	done   chan struct{}

	// message makes what is posted next, nil when there is nothing; delivered is told that it arrived, or that the receiver will never take it.
	message   func(now time.Time) any
	delivered func()
	add       func(finding.Finding) // one began or ended
	every     time.Duration         // message is asked this often without a change, too; 0: never

	failed bool
	pause  time.Duration
}

// Times of alerts.
const (
	alertTimeout = 5 * time.Second
	// alertAgain is how often an Alertmanager is told of what goes on: it takes an alert that is not repeated for over.
	alertAgain = time.Minute
	// alertLasts is when an alert is over that is not repeated, as after the end of this process: three repetitions may be lost.
	alertLasts = 4 * time.Minute
	// Pauses before another attempt.
	firstAttempt = time.Second
	lastAttempt  = 30 * time.Second
	// mostWaiting bounds findings that wait for a receiver: the oldest go.
	mostWaiting = 1024
)

// alert begins to report findings, or ends it.
func (s *Set) alert(cfg settings.Alerts) {
	switch {
	case s.alerts != nil && s.alerts.cfg == cfg:
		return
	case s.alerts != nil:
		for _, r := range s.alerts.receivers {
			r.sub.Finish()
		}
		s.alerts = nil
	}
	if cfg == (settings.Alerts{}) {
		return
	}
	s.alerts = &alerter{cfg: cfg}
	if cfg.Alertmanager != "" {
		s.alerts.receivers = append(s.alerts.receivers, s.alertmanager(cfg.Alertmanager))
	}
	if cfg.Webhook != "" {
		s.alerts.receivers = append(s.alerts.receivers, s.webhook(cfg.Webhook))
	}
	for _, r := range s.alerts.receivers {
		go r.run()
	}
}

func (s *Set) receiver(what, address string) *receiver {
	r := &receiver{name: what, url: address, log: s.opts.Log, client: http.Client{Timeout: alertTimeout}, done: make(chan struct{}),
		sub: s.hub.Subscribe(feed.Options{Name: what, Depth: 4096})}
	if u, err := url.Parse(address); err == nil {
		r.name = what + " " + u.Host
	}
	return r
}

// alertForm is a postable alert of Alertmanager's API, version 2.
type alertForm struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// alertmanager posts all findings that go on, and those that are over until it has taken that once.
func (s *Set) alertmanager(base string) *receiver {
	r := s.receiver("alertmanager", strings.TrimSuffix(base, "/")+"/api/v2/alerts")
	var ended []finding.Finding
	r.every = alertAgain
	r.add = func(f finding.Finding) {
		if f.State == finding.Ends {
			ended = append(ended, f)
			ended = ended[max(0, len(ended)-mostWaiting):]
		}
	}
	r.message = func(now time.Time) any {
		var list []alertForm
		for _, f := range ended {
			list = append(list, alertOf(f, time.Unix(0, f.Until)))
		}
		for _, f := range s.Open() {
			list = append(list, alertOf(f, now.Add(alertLasts)))
		}
		if len(list) == 0 {
			return nil
		}
		return list
	}
	r.delivered = func() { ended = nil }
	return r
}

// alertOf has the same labels from begin to end.
func alertOf(f finding.Finding, ends time.Time) alertForm {
	return alertForm{StartsAt: time.Unix(0, f.Since).UTC(), EndsAt: ends.UTC(),
		Labels:      map[string]string{"alertname": "xdpmon_" + string(f.Kind), "kind": string(f.Kind), "severity": f.Severity.String(), "subject": f.Subject.Name, "interface": f.Interface},
		Annotations: map[string]string{"summary": f.Headline(), "description": f.Sentence()}}
}

// webhook posts each finding when it begins and when it ends, in order.
func (s *Set) webhook(address string) *receiver {
	r := s.receiver("webhook", address)
	var waiting []finding.Finding
	r.add = func(f finding.Finding) {
		waiting = append(waiting, f)
		if extra := len(waiting) - mostWaiting; extra > 0 {
			waiting = waiting[extra:]
			r.log.Warn("findings dropped: the receiver takes none", "receiver", r.name, "dropped", extra)
		}
	}
	r.message = func(time.Time) any {
		if len(waiting) == 0 {
			return nil
		}
		return map[string]any{"finding": waiting[0]}
	}
	r.delivered = func() { waiting = waiting[1:] }
	return r
}

// run posts until the feed ends; then it tries once more what is left.
func (r *receiver) run() {
	defer close(r.done)
	next := time.Now() // what goes on already is reported at once
	for {
		e, err := r.wait(next)
		switch {
		case errors.Is(err, feed.ErrClosed):
			for r.send(time.Now()) && r.message(time.Now()) != nil && r.every == 0 {
			}
			return
		case err != nil:
			next = r.attempt(time.Now())
		case e.Finding != nil:
			if f, ok := e.Finding.Object.(finding.Finding); ok {
				r.add(f)
				if r.pause == 0 { // else the attempt that is due has it
					next = time.Now() // once everything that came with it is taken
				}
			}
		}
	}
}

// wait for an event, or until a time; zero is never.
func (r *receiver) wait(next time.Time) (feed.Event, error) {
	ctx, cancel := context.Background(), func() {}
	if !next.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, next)
	}
	defer cancel()
	e, _, err := r.sub.Next(ctx)
	return e, err
}

// attempt posts what there is, and says when to try next.
func (r *receiver) attempt(now time.Time) time.Time {
	for r.message(now) != nil {
		if !r.send(now) {
			r.pause = min(max(firstAttempt, 2*r.pause), lastAttempt)
			return time.Now().Add(r.pause)
		}
		r.pause = 0
		if r.every > 0 {
			break
		}
	}
	if r.every == 0 {
		return time.Time{}
	}
	return time.Now().Add(r.every)
}

// send posts one message; false when it should be tried again. Failures are logged when they begin and when they end.
func (r *receiver) send(now time.Time) bool {
	m := r.message(now)
	if m == nil {
		return true
	}
	again, err := r.post(m)
	if err != nil && !r.failed {
		r.log.Error("findings are not delivered", "receiver", r.name, "error", err, "retried", again)
	} else if err == nil && r.failed {
		r.log.Info("findings are delivered again", "receiver", r.name)
	}
	r.failed = err != nil
	if !again {
		r.delivered()
	}
	return !again
}

// post sends JSON. What the receiver refuses as wrong (4xx) is not sent again, unless it asks for that (408, 429).
func (r *receiver) post(value any) (again bool, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return false, fmt.Errorf("encode findings: %w", err)
	}
	answer, err := r.client.Post(r.url, "application/json", bytes.NewReader(text))
	if err != nil {
		var of *url.Error // holds the whole URL
		if errors.As(err, &of) {
			err = of.Err
		}
		return true, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
	if answer.StatusCode/100 == 2 {
		return false, nil
	}
	wrong := answer.StatusCode/100 == 4 && answer.StatusCode != http.StatusRequestTimeout && answer.StatusCode != http.StatusTooManyRequests
	return !wrong, fmt.Errorf("the receiver answers %s", answer.Status)
}

// wait until what was found is delivered, for a while.
func (a *alerter) wait() {
	if a == nil {
		return
	}
	late := time.After(endPatience)
	for _, r := range a.receivers {
		select {
		case <-r.done:
		case <-late:
			r.log.Warn("the last findings are not delivered", "receiver", r.name)
			return
		}
	}
}
