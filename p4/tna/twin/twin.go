// Package twin knows the P4 twins: each registers what a control plane does with it, and where it differs from its eBPF form
// by design. A twin brings this with its own folder, p4/NAME/twin.go; nothing else names it.
package twin

import (
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Twin is one P4 program.
type Twin struct {
	Name      string // of its folder
	Algorithm string // as it is registered
	Forms     []Form // what -D chooses; none: one form
	Window    *Flip  // nil: nothing accumulates
	Fill      []Fill
	// Prepare does what Fill says, with what the parameters come to: entries of tables, rates of meters, constants of filters. nil: nothing.
	Prepare func(sw *run.Switch, v algo.Values) error
	// Filter is the arithmetic of low-pass filters whose words are to be the host's, for a time constant; nil: the twin has none.
	Filter func(decay time.Duration) func(held, value, now, last uint64) uint64
	// Told are messages of a coordinator (algo.Messenger), which the bytecode's userspace hears before the first packet; what they come to is
	// written into the twin's tables. nil: there is no coordinator.
	Told func(v algo.Values) (messages [][]byte, write func(sw *run.Switch) error, err error)
	// Queue makes what the traffic manager says of one frame after the other; nil: packets do not wait. A frame's time is then when it
	// leaves, and the switch receives it Wait before; Queue may change it, and write what a host is to know of its queue.
	Queue func() func(f *packet.Frame) run.Queue
	// Enforces: it drops or marks packets. A test then asks the host for its verdict on every one.
	Enforces bool
	// Coins makes what Random externs draw of the host's coins; nil: the twin draws none. flip throws the next one of this packet.
	Coins  func(flip func() uint32) func(random string, width int) uint64
	Counts []Count
	Also   []Count // for a report; a test cannot compare them word for word
	// Start is an element of a register that a test begins with on both sides, for what would take too many packets; nil: none.
	Start func(register string, i int) uint64
	// Unreachable are branches and entries, by a part of their description, that no packet can reach.
	Unreachable []string
	// Sampled are tables, by the end of their names, that a control plane fills with a function's values: packets meet some of them.
	Sampled []string
	// Drive brings packets to entries of tables that traffic meets a part of; nil: none.
	Drive func(d Driver, form Form) error
	// Fixed are words of the host's tables in a test, of every element: what userspace follows the traffic with on a host, and a
	// control plane on a switch.
	Fixed       map[string]uint64
	Differences []Difference
	Reports     *Reports // nil: the control plane reads registers only
	// Emits are the headers that the twin makes, all of them. Remember are arrays of the host of which Want asks for elements as they were
	// before the packet, among the first ones; only packets that pass twice change them.
	Emits    []Emit
	Remember []string
	// Registers says that registers and counters are the whole answer, in words that a host has, too: a dump of them can be
	// evaluated.
	Registers bool
	// Unread says why nothing can be evaluated, of a twin without Registers.
	Unread string
	// Host writes a host's word as the twin has it, where that is another layout; nil: as it is. Same does so for the twin's.
	Host, Same func(register string, word uint64) uint64
	// Native writes a switch's word as the host has it, for its estimator; nil: as it is.
	Native func(register string, word uint64, beside func(register string) uint64) uint64 // beside: the same element of another one
	// Freed are registers of which the estimator frees elements, by setting them to 0: on a switch the control plane does.
	Freed []string
	// Uncounted are values, tables, columns (TABLE.COLUMN) and losses of the report that a switch does not count.
	Uncounted []string
}

// Form is one way to compile a twin, and the parameters with which the eBPF form is the same.
type Form struct {
	Name      string
	Define    map[string]string
	Set       map[string]string
	Generated bool // params.p4 and tables.p4 are those that `xdpmon p4` writes for these parameters
	Driven    bool // made for the test of coverage alone
	Study     bool // run in the study only: others have all that is in it
	Brief     bool // some thousand packets are enough outside of the study: another form has all but some fields
}

// Count compares what direct counters of a table counted in a window with counters of the host.
type Count struct {
	Table   string   // nothing: packets' clones
	Actions []string // of the twin, added up
	Host    string   // the host's array
	Index   int      // ... and which counter of it
	Short   int      // of a thousand packets so many may be missing in the twin
}

// Reports compares what goes to the control plane at once: records of the host's ring, and the twin's digests, or packets that
// it copies to the CPU. Both are written as words that have to be the same, in the same order.
type Reports struct {
	Ring string
	Host func(record []byte) []uint64                // nil: of this record the twin says nothing
	Twin func(r *run.Result, time uint64) [][]uint64 // of one packet
	// Record is a digest as records of the host's ring, for its estimator; nil: it cannot be told.
	Record func(v algo.Values, d *run.Digest, bank int) [][]byte
	// Copies are what was copied to the CPU as records of the host's ring, given the registers that were read with them, and counters
	// of the host that this tells, by their place in the array Counters; nil: nothing is copied, or it cannot be told.
	Copies   func(v algo.Values, copies []Copy, word func(register string, i int) uint64) (records [][]byte, counts map[int]uint64, err error)
	Counters string
}

// Copy is a packet that was copied to the CPU, and when it came.
type Copy struct {
	Time   int64  `json:"time"` // ns
	Packet []byte `json:"packet"`
}

// Driver sends packets to twin and bytecode, and changes the registers of both.
type Driver interface {
	Now() int64
	Send(packets ...packet.Packet) error
	Mix(packets int) error            // traffic of the test's model
	Lengths(from ...netip.Addr) error // TCP segments with headers of every length, with data and without
	Read(register string) []uint64    // of the twin
	Write(register string, i int, v uint64) error
	// Control does what a control plane does, on the host and on the switch.
	Control(host func(set *maps.Set) error, sw func(sw *run.Switch) error) error
	End() error     // of a window
	Compare() error // all words, now: for what the next packets would write over
}

// Flip is the table whose default action says which bank packets count into, with its values by bank.
type Flip struct {
	Table  string      `json:"table"`
	Action string      `json:"action"`
	Banks  [2][]uint64 `json:"banks"`
}

// Fill is what a control plane sets before the first packet, and what for.
type Fill struct {
	Object   string   `json:"object"` // table, meter or mirror session; a command, whose output names the objects
	What     string   `json:"what"`
	Kind     FillKind `json:"kind"`
	Optional bool     `json:"optional,omitempty"` // the switch measures without it
	Session  *Session `json:"session,omitempty"`
	Keys     []Key    `json:"keys,omitempty"`    // of a table's entries
	Actions  []Action `json:"actions,omitempty"` // that entries and its default may have
}

// FillKind is what kind of object is set.
type FillKind string

// Kinds of objects.
const (
	FillTable   FillKind = "table"   // entries, or the default action, of the operator's choice
	FillSession FillKind = "session" // of mirrors
	FillMeter   FillKind = "meter"
	FillCPU     FillKind = "cpu"   // the port that packets are copied to for the control plane
	FillRules   FillKind = "rules" // what a command writes: entries, defaults, filters
)

// Session is a mirror session.
type Session struct {
	Number uint64 `json:"number"`
	Port   uint16 `json:"port,omitempty"` // 0: the operator's choice
	Bytes  int    `json:"bytes"`          // of a packet, at least
	Loops  bool   `json:"loops,omitempty"`
}

// Key of a table.
type Key struct {
	Name  string `json:"name"`
	Match string `json:"match"` // exact, ternary, range, lpm
	Width int    `json:"width"` // bits
}

// Action of a table, with the bits of its values.
type Action struct {
	Name   string `json:"name"`
	Widths []int  `json:"widths"`
}

// Difference is one line of docs/twins.md. Each is met by the test's traffic at least once, and at most Max times.
type Difference struct {
	Name string
	Max  int
	// Words says how many words of a register this explains, given both sides, or -1 when it does not explain what differs.
	Words func(register string, host, twin []uint64) int
	// Records is Words of what went to the control plane in a window.
	Records func(host, twin [][]uint64) int
	// Turn are registers whose records the twin does not find any more when its clock has turned, every so many ns: the test
	// forgets them on both sides then, and counts how many there were.
	Turn *Turn
	// Packet says that both measure this packet, but not alike; the test gives it to neither. Ignored: the twin does not measure
	// it, and is given it alone.
	Packet  func(p *packet.Packet) bool
	Follow  func() func(p *packet.Packet) bool // makes a Packet that remembers what it saw
	Ignored bool
	// Captures: only real packets meet it, not those of the model; the test of captures wants it instead.
	Captures bool
	Wraps    bool // only where the 48 bits of a switch's time stamps turn, of which there is a test
}

var all []*Twin

// Register is called by init of a twin's folder.
func Register(t *Twin) {
	if slices.ContainsFunc(all, func(o *Twin) bool { return o.Name == t.Name }) {
		panic("twin registered twice: " + t.Name)
	}
	all = append(all, t)
	slices.SortFunc(all, func(a, b *Twin) int { return strings.Compare(a.Name, b.Name) })
}

// All twins, by name.
func All() []*Twin { return all }

// Of an algorithm, by the name it is registered with.
func Of(algorithm string) (*Twin, bool) {
	i := slices.IndexFunc(all, func(t *Twin) bool { return t.Algorithm == algorithm })
	if i < 0 {
		return nil, false
	}
	return all[i], true
}

// FormsOf are a twin's forms, one at least.
func (t *Twin) FormsOf() []Form {
	if len(t.Forms) == 0 {
		return []Form{{}}
	}
	return t.Forms
}

// LastForm is the one in which bugs are planted.
func (t *Twin) LastForm() Form {
	forms := t.FormsOf()
	return forms[len(forms)-1]
}

// Build makes a switch that runs the twin as it stands.
func (t *Twin) Build(target run.Target, form Form) (*run.Switch, error) {
	files, err := t.Text(form)
	if err != nil {
		return nil, err
	}
	return t.BuildFrom(files, target, form)
}

// BuildFrom is Build of another text: generated parameters, say.
func (t *Twin) BuildFrom(files fs.FS, target run.Target, form Form) (*run.Switch, error) {
	program, err := run.Read(files, t.Name+"/top.p4", target, form.Define)
	if err != nil {
		return nil, fmt.Errorf("read twin %s: %w", t.Name, err)
	}
	sw, err := run.New(program, target)
	if err != nil {
		return nil, fmt.Errorf("build twin %s: %w", t.Name, err)
	}
	return sw, t.Ready(sw, target, form)
}

// Ready does what a control plane does before the first packet.
func (t *Twin) Ready(sw *run.Switch, target run.Target, form Form) error {
	SecondPasses(sw, target)
	sw.CPUPort = CPUPort
	if t.Prepare == nil {
		return nil
	}
	v, err := t.Values(form)
	if err != nil {
		return err
	}
	if err := t.Prepare(sw, v); err != nil {
		return fmt.Errorf("prepare twin %s: %w", t.Name, err)
	}
	return nil
}

// CPUPort of a switch in tests.
const CPUPort = 64

// SecondPort is the port of a pipe that loops packets back.
func SecondPort(target run.Target, pipe int) uint16 {
	if target == run.Tofino2 {
		return uint16(128*pipe + 6)
	}
	return uint16(128*pipe + 68)
}

// SecondPasses makes the mirror sessions of p4/include/second.p4, to the port of each pipe that loops.
func SecondPasses(sw *run.Switch, target run.Target) {
	sw.Sessions, sw.Loops = map[uint64]run.Session{}, map[uint16]bool{}
	for pipe := range Pipes {
		port := SecondPort(target, pipe)
		sw.Loops[port] = true
		sw.Sessions[uint64(pipe)+1] = run.Session{Port: port, Bytes: CloneBytes}
	}
}

// Counted adds up what direct counters of a table's actions counted.
func Counted(sw *run.Switch, table string, actions []string) (n uint64) {
	t := sw.Table(table)
	if t == nil {
		return 0
	}
	for _, r := range append(slices.Clone(t.Rows), t.Default) {
		if r != nil && slices.Contains(actions, r.Action) {
			n += r.Packets
		}
	}
	return n
}

// Uncount sets all direct counters back.
func Uncount(sw *run.Switch) {
	for _, t := range sw.Tables {
		for _, r := range append(slices.Clone(t.Rows), t.Default) {
			if r != nil {
				r.Packets = 0
			}
		}
	}
}

// CloneBytes of a packet are enough for all headers that twins read.
const CloneBytes = 128

// Pipes of a switch.
const Pipes = 4

// Turn of a clock.
type Turn struct {
	Registers []string
	Every     int64  // ns
	As        uint64 // what all elements are on the switch then, where a record that is forgotten is not one that is empty
}

// Echoes is the difference of twins that key by ports.
var Echoes = Difference{Name: "ICMP echo: its identifier is no port", Max: 2, Packet: func(p *packet.Packet) bool {
	return p.Has(packet.ICMP)
}}

// HighBits of the host's next coin are what a Random draws, one coin each.
func HighBits(flip func() uint32) func(string, int) uint64 {
	return func(_ string, width int) uint64 { return uint64(flip() >> (32 - width)) }
}

// SetBank tells packets which bank they count into.
func (t *Twin) SetBank(sw *run.Switch, bank int) error {
	if t.Window == nil {
		return nil
	}
	table := sw.Table(t.Window.Table)
	if table == nil {
		return fmt.Errorf("set bank of %s: there is no table %s", t.Name, t.Window.Table)
	}
	return table.SetDefault(t.Window.Action, t.Window.Banks[bank]...)
}

// Elements of a register as numbers: the first field of a pair is the high half. What two exclusive registers of one name hold counts
// as one array, in the order of their instances.
func Elements(sw *run.Switch, name string) []uint64 {
	all := make([]uint64, 0, Entries(sw, name))
	for _, r := range sw.Arrays() {
		switch {
		case r.Name != name:
		case r.Words == 1:
			all = append(all, r.Data...)
		default:
			for i := range r.Entries {
				all = append(all, r.Data[2*i]<<r.Width|r.Data[2*i+1])
			}
		}
	}
	return all
}

// Element is one of Elements.
func Element(sw *run.Switch, name string, i int) uint64 {
	for _, r := range sw.Arrays() {
		switch {
		case r.Name != name:
		case i >= r.Entries:
			i -= r.Entries
		case r.Words == 2:
			return r.Data[2*i]<<r.Width | r.Data[2*i+1]
		default:
			return r.Data[i]
		}
	}
	return 0
}

// SetElement writes what Elements reads.
func SetElement(sw *run.Switch, name string, i int, v uint64) {
	for _, r := range sw.Arrays() {
		if r.Name != name {
			continue
		}
		if i >= r.Entries {
			i -= r.Entries
			continue
		}
		if r.Words == 2 {
			r.Data[2*i], r.Data[2*i+1] = v>>r.Width, v&(1<<r.Width-1)
		} else {
			r.Data[i] = v
		}
		return
	}
}

// First is the element that a register begins with.
func First(r *run.Register) uint64 {
	if r.Words == 2 {
		return r.Initial[0]<<r.Width | r.Initial[1]
	}
	return r.Initial[0]
}

// Entries of the registers of one name.
func Entries(sw *run.Switch, name string) int {
	n := 0
	for _, r := range sw.Arrays() {
		if r.Name == name {
			n += r.Entries
		}
	}
	return n
}

// Names of a switch's registers, each once.
func Names(sw *run.Switch) []string {
	var names []string
	for _, r := range sw.Arrays() {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}

// Reset sets entries of the registers of one name to what they began with.
func Reset(sw *run.Switch, name string, from, to int) {
	for _, r := range sw.Arrays() {
		if r.Name == name {
			r.Reset(max(0, from), min(r.Entries, max(0, to)))
			from, to = from-r.Entries, to-r.Entries
		}
	}
}
