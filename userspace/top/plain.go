package top

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/top/client"
	"github.com/xdpmon/xdpmon/userspace/top/model"
	"github.com/xdpmon/xdpmon/userspace/top/view"
)

// Plain writes lines: findings when they start and end, and each instance when its window ends. Written lines never change and the cursor is not
// moved: for screen readers, dumb terminals and logs.
func Plain(ctx context.Context, o Options, out io.Writer) error {
	p := &plain{out: out, m: model.New(o.Target.Name, o.Now), open: map[string]finding.Finding{}, ends: map[string]int64{}}
	c := client.New(o.Target)
	defer c.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan any, 64)
	go follow(ctx, c, events, o.Ended)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	waiting, last := false, time.Time{}
	ended := o.Ended
	for p.err == nil {
		select {
		case <-ctx.Done():
			return nil
		case e := <-events:
			if p.event(e) && !waiting {
				waiting = true
				timer.Reset(max(gather, atMost-time.Since(last)))
			}
		case text := <-o.Notices:
			p.line(p.now(), "note: "+text)
		case <-ended:
			p.fetch(ctx, c)
			p.line(p.now(), "measurement ended")
			return p.err
		case <-timer.C:
			waiting, last = false, time.Now()
			p.fetch(ctx, c)
		}
	}
	return p.err
}

type plain struct {
	out   io.Writer
	m     *model.Model
	open  map[string]finding.Finding
	ends  map[string]int64
	begun bool
	err   error
}

func (p *plain) now() int64 { return p.m.Now().UnixMilli() }

func (p *plain) event(e any) (fetch bool) {
	switch e := e.(type) {
	case error:
		if p.m.Up || p.m.Trouble == "" {
			p.line(p.now(), "no connection, trying again: "+e.Error())
		}
		p.m.Lost(e)
	case client.Event:
		if e.Kind == client.Hello && !p.m.Up && p.begun {
			p.line(p.now(), "connected again")
		}
		if e.Kind == client.Missed {
			p.line(p.now(), fmt.Sprintf("%d events were not received: this client was too slow", e.Missed))
		}
		return p.m.Event(e)
	}
	return false
}

// fetch writes new lines.
func (p *plain) fetch(ctx context.Context, c *client.Client) {
	a := model.Fetch(ctx, c, model.Request{View: model.Overview})
	if a.Err != nil {
		if ctx.Err() == nil {
			p.line(p.now(), "cannot ask: "+a.Err.Error())
		}
		return
	}
	p.m.Take(a)
	if !p.begun {
		p.begun = true
		p.line(p.now(), fmt.Sprintf("%s %s at %s: %d instances; a line follows for each window and finding", a.Instances.Command, a.Instances.Version, p.m.Source, len(a.Instances.Instances)))
	}
	p.findings()
	for _, r := range p.m.Rows() {
		if p.ends[r.Key] != r.End {
			p.ends[r.Key] = r.End
			p.line(r.End, view.RowText(r))
		}
	}
	p.forget(a.Instances.Instances)
}

func (p *plain) forget(list []api.Instance) {
	for key := range p.ends {
		if !slices.ContainsFunc(list, func(i api.Instance) bool { return i.Key == key }) {
			delete(p.ends, key)
			p.line(p.now(), key+" is no longer measured")
		}
	}
}

func (p *plain) findings() {
	now := map[string]bool{}
	for _, f := range p.m.Open {
		now[f.ID] = true
		if _, known := p.open[f.ID]; !known {
			p.line(f.Since/1e6, "finding begins, "+f.Severity.String()+": "+f.Sentence())
		}
		p.open[f.ID] = f
	}
	for id, f := range p.open {
		if !now[id] {
			delete(p.open, id)
			p.line(p.now(), "finding ends, "+f.Severity.String()+": "+f.Headline())
		}
	}
}

// line writes a line with its time (UTC).
func (p *plain) line(ms int64, text string) {
	if p.err != nil {
		return
	}
	text = strings.Join(strings.Fields(view.Safe(text)), " ")
	if _, err := fmt.Fprintf(p.out, "%s %s\n", model.MS(ms).Format("15:04:05"), text); err != nil {
		p.err = fmt.Errorf("write: %w", err)
	}
}
