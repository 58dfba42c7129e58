package conquest

import (
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// Log puts reports of the data plane together as an instance does, for studies that read the ring themselves and compare each report with the truth.
type Log struct {
	config  *config
	history *history
}

// Named is a burst of a log, and who is named first.
type Named struct {
	From, Begin, Last int64 // ns: From is the arrival of the first packet that waited tau
	Known             bool  // else nobody is named
	Key               heavy.Key
	Low, High         float64 // of what left from From to Last, the named flow's share
}

// NewLog is of an instance on an interface.
func NewLog(v algo.Values) (*Log, error) {
	c, err := newConfig(v, algo.Setup{})
	if err != nil {
		return nil, err
	}
	return &Log{c, newHistory()}, nil
}

// Record takes a report, and returns the bounds of a flow's share by it.
func (l *Log) Record(e *bpf.ConquestConquestEvent) (low, high float64) {
	var s share
	if e.Kind == eventCulprit {
		link := l.history.link(uint32(e.Queue))
		link.learn(l.config, e)
		s = l.config.evidenceOf(link, e).share()
	}
	l.history.record(l.config, e)
	return s.low, s.high
}

// Bursts are all so far, open ones included.
func (l *Log) Bursts() (list []Named) {
	bursts := slices.Clone(l.history.bursts)
	for _, b := range l.history.open {
		b.settle(l.history.link(b.queue))
		bursts = append(bursts, *b)
	}
	for _, b := range bursts {
		a, known := b.headline(l.config.alphaShare())
		list = append(list, Named{b.from, b.begin, b.last, known, a.key, a.share.low, a.share.high})
	}
	return list
}
