// Package twin is the registry of the P4 twins: each registers how a control plane uses it, and its intended differences
// from its eBPF form. A twin provides this in its own folder, p4/NAME/twin.go; nothing else names it.
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
	Forms     []Form // choices of -D; none: one form
	Window    *Flip  // nil: nothing accumulates
	Fill      []Fill
	// Prepare executes Fill with the values of the parameters: entries of tables, rates of meters, constants of filters. nil: nothing.
	Prepare func(sw *run.Switch, v algo.Values) error
	// Filter is the arithmetic of low-pass filters whose words must equal the host's, for a time constant; nil: the twin has none.
	Filter func(decay time.Duration) func(held, value, now, last uint64) uint64
	// Messages are messages of a coordinator (algo.Messenger) that the bytecode's userspace receives before the first packet; write puts their
	// content into the twin's tables. nil: there is no coordinator.
	Messages func(v algo.Values) (messages [][]byte, write func(sw *run.Switch) error, err error)
	// Queue returns a function that gives the traffic manager's result for one frame after the other; nil: packets do not wait. A frame's time is then when it
	// leaves, and the switch receives it Wait earlier; Queue may change it, and write what a host needs to know of its queue.
	Queue func() func(f *packet.Frame) run.Queue
	// Enforces: it drops or marks packets. A test then compares its verdict on each packet with the host's.
	Enforces bool
	// Coins derives the draws of Random externs from the host's coins; nil: the twin draws none. flip draws the next coin of this packet.
	Coins  func(flip func() uint32) func(random string, width int) uint64
	Counts []Count
	Also   []Count // for a report; a test cannot compare them word for word
	// Start is the initial value of a register's element on both sides of a test, for states that would need too many packets; nil: none.
	Start func(register string, i int) uint64
	// Saturating are registers all of whose additions saturate, by words of up to 32 bits.
	Saturating []string
	// Unreachable are branches and entries that no packet can reach, by a part of their description.
	Unreachable []string
	// Sampled are tables, by the end of their names, that a control plane fills with a function's values: tests reach some of their entries.
	Sampled []string
	// Drive sends packets to table entries that ordinary traffic reaches only in part; nil: none.
	Drive func(d Driver, form Form) error
	// Fixed are words of the host's tables in a test, for every element: on a host, userspace adapts them to the traffic, on a
	// switch the control plane does.
	Fixed       map[string]uint64
	Differences []Difference
	Reports     *Reports // nil: the control plane only reads registers
	// Emits are all headers that the twin makes. Remember are arrays of the host of which Want needs elements from
	// before the packet, among the first ones; only packets that pass twice change them.
	Emits    []Emit
	Remember []string
	// Registers reports that registers and counters are the whole answer, in words that a host has too: a dump of them can be
	// evaluated.
	Registers bool
	// Unread is the reason why a twin without Registers cannot be evaluated.
	Unread string
	// Host converts a host's word to the twin's layout; nil: unchanged. Same does so for the twin's word.
	Host, Same func(register string, word uint64) uint64
	// HostOf is Host where the layout depends on parameters.
	HostOf func(v algo.Values) (func(register string, word uint64) uint64, error)
	// Native converts a switch's word to the host's layout, for its estimator; nil: unchanged.
	Native func(register string, word uint64, beside func(register string) uint64) uint64 // beside: the same element of another register
	// Freed are registers whose elements the estimator frees by setting them to 0: on a switch the control plane does.
	Freed []string
	// Uncounted are values, tables, columns (TABLE.COLUMN) and losses of the report that a switch does not count.
	Uncounted []string
}

// Form is a variant of a twin's compilation, with the parameters for which the eBPF form is the same.
type Form struct {
	Name      string
	Define    map[string]string
	Set       map[string]string
	Generated bool // params.p4 and tables.p4 are the output of `xdpmon p4` for these parameters
	Driven    bool // only for the test of coverage
	Study     bool // only in the study: other forms cover the same
	Brief     bool // outside of the study some thousand packets are enough: another form covers all but some fields
	// Drive sends what only this form's text is for, of which some thousand packets have too little; after them, outside of the study.
	Drive func(d Driver) error
}

// Has reports whether a form has all parameters of a generated one that nothing is chosen of when it is compiled.
func (f Form) Has(other Form) bool {
	if !other.Generated || len(other.Define) > 0 || len(other.Set) == 0 {
		return false
	}
	for key, value := range other.Set {
		if f.Set[key] != value {
			return false
		}
	}
	return true
}

// Count compares a window's direct counters of a table with counters of the host.
type Count struct {
	Table   string   // nothing: packets' clones
	Actions []string // of the twin, added up
	Host    string   // the host's array
	Index   int      // ... and which counter of it
	Short   int      // per thousand packets, how many the twin may miss
}

// Reports compares what is sent to the control plane immediately: records of the host's ring with the twin's digests, or with packets
// copied to the CPU. Both are converted to words that must be equal, in the same order.
type Reports struct {
	Ring string
	Host func(record []byte) []uint64                // nil: the twin reports nothing for this record
	Twin func(r *run.Result, time uint64) [][]uint64 // of one packet
	// Record converts a digest to records of the host's ring, for its estimator; nil: not possible.
	Record func(v algo.Values, d *run.Digest, bank int) [][]byte
	// Copies converts copies to the CPU to records of the host's ring, given the registers that were read with them, and to counters
	// of the host, by their index in the array Counters; nil: nothing is copied, or it is not possible.
	Copies   func(v algo.Values, copies []Copy, word func(register string, i int) uint64) (records [][]byte, counts map[int]uint64, err error)
	Counters string
}

// Copy is a packet that was copied to the CPU, with its time.
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
	Messages() error                  // DNS: to and from port 53 and its neighbours, of every length around that of a header
	Acknowledged() error              // TCP segments with headers of every length and all flags, each acknowledged with every window and flag
	Read(register string) []uint64    // of the twin
	Write(register string, i int, v uint64) error
	// Control executes a control plane's change, on the host and on the switch.
	Control(host func(set *maps.Set) error, sw func(sw *run.Switch) error) error
	End() error     // of a window
	Compare() error // all words, now: before the next packets overwrite them
}

// Flip is the table whose default action selects the bank that packets count into, with its values by bank.
type Flip struct {
	Table  string      `json:"table"`
	Action string      `json:"action"`
	Banks  [2][]uint64 `json:"banks"`
}

// Fill is what a control plane configures before the first packet, and its purpose.
type Fill struct {
	Object   string   `json:"object"` // table, meter or mirror session; a command, whose output names the objects
	What     string   `json:"what"`
	Kind     FillKind `json:"kind"`
	Optional bool     `json:"optional,omitempty"` // the switch measures without it
	Session  *Session `json:"session,omitempty"`
	Keys     []Key    `json:"keys,omitempty"`    // of a table's entries
	Actions  []Action `json:"actions,omitempty"` // of entries and the default action
}

// FillKind is the kind of an object.
type FillKind string

// Kinds of objects.
const (
	FillTable   FillKind = "table"   // entries, or the default action, chosen by the operator
	FillSession FillKind = "session" // of mirrors
	FillMeter   FillKind = "meter"
	FillCPU     FillKind = "cpu"   // the port that packets are copied to for the control plane
	FillRules   FillKind = "rules" // output of a command: entries, defaults, filters
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

// Difference is one line of docs/twins.md. The test's traffic triggers each at least once, and at most Max times.
type Difference struct {
	Name string
	Max  int
	// Words returns how many words of a register this explains, given both sides, or -1 if it does not explain the difference.
	Words func(register string, host, twin []uint64) int
	// Records is Words for what was sent to the control plane in a window.
	Records func(host, twin [][]uint64) int
	// Turn are registers whose records the twin no longer finds after its clock has wrapped, every so many ns: the test
	// then clears them on both sides, and counts how many there were.
	Turn *Turn
	// Packet reports that both measure this packet, but differently; the test sends it to neither. Ignored: the twin does not measure
	// it, and only the twin receives it.
	Packet  func(p *packet.Packet) bool
	Follow  func() func(p *packet.Packet) bool // makes a stateful Packet
	Ignored bool
	// Captures: only captured packets trigger it, not those of the model; the test of captures requires it instead.
	Captures bool
	Wraps    bool // only where the 48 bits of a switch's time stamps turn, of which there is a test
}

var all []*Twin

// Register is called from init of a twin's folder.
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

// FormsOf are a twin's forms, at least one.
func (t *Twin) FormsOf() []Form {
	if len(t.Forms) == 0 {
		return []Form{{}}
	}
	return t.Forms
}

// LastForm is the form in which bugs are planted.
func (t *Twin) LastForm() Form {
	forms := t.FormsOf()
	return forms[len(forms)-1]
}

// Build makes a switch with the committed program.
func (t *Twin) Build(target run.Target, form Form) (*run.Switch, error) {
	files, err := t.Text(form)
	if err != nil {
		return nil, err
	}
	return t.BuildFrom(files, target, form)
}

// BuildFrom is Build for another text, such as generated parameters.
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

// Uncount resets all direct counters.
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

// Turn is the wrap of a clock.
type Turn struct {
	Registers []string
	Every     int64  // ns
	As        uint64 // value of all elements on the switch then, if a cleared record is not an empty one
}

// Echoes is the difference of twins that key by ports.
var Echoes = Difference{Name: "ICMP echo: its identifier is no port", Max: 2, Packet: func(p *packet.Packet) bool {
	return p.Has(packet.ICMP)
}}

// HighBits gives Random the high bits of the host's next coin, one coin each.
func HighBits(flip func() uint32) func(string, int) uint64 {
	return func(_ string, width int) uint64 { return uint64(flip() >> (32 - width)) }
}

// SetBank selects the bank that packets count into.
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

// Elements of a register as numbers: the first field of a pair is the high half. The contents of two exclusive registers of one name count
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

// First is the initial element of a register.
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

// Reset sets entries of the registers of one name to their initial values.
func Reset(sw *run.Switch, name string, from, to int) {
	for _, r := range sw.Arrays() {
		if r.Name == name {
			r.Reset(max(0, from), min(r.Entries, max(0, to)))
			from, to = from-r.Entries, to-r.Entries
		}
	}
}
