package top

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Player serves the windows of a replay through an API of its own, at the speed of the capture's clock times a factor.
type Player struct {
	api     *api.API
	hub     feed.Hub
	engine  *diagnose.Engine
	speed   float64 // 0: as fast as possible
	begun   time.Time
	first   int64
	mu      sync.Mutex
	shown   int64 // end of the latest window, ns since 1970
	started bool
}

// NewPlayer is a player of a run.
func NewPlayer(run report.Run, speed float64) *Player {
	p := &Player{engine: diagnose.New(), speed: speed}
	p.engine.SetClock(run.Clock)
	p.api = api.New(api.Options{Hub: &p.hub, Now: p.now, Findings: p.engine.Open})
	p.api.Start(run)
	return p
}

// Handler is the API.
func (p *Player) Handler() http.Handler { return p.api.Handler() }

// now is the time of the capture.
func (p *Player) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Unix(0, p.shown)
}

// Emit waits until a window is due, then publishes it. It must not be called concurrently.
func (p *Player) Emit(ctx context.Context, l report.Line) error {
	if !p.started {
		p.started, p.begun, p.first = true, time.Now(), l.Window.Start
	}
	if p.speed > 0 {
		due := p.begun.Add(time.Duration(float64(l.Window.End-p.first) / p.speed))
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return nil // the next frames end it
		}
	}
	p.mu.Lock()
	p.shown = max(p.shown, l.Window.End)
	p.mu.Unlock()
	l.Snapshot = nil
	p.api.Add(l)
	for _, f := range p.engine.Line(l) {
		shown := f.Output()
		p.api.Found(f)
		p.hub.Publish(ctx, feed.Event{Finding: &shown})
	}
	p.hub.Publish(ctx, feed.Event{Line: &l})
	return nil
}
