// Package dump is what a control plane reads from a switch, as JSON: registers and counters of one closed bank. The model
// writes it, a real switch's registers have the same form, and an algorithm evaluates both alike.
package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// Schema of a dump; another one is refused.
const Schema = "xdpmon.registers/1"

// ErrGeometry is wrapped if a dump is of another program, or of other parameters.
var ErrGeometry = errors.New("the registers are not those of this twin with these parameters")

// Dump is one window of one twin.
type Dump struct {
	Schema    string                       `json:"schema"`
	Twin      string                       `json:"twin"`
	Bank      int                          `json:"bank"`      // the closed bank that was read
	Start     int64                        `json:"start"`     // ns
	End       int64                        `json:"end"`       // ns
	Registers map[string]Register          `json:"registers"` // all of them, both banks
	Counters  map[string]map[string]uint64 `json:"counters"`  // packets by table and action
	Digests   []Digest                     `json:"digests,omitempty"`
	Copies    []twin.Copy                  `json:"copies,omitempty"` // packets that were copied to the CPU
	freed     []element
}

// element of a register.
type element struct {
	register string
	i        int
}

// Digest is a record sent immediately, by field.
type Digest struct {
	Name   string            `json:"name"`
	Values map[string]uint64 `json:"values"`
}

func digestOf(d *run.Digest) Digest {
	one := Digest{Name: d.Name, Values: map[string]uint64{}}
	for i, field := range d.Fields {
		one.Values[field] = d.Values[i]
	}
	return one
}

// Register holds elements one after the other, of a pair the first field first. Two registers of one name, which exclude each
// other on Tofino 2, follow each other.
type Register struct {
	Width   int      `json:"width"` // bits of a word
	Words   int      `json:"words"` // of an element
	Entries int      `json:"entries"`
	Data    []uint64 `json:"data"`
}

// Of reads a switch.
func Of(t *twin.Twin, sw *run.Switch, bank int, start, end int64) *Dump {
	d := &Dump{Schema: Schema, Twin: t.Name, Bank: bank, Start: start, End: end, Registers: map[string]Register{},
		Counters: map[string]map[string]uint64{}}
	for _, r := range sw.Registers {
		one := d.Registers[r.Name]
		d.Registers[r.Name] = Register{Width: r.Width, Words: r.Words, Entries: one.Entries + r.Entries, Data: append(one.Data, r.Data...)}
	}
	for _, table := range sw.Tables {
		if table.HasCounters {
			d.Counters[table.Name] = map[string]uint64{}
			for _, r := range append(slices.Clone(table.Rows), table.Default) {
				if r != nil {
					d.Counters[table.Name][r.Action] += r.Packets
				}
			}
		}
	}
	return d
}

// Write a dump as JSON.
func (d *Dump) Write(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(d); err != nil {
		return fmt.Errorf("write registers: %w", err)
	}
	return nil
}

// Read reads a dump, and refuses one that does not fit this twin as built: the registers' names, widths and sizes, and every word.
func Read(r io.Reader, t *twin.Twin, sw *run.Switch) (*Dump, error) {
	d := &Dump{}
	in := json.NewDecoder(r)
	in.DisallowUnknownFields()
	if err := in.Decode(d); err != nil {
		return nil, fmt.Errorf("read registers: %w", err)
	}
	if d.Schema != Schema {
		return nil, fmt.Errorf("read registers: schema %q, want %q", d.Schema, Schema)
	}
	if d.Twin != t.Name {
		return nil, fmt.Errorf("read registers: %w: they are of %q, not of %q", ErrGeometry, d.Twin, t.Name)
	}
	if d.Bank != 0 && d.Bank != 1 || d.End <= d.Start {
		return nil, fmt.Errorf("read registers: bank %d from %d to %d ns: a bank is 0 or 1, and a window ends after its start", d.Bank, d.Start, d.End)
	}
	want := Of(t, sw, d.Bank, d.Start, d.End)
	for name, w := range want.Registers {
		if err := d.Registers[name].matches(w); err != nil {
			return nil, fmt.Errorf("read registers: register %s: %w", name, err)
		}
	}
	for name := range d.Registers {
		if _, ok := want.Registers[name]; !ok {
			return nil, fmt.Errorf("read registers: register %s: %w: the twin has none", name, ErrGeometry)
		}
	}
	return d, nil
}

func (r Register) matches(want Register) error {
	if r.Width != want.Width || r.Words != want.Words || r.Entries != want.Entries || len(r.Data) != r.Words*r.Entries {
		return fmt.Errorf("%w: %d elements of %d x %d bits in %d numbers, want %d of %d x %d", ErrGeometry, r.Entries, r.Words, r.Width,
			len(r.Data), want.Entries, want.Words, want.Width)
	}
	if i := slices.IndexFunc(r.Data, func(v uint64) bool { return v>>r.Width != 0 }); i >= 0 {
		return fmt.Errorf("%w: number %d is %d, which has more than %d bits", ErrGeometry, i, r.Data[i], r.Width)
	}
	return nil
}

// Element of a register as one number: the first field of a pair is the high half.
func (r Register) Element(i int) uint64 {
	if r.Words == 2 {
		return r.Data[2*i]<<r.Width | r.Data[2*i+1]
	}
	return r.Data[i]
}
