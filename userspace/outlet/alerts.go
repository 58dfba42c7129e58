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

// alerter sends findings to receivers over HTTP. Each receiver has its own goroutine and queue, so that one that does not answer delays no other.
type alerter struct {
	cfg       settings.Alerts
	receivers []*receiver
}

// receiver is one of them. Only run's goroutine accesses its fields.
type receiver struct {
	name   string // for the log: a URL may hold a secret
	url    string
	sub    *feed.Subscription
	log    *slog.Logger
	client http.Client
	done   chan struct{}

	// message returns what is posted next, nil if there is nothing; delivered is called once it has arrived, or is never to be sent again.
	message   func(now time.Time) any
	delivered func()
	add       func(finding.Finding) // called for a finding that has started or ended
	every     time.Duration         // interval at which message is called without a change; 0: never

	failed bool
	pause  time.Duration
}

// Intervals of alerts.
const (
	alertTimeout = 5 * time.Second
	// alertAgain is the interval at which active alerts are repeated: Alertmanager resolves an alert that is not.
	alertAgain = time.Minute
	// alertLasts is how long an alert stays active without a repetition, for example after this process exits: three repetitions may be lost.
	alertLasts = 4 * time.Minute
	// Delays between attempts.
	firstAttempt = time.Second
	lastAttempt  = 30 * time.Second
	// mostWaiting bounds the findings queued for a receiver: the oldest are dropped.
	mostWaiting = 1024
)

// alert starts, changes or stops the receivers.
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

// alertForm is a postable alert of version 2 of Alertmanager's API.
type alertForm struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// alertmanager posts all active findings, and each that has ended until Alertmanager has accepted it once.
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

// alertOf returns the same labels from the start to the end of a finding.
func alertOf(f finding.Finding, ends time.Time) alertForm {
	return alertForm{StartsAt: time.Unix(0, f.Since).UTC(), EndsAt: ends.UTC(),
		Labels:      map[string]string{"alertname": "xdpmon_" + string(f.Kind), "kind": string(f.Kind), "severity": f.Severity.String(), "subject": f.Subject.Name, "interface": f.Interface},
		Annotations: map[string]string{"summary": f.Headline(), "description": f.Sentence()}}
}

// webhook posts each finding when it starts and when it ends, in order.
func (s *Set) webhook(address string) *receiver {
	r := s.receiver("webhook", address)
	var waiting []finding.Finding
	r.add = func(f finding.Finding) {
		waiting = append(waiting, f)
		if extra := len(waiting) - mostWaiting; extra > 0 {
			waiting = waiting[extra:]
			r.log.Warn("receiver does not accept findings, oldest dropped", "receiver", r.name, "dropped", extra)
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

// run posts until the feed ends, then makes one last attempt with what is queued.
func (r *receiver) run() {
	defer close(r.done)
	next := time.Now() // findings that are active already are reported at once
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
				if r.pause == 0 { // otherwise the next attempt includes it
					next = time.Now() // after everything that arrived together is queued
				}
			}
		}
	}
}

// wait waits for an event or until a time; the zero time is never.
func (r *receiver) wait(next time.Time) (feed.Event, error) {
	ctx, cancel := context.Background(), func() {}
	if !next.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, next)
	}
	defer cancel()
	e, _, err := r.sub.Next(ctx)
	return e, err
}

// attempt posts what is queued and returns the time of the next attempt.
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

// send posts one message; false if it is to be retried. Only the first of consecutive failures is logged, and the first success after it.
func (r *receiver) send(now time.Time) bool {
	m := r.message(now)
	if m == nil {
		return true
	}
	again, err := r.post(m)
	if err != nil && !r.failed {
		r.log.Error("cannot deliver findings, retrying", "receiver", r.name, "error", err, "retried", again)
	} else if err == nil && r.failed {
		r.log.Info("findings delivered again", "receiver", r.name)
	}
	r.failed = err != nil
	if !again {
		r.delivered()
	}
	return !again
}

// post sends JSON. A message that is rejected as invalid (4xx) is not retried, unless the status asks for it (408, 429).
func (r *receiver) post(value any) (again bool, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return false, fmt.Errorf("encode findings: %w", err)
	}
	answer, err := r.client.Post(r.url, "application/json", bytes.NewReader(text))
	if err != nil {
		var of *url.Error // contains the whole URL
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
	return !wrong, fmt.Errorf("receiver replied %s", answer.Status)
}

// wait waits until queued findings are delivered, with a time limit.
func (a *alerter) wait() {
	if a == nil {
		return
	}
	late := time.After(endPatience)
	for _, r := range a.receivers {
		select {
		case <-r.done:
		case <-late:
			r.log.Warn("last findings not delivered", "receiver", r.name)
			return
		}
	}
}
