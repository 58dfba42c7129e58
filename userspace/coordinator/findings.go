package coordinator

import (
	"encoding/json"
	"errors"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/finding"
)

// findings receives all findings of an agent, which replace its earlier ones.
func (e *engine) findings(a *agent, data []byte, now time.Time) {
	m, err := bus.DecodeFindings(data)
	switch {
	case err != nil:
		e.blame(a, malformed, err)
		return
	case m.Incarnation != a.incarnation && a.ended(m.Incarnation):
		e.blame(a, replayed, errors.New("findings of an earlier incarnation"))
		return
	case m.Incarnation != a.incarnation:
		e.blame(a, stranger, errors.New("findings of an incarnation that has not sent its hello"))
		return
	case m.Number <= a.findings:
		e.blame(a, replayed, errors.New("findings that were received before"))
		return
	}
	a.findings = m.Number
	list := make([]finding.Finding, 0, len(m.Items))
	for _, text := range m.Items {
		var f finding.Finding
		if err := json.Unmarshal(text, &f); err != nil {
			e.blame(a, malformed, err)
			continue
		}
		f.Since, f.Seen = f.Since-a.ahead, now.UnixNano() // on this host's clock
		list = append(list, f)
	}
	e.found.Put(a.name, list, m.Subjects, now)
}

// mostLinks bounds the suspect links of a finding.
const mostLinks = 3

// suspectLinks are the links that flows with losses from or to a finding's subject have in common, if paths are configured.
func (e *engine) suspectLinks(f finding.Finding) (links []string) {
	if f.Kind != finding.LossBefore && f.Kind != finding.LossAfter {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.paths == nil {
		return nil
	}
	p, err := netip.ParsePrefix(f.Subject.Name)
	var losses []algo.Loss
	for _, list := range e.losses {
		for _, l := range list {
			end := l.Destination
			if f.Kind == finding.LossBefore {
				end = l.Source
			}
			if err != nil || p.Contains(end.Unmap()) {
				losses = append(losses, l)
			}
		}
	}
	for _, l := range e.paths.Rank(losses).Links {
		if l.Score > 0 && len(links) < mostLinks {
			links = append(links, l.Name)
		}
	}
	return links
}

// gathers is the interval of merging the findings of all hosts.
const gathers = time.Second

// gather publishes the findings of hosts, and those of merged windows.
func (c *Coordinator) gather(now time.Time) {
	if now.Sub(c.gathered) < gathers {
		return
	}
	c.gathered = now
	c.out.Found(c.ctx, c.engine.found.Open(now), now)
}
