package report

import (
	"sync"
	"unsafe"

	"github.com/xdpmon/xdpmon/userspace/report/ordered"
)

// Encoding keeps a line's JSON without its identity and window, so that everybody who writes the line encodes it once; and so do windows that have the same
// content, which are those of an interface without traffic. It is safe for concurrent use.
type Encoding struct {
	of         Body // by the places of its slices
	truth, err *Body

	mu   sync.Mutex
	text [2][]byte // without and with the steps of distributions
}

// NewEncoding is for the line as it is now.
func NewEncoding(l Line) *Encoding { return &Encoding{of: l.Report, truth: l.Truth, err: l.Error} }

// Fits reports whether the line still has the report and truth that the encoding was made for.
func (e *Encoding) Fits(l Line) bool {
	return e != nil && samePlace(e.of.Values, l.Report.Values) && samePlace(e.of.Distributions, l.Report.Distributions) && samePlace(e.of.Tables, l.Report.Tables) &&
		samePlace(e.of.Notes, l.Report.Notes) && e.truth == l.Truth && e.err == l.Error
}

func samePlace[T any](a, b []T) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// encode writes a line.
func (l Line) encode(with layout) ([]byte, error) {
	if !l.Encoding.Fits(l) {
		return ordered.Marshal(l.object(with))
	}
	o := ordered.New()
	l.head(o, with)
	head, err := ordered.Marshal(o)
	if err != nil {
		return nil, err
	}
	rest, err := l.Encoding.rest(l, with)
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, len(head)+len(rest)+1) // a newline, too
	text = append(text, head[:len(head)-1]...)
	text = append(text, ',')
	return append(text, rest[1:]...), nil
}

// rest is what follows the head, as an object.
func (e *Encoding) rest(l Line, with layout) ([]byte, error) {
	n := 0
	if with.cdf {
		n = 1
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.text[n] == nil {
		o := ordered.New()
		l.content(o, with)
		text, err := ordered.Marshal(o)
		if err != nil {
			return nil, err
		}
		e.text[n] = text
	}
	return e.text[n], nil
}
