package capture

import (
	"errors"
	"io"
	"maps"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// OpenAll opens several captures, so that a wrong name is found before the first packet is replayed.
func OpenAll(paths []string, stdin io.Reader) ([]Source, error) {
	var sources []Source
	for _, path := range paths {
		r, err := Open(path, stdin)
		if err != nil {
			return nil, errors.Join(err, closeAll(sources))
		}
		sources = append(sources, r)
	}
	return sources, nil
}

// Concat reads one source after the other, in the order given, whatever their times are. A source that ends with an error does
// not end the stream: all errors are returned together after the last packet, in place of io.EOF.
func Concat(sources ...Source) Source {
	return &concat{several: several{sources: sources}}
}

// Merge reads several sources in the order of their packets' times; equal times keep the order of the sources. It
// expects each to be in order and passes on what is not. Errors as in Concat.
func Merge(sources ...Source) Source {
	return &merge{several: several{sources: sources}, last: -1}
}

// Sides numbers captures of different places: frames of the n-th bear interface n, from 1 on, and the last capture is of packets that leave.
func Sides(sources ...Source) []Source {
	sides := make([]Source, len(sources))
	for n, src := range sources {
		sides[n] = side{src, uint32(n + 1), n == len(sources)-1}
	}
	return sides
}

type side struct {
	Source
	number uint32
	last   bool
}

// Next implements Source.
func (s side) Next(f *packet.Frame) error {
	err := s.Source.Next(f)
	f.Interface, f.Direction = s.number, packet.Ingress
	if s.last {
		f.Direction = packet.Egress
	}
	return err
}

// several is what concat and merge have in common.
type several struct {
	sources []Source
	errs    []error
}

// ended takes the error that ended a source.
func (s *several) ended(err error) {
	if err != io.EOF {
		s.errs = append(s.errs, err)
	}
}

// end is the error after the last packet.
func (s *several) end() error {
	if len(s.errs) == 0 {
		return io.EOF
	}
	return errors.Join(s.errs...)
}

// Progress implements Source: the total is known only if it is known of all.
func (s *several) Progress() (read, total int64) {
	known := true
	for _, src := range s.sources {
		r, t := src.Progress()
		read, total = read+r, total+t
		known = known && t > 0
	}
	if !known {
		total = 0
	}
	return read, total
}

// Skipped implements Source.
func (s *several) Skipped() map[string]uint64 {
	sum := map[string]uint64{}
	for _, src := range s.sources {
		for reason, n := range maps.All(src.Skipped()) {
			sum[reason] += n
		}
	}
	return sum
}

// Close implements Source.
func (s *several) Close() error { return closeAll(s.sources) }

func closeAll(sources []Source) error {
	var errs []error
	for _, src := range sources {
		errs = append(errs, src.Close())
	}
	return errors.Join(errs...)
}

type concat struct {
	several
	at int
}

// Next implements Source.
func (c *concat) Next(f *packet.Frame) error {
	for ; c.at < len(c.sources); c.at++ {
		err := c.sources[c.at].Next(f)
		if err == nil {
			return nil
		}
		c.ended(err)
	}
	return c.end()
}

type merge struct {
	several
	heads   []head
	last    int // index in heads of what was handed out, -1 before the first
	started bool
}

// head is a source with its next frame.
type head struct {
	src   Source
	frame packet.Frame
}

// Next implements Source. A source is asked for its next frame only when the one before is no longer in use.
func (m *merge) Next(f *packet.Frame) error {
	if !m.started {
		m.start()
	}
	if m.last >= 0 {
		m.refill(m.last)
	}
	if m.last = m.earliest(); m.last < 0 {
		return m.end()
	}
	*f = m.heads[m.last].frame
	return nil
}

func (m *merge) start() {
	m.started = true
	m.heads = make([]head, 0, len(m.sources))
	for _, src := range m.sources {
		m.heads = append(m.heads, head{src: src})
		m.refill(len(m.heads) - 1)
	}
}

func (m *merge) refill(i int) {
	h := &m.heads[i]
	if h.src == nil {
		return
	}
	if err := h.src.Next(&h.frame); err != nil {
		m.ended(err)
		h.src = nil
	}
}

func (m *merge) earliest() int {
	best := -1
	for i := range m.heads {
		h := &m.heads[i]
		if h.src != nil && (best < 0 || h.frame.Time < m.heads[best].frame.Time) {
			best = i
		}
	}
	return best
}
