// Package names adds names to addresses, networks and ports: services by their port, guests by their address, host names that DNS answers
// resolved to an address, and country and autonomous system from a database file. Everything is bounded, and only a hint: the sender of a DNS
// answer chooses its content, so that nothing is measured, decided or keyed by a name.
package names

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

// Options of Names.
type Options struct {
	Services bool     // name ports
	DNS      bool     // learn from answers that Frame and Packet are given
	Files    []string // databases in MaxMind's format
	Entries  int      // most addresses whose names from DNS are stored; 0: DefaultEntries
	Warn     func(format string, args ...any)
	Learned  *Names // whose names from DNS are taken over
}

// Names looks up names. It is safe for concurrent use; a nil *Names has none.
type Names struct {
	services  bool
	dns       *cache // nil: nothing is learned
	databases []*database
	guests    atomic.Pointer[map[netip.Addr]report.Guest]
	done      chan struct{}
}

// New opens the databases. An error names the file and the remedy.
func New(o Options) (*Names, error) {
	n := &Names{services: o.Services, done: make(chan struct{})}
	if o.Warn == nil {
		o.Warn = func(string, ...any) {}
	}
	for _, path := range o.Files {
		d, err := openDatabase(path, o.Warn)
		if err != nil {
			return nil, err
		}
		n.databases = append(n.databases, d)
	}
	switch {
	case o.DNS && o.Learned != nil && o.Learned.dns != nil:
		n.dns = o.Learned.dns
	case o.DNS:
		n.dns = newCache(o.Entries)
	}
	if len(n.databases) > 0 {
		go n.watch()
	}
	return n, nil
}

// watchEvery is the interval at which files are checked for changes.
const watchEvery = 10 * time.Second

func (n *Names) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-n.done:
			return
		case <-tick.C:
			for _, d := range n.databases {
				d.reload()
			}
		}
	}
}

// Close ends the checks for changes.
func (n *Names) Close() {
	if n != nil {
		close(n.done)
	}
}

// SetGuests sets the addresses of guests.
func (n *Names) SetGuests(guests map[netip.Addr]report.Guest) {
	if n != nil {
		n.guests.Store(&guests)
	}
}

// Line is the window with names for the rows of its tables. The given line is not changed.
func (n *Names) Line(l report.Line) report.Line {
	if n == nil || !slices.ContainsFunc(l.Report.Tables, named) {
		return l // with its encoding, which those of other idle interfaces share
	}
	l.Report.Tables = slices.Clone(l.Report.Tables)
	for i := range l.Report.Tables {
		n.table(&l.Report.Tables[i])
	}
	return l
}

// named reports whether a table may have names.
func named(t report.Table) bool { return !t.Settings && len(t.Rows) > 0 }

// most names of a row, and of a finding.
const most = 8

func (n *Names) table(t *report.Table) {
	if !named(*t) {
		return
	}
	var rows [][]known.Name
	for i, row := range t.Rows {
		list := n.row(t, row)
		if len(list) > 0 && rows == nil {
			rows = make([][]known.Name, len(t.Rows))
		}
		if rows != nil {
			rows[i] = list
		}
	}
	t.Names = rows
}

func (n *Names) row(t *report.Table, row []any) (list []known.Name) {
	for i, c := range t.Columns {
		if !c.Label || i >= len(row) {
			continue
		}
		switch v := row[i].(type) {
		case string:
			list = n.text(list, v)
		case int64:
			if c.Name == "sport" || c.Name == "dport" {
				list = n.port(list, strconv.FormatInt(v, 10))
			}
		}
		for j := range list {
			if list[j].Column == "" {
				list[j].Column = c.Name
			}
		}
	}
	return list
}

// text names every address, network and port of a text: "10.0.0.1 > 10.0.0.2:443".
func (n *Names) text(list []known.Name, text string) []known.Name {
	if len(text) > longestText {
		return list
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' || r == ';' || r == '(' || r == ')' }) {
		if len(list) >= most {
			break
		}
		if word = strings.TrimRight(word, "."); !strings.HasSuffix(word, "::") {
			word = strings.TrimSuffix(word, ":")
		}
		list = n.word(list, word)
	}
	return list
}

// longestText is the longest text that is searched: sentences of findings are shorter.
const longestText = 4096

func (n *Names) word(list []known.Name, word string) []known.Name {
	if word == "" || word[0] > '9' && word[0] != '[' && !strings.Contains(word, ":") {
		return list // most words
	}
	if a, err := netip.ParseAddr(word); err == nil {
		return n.add(list, n.Address(a), word)
	}
	if p, err := netip.ParsePrefix(word); err == nil {
		return n.add(list, n.prefix(p), word)
	}
	if a, err := netip.ParseAddrPort(word); err == nil {
		one := n.Address(a.Addr())
		one.Service = n.service(a.Port())
		return n.add(list, one, word)
	}
	return list
}

func (n *Names) add(list []known.Name, one known.Name, of string) []known.Name {
	if one.Of = of; !one.Known() || slices.ContainsFunc(list, func(o known.Name) bool { return o.Of == of && o.Column == "" }) {
		return list
	}
	return append(list, one)
}

func (n *Names) port(list []known.Name, text string) []known.Name {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return list
	}
	return n.add(list, known.Name{Service: n.service(uint16(port))}, text)
}

func (n *Names) service(port uint16) string {
	if !n.services {
		return ""
	}
	return services[port]
}

// Address is everything known about an address.
func (n *Names) Address(a netip.Addr) (one known.Name) {
	if n == nil {
		return one
	}
	a = a.Unmap().WithZone("")
	if guests := n.guests.Load(); guests != nil {
		one.Guest = (*guests)[a]
	}
	if n.dns != nil {
		one.DNS = n.dns.name(a)
	}
	for _, d := range n.databases {
		d.into(a, a.BitLen(), &one)
	}
	return one
}

// prefix is what applies to the whole network: none of its hosts' names.
func (n *Names) prefix(p netip.Prefix) (one known.Name) {
	if p.IsSingleIP() {
		return n.Address(p.Addr())
	}
	for _, d := range n.databases {
		d.into(p.Addr(), p.Bits(), &one)
	}
	return one
}

// Finding is the finding with names of its subject, and of those in its reason.
func (n *Names) Finding(f finding.Finding) finding.Finding {
	if n == nil {
		return f
	}
	f.Names = n.text(n.text(nil, f.Subject.Name), f.Because)
	return f
}

// Findings are all of them with names. The given list is not changed.
func (n *Names) Findings(list []finding.Finding) []finding.Finding {
	if n == nil || len(list) == 0 {
		return list
	}
	named := make([]finding.Finding, len(list))
	for i, f := range list {
		named[i] = n.Finding(f)
	}
	return named
}

// Frames is Frame if names are learned from DNS, else nil.
func (n *Names) Frames() func(*packet.Frame) {
	if n == nil || n.dns == nil {
		return nil
	}
	return n.Frame
}

// Frame learns from a packet of a capture, at the packet's time.
func (n *Names) Frame(f *packet.Frame) {
	if n == nil || n.dns == nil {
		return
	}
	if ip := network(f); ip != nil {
		n.Packet(ip, f.Time)
	}
}

// Packet learns from an IP packet, if it is a DNS answer. now are nanoseconds of any one clock.
func (n *Names) Packet(ip []byte, now int64) {
	if n == nil || n.dns == nil {
		return
	}
	if msg := answer(ip); msg != nil {
		n.dns.learn(msg, now)
	}
}

// Stats count DNS answers by outcome.
type Stats struct {
	Answers   uint64 `json:"answers"`   // read
	Malformed uint64 `json:"malformed"` // of these: not DNS, cut, or without an end
	Learned   uint64 `json:"learned"`   // addresses with a name, renewed ones included
	Evicted   uint64 `json:"evicted"`   // addresses that were evicted because the table was full
	Entries   int    `json:"entries"`   // addresses with a name now
}

// Stats of names from DNS; ok is false if none are learned.
func (n *Names) Stats() (s Stats, ok bool) {
	if n == nil || n.dns == nil {
		return s, false
	}
	return n.dns.stats(), true
}
