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
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
)

// alerter tells others of findings over HTTP. It has a goroutine of its own: who does not answer delays nobody.
type alerter struct {
	cfg    settings.Alerts
	sub    *feed.Subscription
	log    *slog.Logger
	open   func() []finding.Finding
	client http.Client
	done   chan struct{}
	failed bool
}

// Times of alerts: how long a receiver may take, and how often what goes on is told again, since an Alertmanager takes an alert that is not repeated
// for over (resolve_timeout is five minutes by default).
const (
	alertTimeout = 5 * time.Second
	alertAgain   = time.Minute
)

// alert begins to tell, or ends it.
func (s *Set) alert(cfg settings.Alerts) {
	switch {
	case s.alerts != nil && s.alerts.cfg == cfg:
		return
	case s.alerts != nil:
		s.alerts.sub.Finish()
		s.alerts = nil
	}
	if cfg == (settings.Alerts{}) {
		return
	}
	a := &alerter{cfg: cfg, log: s.opts.Log, open: s.Open, client: http.Client{Timeout: alertTimeout}, done: make(chan struct{}),
		sub: s.hub.Subscribe(feed.Options{Name: "alerts", Depth: 4096})}
	s.alerts = a
	go a.run()
}

func (a *alerter) run() {
	defer close(a.done)
	for again := time.Now().Add(alertAgain); ; {
		ctx, cancel := context.WithDeadline(context.Background(), again)
		e, _, err := a.sub.Next(ctx)
		cancel()
		switch {
		case errors.Is(err, feed.ErrClosed):
			return
		case err != nil:
			again = time.Now().Add(alertAgain)
			a.manager(a.open())
		case e.Finding != nil:
			if f, ok := e.Finding.Object.(finding.Finding); ok {
				a.manager([]finding.Finding{f})
				a.hook(f)
			}
		}
	}
}

// wait until what was found is told, for a while.
func (a *alerter) wait() {
	if a == nil {
		return
	}
	select {
	case <-a.done:
	case <-time.After(endPatience):
	}
}

// alertForm is a postable alert of Alertmanager's API, version 2.
type alertForm struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      *time.Time        `json:"endsAt,omitempty"`
}

// manager posts findings as alerts: labels are the same from begin to end.
func (a *alerter) manager(findings []finding.Finding) {
	if a.cfg.Alertmanager == "" || len(findings) == 0 {
		return
	}
	var list []alertForm
	for _, f := range findings {
		one := alertForm{StartsAt: time.Unix(0, f.Since).UTC(),
			Labels:      map[string]string{"alertname": "xdpmon_" + string(f.Kind), "kind": string(f.Kind), "severity": f.Severity.String(), "subject": f.Subject.Name, "interface": f.Interface},
			Annotations: map[string]string{"summary": f.Headline(), "description": f.Sentence()}}
		if f.Until > 0 {
			end := time.Unix(0, f.Until).UTC()
			one.EndsAt = &end
		}
		list = append(list, one)
	}
	a.post(strings.TrimSuffix(a.cfg.Alertmanager, "/")+"/api/v2/alerts", list)
}

func (a *alerter) hook(f finding.Finding) {
	if a.cfg.Webhook != "" {
		a.post(a.cfg.Webhook, map[string]any{"finding": f})
	}
}

// post sends JSON; failures are logged when they begin and when they end.
func (a *alerter) post(url string, value any) {
	err := func() error {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		answer, err := a.client.Post(url, "application/json", bytes.NewReader(text))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
		if answer.StatusCode/100 != 2 {
			return fmt.Errorf("post to %s: %s", url, answer.Status)
		}
		return nil
	}()
	if err != nil && !a.failed {
		a.log.Error("alert not delivered", "error", err)
	} else if err == nil && a.failed {
		a.log.Info("alerts delivered again", "url", url)
	}
	a.failed = err != nil
}
