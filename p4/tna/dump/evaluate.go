package dump

import (
	"errors"
	"fmt"
	golang "maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// ErrUncounted is wrapped if a switch does not store what the estimator needs.
var ErrUncounted = errors.New("its registers do not hold what a host reports")

// Evaluator is an algorithm that reads a switch's registers as it reads a host's: the words are written to arrays of the same names,
// with no program beside them.
type Evaluator struct {
	twin     *twin.Twin
	values   algo.Values
	instance algo.Instance
	set      *maps.Set
	loaded   map[string]*ebpf.Map
}

// NewEvaluator configures the algorithm of a twin and makes its arrays.
func NewEvaluator(t *twin.Twin, v algo.Values, windowNS int64) (*Evaluator, error) {
	if !t.Registers {
		return nil, fmt.Errorf("evaluate %s: %w: %s", t.Name, ErrUncounted, t.Unread)
	}
	d, err := algo.Lookup(t.Algorithm)
	if err != nil {
		return nil, err
	}
	e := &Evaluator{twin: t, values: v, loaded: map[string]*ebpf.Map{}}
	if e.instance, err = d.New(v, algo.Env{Setup: algo.Setup{Replay: true, Hash: algo.HashCRC, WindowNS: windowNS}, Seed: 1}); err != nil {
		return nil, err
	}
	spec, err := d.Spec()
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	if err := e.instance.Configure(spec); err != nil {
		return nil, err
	}
	if err := e.create(spec); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *Evaluator) create(spec *ebpf.CollectionSpec) error {
	for name, ms := range spec.Maps {
		if strings.HasPrefix(name, ".") {
			continue // the program's constants
		}
		m, err := ebpf.NewMap(ms)
		if err != nil {
			return fmt.Errorf("create map %s: %w", name, err)
		}
		e.loaded[name] = m
	}
	e.set = maps.NewSet(spec, e.loaded)
	return e.instance.Bind(e.set)
}

// Close frees the arrays.
func (e *Evaluator) Close() {
	for _, m := range e.loaded {
		m.Close()
	}
}

// Window evaluates a dump: what `replay` would report of the same registers.
func (e *Evaluator) Window(d *Dump, w report.Window) (report.Line, error) {
	for name := range d.Registers {
		if err := e.write(d.Registers, name, d.Bank); err != nil {
			return report.Line{}, err
		}
	}
	if err := e.deliver(d); err != nil {
		return report.Line{}, err
	}
	for _, c := range slices.Concat(e.twin.Counts, e.twin.Also) {
		n := uint64(0)
		for _, action := range c.Actions {
			n += d.Counters[c.Table][action]
		}
		a, err := e.set.Array(c.Host)
		if err != nil {
			return report.Line{}, err
		}
		if err := put(a, d.Bank*a.Entries, c.Index, n); err != nil {
			return report.Line{}, err
		}
	}
	result, err := algo.Window(e.instance, w, d.Bank)
	if err != nil {
		return report.Line{}, fmt.Errorf("evaluate registers: %w", err)
	}
	if err := e.free(d); err != nil {
		return report.Line{}, err
	}
	e.leaveOut(&result)
	line := report.Line{Algorithm: e.twin.Algorithm, Identity: report.Identity{Instance: "switch"}, Window: w, Lost: result.Lost, Report: result.Body}
	line.Packets.Used = result.Used
	line.Packets.Reasons = map[string]uint64{}
	for reason, n := range d.Counters["reasons.reason"] {
		line.Packets.Seen += n
		if reason == "parsed" {
			line.Packets.Parsed = n
		} else {
			line.Packets.Reasons[reason] = n
		}
	}
	line.Memory.RegisterBytes, line.Memory.KernelBytes = e.set.Memory()
	return line, nil
}

// free records elements that the estimator has freed: they must be set to 0 in the switch.
func (e *Evaluator) free(d *Dump) error {
	for _, name := range e.twin.Freed {
		a, err := e.set.Array(name)
		if err != nil {
			return err
		}
		words, err := a.Read(0, nil)
		if err != nil {
			return fmt.Errorf("evaluate registers: %w", err)
		}
		for i, v := range words {
			if v == 0 && d.Registers[name].Element(i) != 0 {
				d.freed = append(d.freed, element{name, i})
			}
		}
	}
	return nil
}

// deliver passes digests to the algorithm.
func (e *Evaluator) deliver(d *Dump) error {
	r := e.twin.Reports
	if r == nil || r.Record == nil && r.Copies == nil {
		return nil
	}
	a, err := e.set.Array(e.twin.Reports.Ring)
	if err != nil {
		return err
	}
	ring, err := a.Ring()
	if err != nil {
		return err
	}
	if r.Copies != nil {
		return e.deliverCopies(d, ring)
	}
	for _, one := range d.Digests {
		digest := run.Digest{Name: one.Name, Fields: slices.Sorted(golang.Keys(one.Values))}
		for _, field := range digest.Fields {
			digest.Values = append(digest.Values, one.Values[field])
		}
		for _, record := range e.twin.Reports.Record(e.values, &digest, d.Bank) {
			ring.Put(record)
		}
	}
	return nil
}

// deliverCopies is deliver for packets that were copied to the CPU.
func (e *Evaluator) deliverCopies(d *Dump, ring *maps.Ring) error {
	r := e.twin.Reports
	records, counts, err := r.Copies(e.values, d.Copies, func(register string, i int) uint64 { return d.Registers[register].Element(i) })
	if err != nil {
		return err
	}
	for _, record := range records {
		ring.Put(record)
	}
	a, err := e.set.Array(r.Counters)
	if err != nil {
		return err
	}
	for index, n := range counts {
		if err := put(a, d.Bank*a.Entries, index, n); err != nil {
			return err
		}
	}
	return nil
}

// leaveOut removes what the switch does not count, and notes, which are derived from it.
func (e *Evaluator) leaveOut(r *algo.Result) {
	if len(e.twin.Uncounted) == 0 {
		return
	}
	r.Body.Values = slices.DeleteFunc(r.Body.Values, func(v report.Value) bool { return slices.Contains(e.twin.Uncounted, v.Name) })
	r.Body.Tables = slices.DeleteFunc(r.Body.Tables, func(t report.Table) bool { return slices.Contains(e.twin.Uncounted, t.Name) })
	for i := range r.Body.Tables {
		e.leaveOutColumns(&r.Body.Tables[i])
	}
	for _, name := range e.twin.Uncounted {
		delete(r.Lost, name)
	}
	r.Body.Notes = []string{"a switch does not count " + strings.Join(e.twin.Uncounted, ", ")}
}

// leaveOutColumns of a table: TABLE.COLUMN.
func (e *Evaluator) leaveOutColumns(t *report.Table) {
	gone := func(column string) bool { return slices.Contains(e.twin.Uncounted, t.Name+"."+column) }
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if !gone(t.Columns[i].Name) {
			continue
		}
		t.Columns = slices.Delete(slices.Clone(t.Columns), i, i+1)
		for n, row := range t.Rows {
			t.Rows[n] = slices.Delete(row, i, i+1)
		}
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if gone(c.Low) || gone(c.High) {
			c.Low, c.High, c.Promise = "", "", report.Bound
		}
		if gone(c.Least) || gone(c.Most) {
			c.Least, c.Most = "", ""
		}
		if gone(c.Err) {
			c.Err = ""
		}
	}
}

// write a register into the array of its name: all of one that is matched, the closed bank of one that accumulates.
func (e *Evaluator) write(all map[string]Register, name string, bank int) error {
	r := all[name]
	a, err := e.set.Array(name)
	if err != nil {
		return err
	}
	if a.Entries*a.Banks != r.Entries {
		return fmt.Errorf("write register %s: %w: %d elements, the host has %d", name, ErrGeometry, r.Entries, a.Entries*a.Banks)
	}
	from := 0
	if a.Banks == 2 {
		from = bank * a.Entries
	}
	for i := range a.Entries {
		v := r.Element(from + i)
		if e.twin.Native != nil {
			v = e.twin.Native(name, v, func(other string) uint64 { return all[other].Element(from + i) })
		}
		if v == 0 && a.Banks == 2 {
			continue // the window before was reset
		}
		if err := put(a, from+i, 0, v); err != nil {
			return err
		}
	}
	return nil
}

// put one word of an element, as the first core's.
func put(a *maps.Array, element, word int, v uint64) error {
	if a.PerCPU {
		return a.PutCPU(0, uint32(element), word, v)
	}
	one := make([]byte, a.ElemSize)
	set(one, word, v)
	if err := a.Map().Update(uint32(element), one, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("write array %s: %w", a.Name, err)
	}
	return nil
}

// set a word of a little-endian element, which may be shorter than a word.
func set(element []byte, word int, v uint64) {
	for i := 8 * word; i < min(len(element), 8*word+8); i++ {
		element[i] = byte(v >> (8 * (i % 8)))
	}
}
