package waits

import (
	"cmp"
	"math"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/waits"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
	"github.com/xdpmon/xdpmon/userspace/waits/cause"
)

// The words of a snapshot.
const (
	counterWords = "counters"
	delayWords   = "delays"
	waitWords    = "waits" // waitWidth a row
	unnamedWords = "unnamed"
	waitWidth    = heavy.KeyWords + 9
)

const (
	legs       = int(bpf.WaitsWaitsLegLEGS)
	wordTick   = 1 << 14 // ns
	ackTick    = 1 << 20 // ns: what a late ACK is known to within
	timeTicks  = 192     // ns: what the time of a record and of its end are known to within together
	pathClient = 24
	pathMask   = 1<<24 - 1
)

// delayBins are those of the distributions, in ticks.
var delayBins = maps.Bins{Bits: 32, Mantissa: 3}

// row is a connection's waits of a kind, from the end that waits to the one that is waited for.
type row struct {
	flow   heavy.Key
	kind   cause.Kind
	server bool                 // that end is the server
	legs   [cause.Roles]float64 // ns; NaN: not known
	wait   cause.Wait
	missed bool // something in the connection's slot was not timed: it may have waits of other kinds, too
}

// estimator makes the report of a snapshot.
type estimator struct {
	*config
	n       counts
	delays  []uint64
	rows    []row
	unnamed uint64
}

// counts are the data plane's counters of a window.
type counts []uint64

func (c counts) at(n bpf.WaitsWaitsCounter) uint64 { return c[n] }

// open reads a snapshot.
func (c *config) open(s *snapshot.Snapshot) (*estimator, error) {
	r := s.Read()
	e := &estimator{config: c, n: counts(r.Words(counterWords, int(bpf.WaitsWaitsCounterWAITS_COUNTS))), delays: r.Words(delayWords, legs*delayBins.Len()),
		unnamed: r.Words(unnamedWords, 1)[0]}
	for _, w := range r.Rows(waitWords, waitWidth) {
		for _, x := range w[heavy.KeyWords+3:] {
			if x > math.MaxInt64/2 {
				r.Refuse("a connection with %d of something", x)
			}
		}
		if w[heavy.KeyWords] >= uint64(kinds) {
			r.Refuse("a wait of kind %d", w[heavy.KeyWords])
		}
		if r.Err() != nil {
			break
		}
		e.rows = append(e.rows, rowOf(w))
	}
	return e, r.Err()
}

func rowOf(w []uint64) row {
	n := w[heavy.KeyWords:]
	f := row{flow: heavy.Key(w[:heavy.KeyWords]), kind: cause.Kind(n[0]), server: n[1]&flagServer != 0, legs: legsOf(n[2])}
	number, ns := float64(n[3]), float64(n[4])*wordTick
	within, missed := float64(timeTicks), n[7]
	if f.kind == cause.Ack {
		within, missed = ackTick, n[8]
	}
	f.wait = cause.Wait{Number: number, NS: ns, Low: max(0, ns-number*within), High: ns + (number+float64(n[5]))*(wordTick+within) + float64(n[6])*wordTick}
	f.missed = n[7]+n[8] > 0
	if missed > 0 { // what was not stored in the connection's slot may be its own, and how long it would have waited is not known
		f.wait.High = math.NaN()
	}
	return f
}

// legsOf are the handshake's, ns.
func legsOf(path uint64) (list [cause.Roles]float64) {
	for role, ticks := range [...]uint64{cause.Client: path >> pathClient & pathMask, cause.Server: path & pathMask} {
		if list[role] = math.NaN(); ticks > 0 {
			list[role] = float64(ticks-1) * wordTick
		}
	}
	return list
}

// judged is a connection with its verdict.
type judged struct {
	flow heavy.Key // from the end that waits to the one that is waited for
	cause.Verdict
	cause.Connection
}

// judge puts the rows of a connection together. The most waited for is first.
func (c *config) judge(rows []row) (list []judged) {
	type ends struct {
		flows  [cause.Roles]heavy.Key // to the client, and to the server
		of     cause.Connection
		missed bool
	}
	all := map[heavy.Key]*ends{}
	for _, r := range rows {
		to, from := r.flow, c.opposite(r.flow)
		role, server := cause.Client, from
		if r.server {
			role, server = cause.Server, to
		}
		e := all[server]
		if e == nil {
			e = &ends{flows: [cause.Roles]heavy.Key{cause.Client: c.opposite(server), cause.Server: server}}
			e.of.Legs = [cause.Roles]float64{math.NaN(), math.NaN()}
			all[server] = e
		}
		e.of.Waits[r.kind][role] = e.of.Waits[r.kind][role].Plus(r.wait)
		e.missed = e.missed || r.missed
		for role, leg := range r.legs {
			if !math.IsNaN(leg) {
				e.of.Legs[role] = leg
			}
		}
	}
	for _, e := range all {
		if v := e.of.Judge(); v.Number > 0 {
			if e.missed {
				v.High = math.NaN()
			}
			list = append(list, judged{e.flows[v.End], v, e.of})
		}
	}
	slices.SortFunc(list, func(a, b judged) int { return cmp.Or(cmp.Compare(b.NS, a.NS), a.flow.Compare(b.flow)) })
	return list
}

// opposite is the other direction's key.
func (c *config) opposite(k heavy.Key) heavy.Key {
	p := c.packetOf(k)
	p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	other, _ := c.spec.Of(&p)
	return other
}

func (c *config) packetOf(k heavy.Key) packet.Packet {
	src, dst := c.spec.Addrs(k)
	cells := c.spec.Cells(k)
	return packet.Packet{Valid: packet.IP | packet.Ports, Src: src, Dst: dst, SrcPort: uint16(cells[1].(int64)), DstPort: uint16(cells[3].(int64)), Proto: 6}
}
