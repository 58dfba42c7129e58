package scene

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/compare"
)

// distribution is the name under which algorithms report delays, and the truth is compared.
const distribution = "delay_ns"

// Truth collects the delays of handshakes as the link emulator has seen them: from the arrival of a SYN at the
// clients' side to the departure of its SYN-ACK there.
type Truth struct {
	offset int64 // realtime minus monotonic clock, ns

	mu      sync.Mutex
	pending map[handshake]int64 // arrival of the SYN, ns
	answers []answer            // not reported yet
	end     int64               // of the latest window that was reported
	count   int
	sums    map[string]*soFar // by algorithm
}

type handshake struct {
	flow emulator.Flow
	ack  uint32 // what the SYN-ACK acknowledges
}

type answer struct{ at, delay int64 } // at: monotonic, ns; delay repeated: a retransmission

const repeated = -1

// soFar adds up estimate and truth of one algorithm from the first window on.
type soFar struct {
	line            report.Line // sums of packets and losses
	estimate, truth report.Distribution
	rows            [][]any
}

// NewTruth is empty; offset is the real-time clock less the monotonic one, ns.
func NewTruth(offset int64) *Truth {
	return &Truth{offset: offset, pending: map[handshake]int64{}, sums: map[string]*soFar{}}
}

// request records packets from the clients before their delay, so that handshakes in progress count as waiting; it drops nothing. A repeated SYN
// does not restart the clock.
func (t *Truth) request(p *packet.Packet, _ *rand.Rand) (drop bool) {
	if !p.Has(packet.TCP) || p.TCPFlags&(packet.SYN|packet.ACK) != packet.SYN {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := handshake{emulator.FlowOf(p), p.Seq + 1}
	if _, again := t.pending[key]; !again {
		t.pending[key] = p.Time
	}
	return false
}

// response records packets to the clients.
func (t *Truth) response(e emulator.Event) {
	p := &e.Packet
	if e.Fate != emulator.Passed || !p.Has(packet.TCP) || p.TCPFlags&(packet.SYN|packet.ACK) != packet.SYN|packet.ACK {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := handshake{emulator.FlowOf(p), p.Ack}
	a := answer{at: max(e.Sent-t.offset, t.end), delay: repeated} // the link's thread may be late: an answer whose window was reported belongs to the next
	if asked, ok := t.pending[key]; ok {
		delete(t.pending, key)
		a.delay = e.Sent - asked
		t.count++
	}
	t.answers = append(t.answers, a)
}

// Total is the number of answered handshakes.
func (t *Truth) Total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// waiting is the number of handshakes without an answer yet.
func (t *Truth) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending)
}

// Beside adds the truth of its window to a line, the error against it, and a table of how the sums converge. The
// last window also has a line about all windows together.
func (t *Truth) Beside(l report.Line) (window report.Line, summary *report.Line) {
	i := slices.IndexFunc(l.Report.Distributions, func(d report.Distribution) bool { return d.Name == distribution })
	if i < 0 {
		return l, nil
	}
	estimate := l.Report.Distributions[i]
	delays, again := t.until(l)
	exact := exactDistribution(estimate, delays)
	s := t.sum(l, estimate, exact)
	table := s.convergence()
	l.Report.Tables = append(l.Report.Tables, table)
	if l.Window.Last {
		all := s.summary(table)
		summary = &all
	}
	return compared(l, exact, responses(l, len(delays)+again)...), summary
}

// responses is the number of answers that the link sent, including repeated ones, where the algorithm counts them.
func responses(l report.Line, sent int) []report.Value {
	i := slices.IndexFunc(l.Report.Values, func(v report.Value) bool { return v.Name == "responses" })
	if i < 0 {
		return nil
	}
	v := l.Report.Values[i]
	v.Value = uint64(sent)
	return []report.Value{v}
}

// compared sets truth and error of a line.
func compared(l report.Line, exact report.Distribution, values ...report.Value) report.Line {
	body := report.Body{Values: values, Distributions: []report.Distribution{exact}}
	errors := compare.Bodies(l.Report, body)
	l.Truth, l.Error = &body, &errors
	return l
}

// until returns the delays of the line's window, and the number of repeated answers. They are stored for the other algorithms of the same window: the
// first window of a number that begins later drops them.
func (t *Truth) until(l report.Line) (delays []int64, again int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = max(t.end, l.Window.End)
	t.answers = slices.DeleteFunc(t.answers, func(a answer) bool { return a.at < l.Window.Start })
	for _, a := range t.answers {
		switch {
		case a.at >= l.Window.End:
		case a.delay == repeated:
			again++
		default:
			delays = append(delays, a.delay)
		}
	}
	slices.Sort(delays)
	return delays, again
}

// exactDistribution has the percentiles of the estimate, of sorted delays.
func exactDistribution(like report.Distribution, delays []int64) report.Distribution {
	d := report.Distribution{Name: like.Name, Title: like.Title, Unit: like.Unit, Count: float64(len(delays))}
	for i, delay := range delays {
		d.Sum += float64(delay)
		d.Buckets = append(d.Buckets, report.Bucket{Upper: float64(delay), Cumulative: float64(i + 1)})
	}
	if len(delays) > 0 {
		d.Mean = d.Sum / d.Count
	}
	for _, q := range like.Quantiles {
		q.Low, q.High = 0, 0
		if q.Defined = len(delays) > 0; q.Defined {
			q.Value = d.At(q.Q)
		}
		d.Quantiles = append(d.Quantiles, q)
	}
	return d
}

// demoRows is the number of windows in the table of convergence.
const demoRows = 5

// sum adds a window.
func (t *Truth) sum(l report.Line, estimate, exact report.Distribution) *soFar {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.sums[l.Algorithm]
	if !ok {
		s = &soFar{line: report.Line{Window: l.Window, Lost: map[string]uint64{}}}
		t.sums[l.Algorithm] = s
	}
	s.addAccounts(l)
	s.estimate, s.truth = merge(s.estimate, estimate), merge(s.truth, exact)
	s.rows = append(s.rows, s.row())
	s.rows = s.rows[max(0, len(s.rows)-demoRows):]
	return s
}

func (s *soFar) addAccounts(l report.Line) {
	start, packets, lost := s.line.Window.Start, s.line.Packets, s.line.Lost
	s.line = l
	s.line.Window.Start = start
	s.line.Packets.Seen += packets.Seen
	s.line.Packets.Parsed += packets.Parsed
	s.line.Packets.Used += packets.Used
	s.line.Packets.Bytes += packets.Bytes
	s.line.Packets.Reasons = added(packets.Reasons, l.Packets.Reasons)
	s.line.Lost = added(lost, l.Lost)
}

func added(a, b map[string]uint64) map[string]uint64 {
	sum := map[string]uint64{}
	for _, m := range []map[string]uint64{a, b} {
		for name, n := range m {
			sum[name] += n
		}
	}
	return sum
}

// row is the error of the sums after the latest window.
func (s *soFar) row() []any {
	at := func(q float64) float64 { return report.Relative(s.estimate.At(q), s.truth.At(q)) }
	gap, _ := report.LargestGap(s.estimate, s.truth)
	after := s.line.Window.End - s.line.Window.Start
	return []any{after, s.truth.Count, s.estimate.Count, at(0.5), at(0.95), at(0.99), gap}
}

// convergence lists the errors of the sums, the latest last.
func (s *soFar) convergence() report.Table {
	return report.Table{
		Name: "convergence", Title: "error of all windows together, against the delays that were really applied", Limit: demoRows,
		Columns: []report.Column{
			{Name: "after_ns", Unit: report.Nanosecond, Help: "time since the first window began"},
			{Name: "handshakes", Unit: report.Count, Help: "handshakes that the link has seen"},
			{Name: "estimated", Unit: report.Count, Help: "handshakes by the estimate"},
			{Name: "p50_error", Unit: report.Ratio}, {Name: "p95_error", Unit: report.Ratio}, {Name: "p99_error", Unit: report.Ratio},
			{Name: "largest_gap", Unit: report.Ratio, Help: "largest gap between the CDFs, 5th to 95th percentile"},
		},
		Rows: slices.Clone(s.rows),
	}
}

// summary is the line about all windows together.
func (s *soFar) summary(table report.Table) report.Line {
	l, estimate := s.line, s.estimate
	estimate.Title += ", all windows together"
	l.Report = report.Body{Distributions: []report.Distribution{estimate}, Tables: []report.Table{table}}
	return compared(l, s.truth)
}
