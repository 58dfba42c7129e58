package beaucoup

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"

	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// ErrMerge is wrapped when windows cannot be merged.
var ErrMerge = errors.New("merge windows")

// exported is a row of the table "collectors".
type exported struct {
	Query      string  `json:"query"`
	Key        string  `json:"key"`
	Coupons    string  `json:"coupons"`
	Definition string  `json:"definition"`
	N          int     `json:"n"`
	M          int     `json:"m"`
	P          float64 `json:"effective_p"`
	Start      int64   `json:"start"`  // ns, in the clock of the host's packets
	Window     int64   `json:"window"` // ns
}

// Merger merges the collectors of several hosts: a coupon counts as collected if any host has it (section 4.6).
type Merger struct {
	rows    map[[2]string]*merged
	windows int
	hosts   int
}

// merged is a key with its collectors on all hosts.
type merged struct {
	exported
	spans []span
}

// span is a collector of one host.
type span struct {
	start   int64 // ns since 1970
	coupons uint64
	host    int
}

// union is the coupons that all hosts together have collected, from the first one to the end of the query's window.
type union struct {
	*merged
	start   int64
	coupons uint64
	hosts   map[int]bool
}

// NewMerger returns a Merger without windows.
func NewMerger() *Merger { return &Merger{rows: map[[2]string]*merged{}} }

// longestLine is several times the size of a full table's collectors, bytes; xdpmon writes no longer line.
const longestLine = 64 << 20

// Read adds the windows of one host: JSON lines, as xdpmon writes them with beaucoup.export=true.
func (m *Merger) Read(name string, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	found, offset := 0, int64(0)
	m.hosts++
	for n := 1; lines.Scan(); n++ {
		var l struct {
			Run *struct {
				Clock struct {
					UnixOffset int64 `json:"unix_offset_ns"`
				} `json:"clock"`
			} `json:"run"`
			Algorithm string `json:"algorithm"`
			Report    struct {
				Collectors []exported `json:"collectors"`
			} `json:"report"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("%w: %s, line %d is not valid JSON: %w", ErrMerge, name, n, err)
		}
		if l.Run != nil {
			offset = l.Run.Clock.UnixOffset
		}
		if l.Algorithm != Name || l.Report.Collectors == nil {
			continue
		}
		found++
		for _, e := range l.Report.Collectors {
			if err := m.add(e, offset); err != nil {
				return fmt.Errorf("%w: %s, line %d: %w", ErrMerge, name, n, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: read %s: %w", ErrMerge, name, err)
	}
	if found == 0 {
		return fmt.Errorf("%w: %s has no window of beaucoup with collectors: measure with --set beaucoup.export=true --output json", ErrMerge, name)
	}
	m.windows += found
	return nil
}

func (m *Merger) add(e exported, offset int64) error {
	coupons, err := strconv.ParseUint(e.Coupons, 16, 64)
	if err != nil || e.N < 1 || e.N > e.M || e.M > 64 || !(e.P > 0 && e.P <= 1) || e.Window < 0 {
		return fmt.Errorf("damaged collector of %s", e.Query)
	}
	at := [2]string{e.Query, e.Key}
	row := m.rows[at]
	if row == nil {
		row = &merged{exported: e}
		m.rows[at] = row
	}
	if row.Definition != e.Definition {
		return fmt.Errorf("query %s is not the same on all hosts: give them the same queries, in the same order, and the same --seed", e.Query)
	}
	row.spans = append(row.spans, span{e.Start + offset, coupons, m.hosts})
	return nil
}

// united are the key's windows over all hosts: as on one host, a window begins with the first coupon and is not extended.
func (r *merged) united() (windows []union) {
	slices.SortStableFunc(r.spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for _, s := range r.spans {
		n := len(windows)
		if n == 0 || s.start > windows[n-1].start+r.Window {
			windows = append(windows, union{r, s.start, 0, map[int]bool{}})
			n++
		}
		windows[n-1].coupons |= s.coupons
		windows[n-1].hosts[s.host] = true
	}
	return windows
}

// Report lists the keys that have enough coupons over all hosts, largest counts first.
func (m *Merger) Report() report.Body {
	t := report.Table{Name: "alerts", Title: "Alerts", Whole: true, Help: "keys that passed a threshold on all hosts together",
		Columns: []report.Column{
			{Name: "query", Label: true, Help: "the query"},
			{Name: "key", Label: true, Help: "the key"},
			{Name: "count", Unit: report.Count, Metric: true, Help: "distinct attributes, estimated from all coupons"},
			{Name: "count_low", Unit: report.Count, Help: "lower end of the 95 % interval"},
			{Name: "count_high", Unit: report.Count, Help: "upper end of its 95 % interval"},
			{Name: "coupons", Unit: report.Count, Help: "coupons collected"},
			{Name: "m", Unit: report.Count, Help: "coupons there are"},
			{Name: "hosts", Unit: report.Count, Help: "inputs that saw the key"},
			{Name: "start", Unit: report.Nanosecond, Help: "first coupon, ns since 1970 where the hosts know it"},
		}}
	var rows []union
	for _, r := range m.rows {
		for _, w := range r.united() {
			if bits.OnesCount64(w.coupons) >= r.N {
				rows = append(rows, w)
			}
		}
	}
	slices.SortFunc(rows, func(a, b union) int {
		return cmp.Or(cmp.Compare(a.Query, b.Query), cmp.Compare(bits.OnesCount64(b.coupons), bits.OnesCount64(a.coupons)), cmp.Compare(a.Key, b.Key), cmp.Compare(a.start, b.start))
	})
	for _, r := range rows {
		k := bits.OnesCount64(r.coupons)
		mean, variance := compile.Collector{M: r.M, N: k, P: r.P}.Moments()
		t.Rows = append(t.Rows, []any{r.Query, r.Key, mean, max(0, mean-1.96*sqrt(variance)), mean + 1.96*sqrt(variance), int64(k), int64(r.M), int64(len(r.hosts)), r.start})
	}
	t.Limit = len(rows)
	return report.Body{Values: []report.Value{
		gauge("windows", m.windows, report.Count, "windows that were merged"),
		gauge("keys", len(m.rows), report.Count, "keys with any coupon"),
		gauge("alerts_raised", len(rows), report.Count, "keys that passed a threshold"),
	}, Tables: []report.Table{t}}
}
