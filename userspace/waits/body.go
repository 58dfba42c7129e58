package waits

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/waits"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
	"github.com/xdpmon/xdpmon/userspace/waits/cause"
)

func counter(name string, n uint64, unit report.Unit, help string) report.Value {
	return report.Value{Name: name, Value: n, Unit: unit, Kind: report.Counter, Help: help}
}

// Report implements algo.Config.
func (c *config) Report(s *snapshot.Snapshot) (algo.Result, error) {
	e, err := c.open(s)
	if err != nil {
		return algo.Result{}, err
	}
	n := e.n
	result := algo.Result{Used: n.at(bpf.WaitsWaitsCounterWAITS_PACKETS) - n.at(bpf.WaitsWaitsCounterWAITS_SKIPPED), Lost: map[string]uint64{
		"missed":   n.at(bpf.WaitsWaitsCounterWAITS_MISSED),
		"too_long": n.at(bpf.WaitsWaitsCounterWAITS_TOO_LONG),
		"crowded":  n.at(bpf.WaitsWaitsCounterWAITS_CROWDED),
		"reports":  n.at(bpf.WaitsWaitsCounterWAITS_UNREPORTED),
		"unnamed":  e.unnamed,
	}}
	b := &result.Body
	b.Values = append(c.totals(e), e.percentiles()...)
	list := c.judge(e.rows)
	b.Tables = []report.Table{c.causes(list[:min(len(list), c.top)]), c.waits(e.rows)}
	b.Notes = e.notes()
	*b = b.Answering("zero_windows", "small_windows", "server_leg_p50_ns", "client_leg_p50_ns", "answer_p50_ns")
	return result, nil
}

// totals are what all connections had.
func (c *config) totals(e *estimator) []report.Value {
	n := e.n
	list := []report.Value{
		counter("packets", n.at(bpf.WaitsWaitsCounterWAITS_PACKETS), report.PacketUnit, "TCP packets without RST"),
		counter("skipped", n.at(bpf.WaitsWaitsCounterWAITS_SKIPPED), report.PacketUnit, "packets of connections that are not followed (waits.p)"),
		counter("syns", n.at(bpf.WaitsWaitsCounterWAITS_SYNS), report.PacketUnit, "SYN segments"),
		counter("handshakes", n.at(bpf.WaitsWaitsCounterWAITS_HANDSHAKES), report.Count, "SYN segments with their SYN-ACK"),
		counter("zero_windows", n.at(bpf.WaitsWaitsCounterWAITS_ZERO), report.PacketUnit, "ACKs without data that announce a window of zero"),
		counter("small_windows", n.at(bpf.WaitsWaitsCounterWAITS_SMALL), report.PacketUnit, "ACKs without data that announce a window below waits.small, after scaling"),
		counter("unscaled_windows", n.at(bpf.WaitsWaitsCounterWAITS_UNSCALED), report.PacketUnit, "ACKs without data with a small number as window whose scale is not known: taken as open"),
		counter("segments_timed", n.at(bpf.WaitsWaitsCounterWAITS_STARTED), report.Segments, "segments whose ACK was awaited, one of a flow at a time"),
		counter("segments_repeated", n.at(bpf.WaitsWaitsCounterWAITS_REPEATED), report.Segments, "segments that were sent again before their ACK, and not timed further"),
		counter("request_segments", n.at(bpf.WaitsWaitsCounterWAITS_ASKED), report.Segments, "segments that clients sent"),
	}
	for k := range cause.Kinds {
		list = append(list, counter(k.String()+"_waits", n[int(bpf.WaitsWaitsCounterWAITS_EVENTS)+int(k)], report.Events, kindHelp[k]))
	}
	return append(list, report.Value{Name: "window_memory", Value: int64(c.used()), Unit: report.Bytes, Help: "records, counters and percentiles of one bank"})
}

var kindHelp = [cause.Kinds]string{"announcements that followed a closed window of the same receiver", "ACKs without data that took waits.late or longer",
	"legs of handshakes that took waits.slow or longer", "answers that took waits.slow or longer"}

var legNames = [...]string{"server_leg", "client_leg", "ack", "answer"}

var legHelp = [...]string{"delay from SYN to SYN-ACK", "delay from SYN-ACK to the client's next packet", "delay from a segment to an ACK without data",
	"delay from a client's segment to the server's next one"}

// percentiles of all delays, waits or not.
func (e *estimator) percentiles() (list []report.Value) {
	for leg, name := range legNames {
		bins := e.delays[leg*delayBins.Len() : (leg+1)*delayBins.Len()]
		total := uint64(0)
		for _, n := range bins {
			total += n
		}
		list = append(list, counter(name+"s", total, report.Count, legHelp[leg]+": how many were seen"))
		for _, q := range []float64{.5, .99} {
			v := report.Value{Name: fmt.Sprintf("%s_p%d_ns", name, int(math.Round(100*q))), Value: math.NaN(), Unit: report.Nanosecond, Help: legHelp[leg] + ", of all connections"}
			if spread := report.Normal95 * math.Sqrt(q*(1-q)*float64(total)); q*float64(total)+spread < float64(total) && q*float64(total)-spread > 0 {
				low, _ := at(bins, q*float64(total)-spread)
				from, to := at(bins, q*float64(total))
				_, high := at(bins, q*float64(total)+spread)
				v.Value, v.Low, v.High = (from+to)/2, low, high
			}
			list = append(list, v)
		}
	}
	return list
}

// at is the bin of a rank, ns.
func at(bins []uint64, rank float64) (low, high int64) {
	seen := 0.
	for i, n := range bins {
		if seen += float64(n); seen >= rank && n > 0 {
			from, to := delayBins.Range(i)
			return int64(from << tickBits), int64(to << tickBits)
		}
	}
	return 0, 0
}

// bounded is the column of a total with its ends.
func bounded(help string) []report.Column {
	return []report.Column{
		{Name: "waited_ns", Unit: report.Nanosecond, Metric: true, Help: help, Low: "waited_at_least_ns", High: "waited_at_most_ns", Promise: report.Bound, Together: true},
		{Name: "waited_at_least_ns", Unit: report.Nanosecond, Help: "it was more than this: what was counted"},
		{Name: "waited_at_most_ns", Unit: report.Nanosecond, Help: "it was less than this, with what found no place; none where a record of the connection's slot was not stored or overwritten"},
		{Name: "waits", Unit: report.Events, Help: "how many waits these are"},
	}
}

func cells(w cause.Wait) []any {
	return []any{whole(w.NS), whole(w.Low), whole(w.High), int64(w.Number)}
}

// whole rounds ns.
func whole(x float64) any {
	if math.IsNaN(x) {
		return x
	}
	return int64(math.Round(x))
}

const causesHelp = "who waited longest first: src waits for dst, because of its receiver, the path to it, or its server"

// causes is the table of verdicts.
func (c *config) causes(list []judged) report.Table {
	t := report.Table{Name: "causes", Title: "Connections that wait, and for whom", Limit: c.top, Whole: true, Help: causesHelp,
		Columns: slices.Concat(c.spec.Columns(), []report.Column{{Name: "cause", Label: true, Help: "receiver: dst does not read or acknowledge; path: to dst; server: dst answers late; undecided: the handshake was not seen"}},
			bounded("time that is the cause's"), []report.Column{
				{Name: "server_leg_ns", Unit: report.Nanosecond, Help: "delay from SYN to SYN-ACK"},
				{Name: "client_leg_ns", Unit: report.Nanosecond, Help: "delay from SYN-ACK to the client's next packet"}})}
	for _, j := range list {
		t.Rows = append(t.Rows, slices.Concat(c.spec.Cells(j.flow), []any{string(j.Cause)}, cells(j.Wait), []any{whole(j.Legs[cause.Server]), whole(j.Legs[cause.Client])}))
	}
	return t
}

// waits is the table by kind.
func (c *config) waits(rows []row) report.Table {
	t := report.Table{Name: "waits", Title: "Waits by kind", Limit: c.top, Whole: true, Details: true, Help: "longest first: src waits for dst",
		Columns: slices.Concat(c.spec.Columns(), []report.Column{{Name: "kind", Label: true, Help: "window: closed; ack: late; handshake: its leg on the side of dst; answer: late"}},
			bounded("total"))}
	for _, r := range longest(rows, c.top) {
		t.Rows = append(t.Rows, slices.Concat(c.spec.Cells(r.flow), []any{r.kind.String()}, cells(r.wait)))
	}
	return t
}

func longest(rows []row, most int) []row {
	list := slices.Clone(rows)
	slices.SortFunc(list, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.wait.NS, a.wait.NS), a.flow.Compare(b.flow), cmp.Compare(a.kind, b.kind))
	})
	return list[:min(len(list), most)]
}

// muchCrowded is the share of waits without a place from which more memory is advised.
const muchCrowded = .1

func (e *estimator) notes() (notes []string) {
	waits := uint64(0)
	for k := range cause.Kinds {
		waits += e.n[int(bpf.WaitsWaitsCounterWAITS_EVENTS)+int(k)]
	}
	if crowded := e.n.at(bpf.WaitsWaitsCounterWAITS_CROWDED); float64(crowded) > muchCrowded*float64(waits) {
		notes = append(notes, fmt.Sprintf("%d of %d waits found no place: raise waits.memory, or waits.slow if most connections wait that long", crowded, waits))
	}
	if n := e.n.at(bpf.WaitsWaitsCounterWAITS_UNREPORTED); n > 0 {
		notes = append(notes, fmt.Sprintf("%d reports were dropped because the ring was full: raise waits.ring", n))
	}
	return notes
}
