package bus

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestSender(t *testing.T) {
	for _, name := range []string{"a", "host-1.example.net", "A_b"} {
		for subject, want := range map[string]Kind{HelloSubject(name): HelloKind, DataSubject(name): DataKind, FindingsSubject(name): FindingsKind} {
			if got, kind, ok := Sender(subject); got != name || kind != want || !ok {
				t.Errorf("%s: %s %v %v", subject, got, kind, ok)
			}
		}
	}
	for _, subject := range []string{"xdpmon.up.", "xdpmon.up.a.other", "xdpmon.down.a", "xdpmon.up.a", "xdpmon.up.-.data", "xdpmon.up.a==b.data"} {
		if name, _, ok := Sender(subject); ok {
			t.Errorf("%s is %s's", subject, name)
		}
	}
	for _, name := range []string{"", "a b", "a*", ">", "a..b", "a.", "a=b", "é"} {
		if CheckName(name) == nil {
			t.Errorf("%q is a name", name)
		}
	}
}

// Any input is a message, or refused.
func TestDamage(t *testing.T) {
	whole, err := Encode(Batch{Version: Version, Incarnation: 3, Number: 2, Oldest: 1, Items: []Item{{Measurement: "m", Instance: "m", Algorithm: "a", Snapshot: []byte("x")}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeBatch(whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if _, err := DecodeBatch(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes are a batch", n, len(whole))
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		b := append([]byte(nil), whole...)
		for range 1 + rng.IntN(4) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		_, _ = DecodeBatch(b)
		_, _ = DecodeHello(b)
		_, _ = DecodeAnswer(b)
		_, _ = DecodeFindings(b)
	}
}

// Findings are read back, and refused beyond every bound.
func TestFindings(t *testing.T) {
	whole := Findings{Version: Version, Incarnation: 3, Number: 2, Items: [][]byte{[]byte("{}")}, More: 1, Subjects: []string{"10.2.0.0/16"}}
	for name, c := range map[string]struct {
		change func(*Findings)
		good   bool
	}{
		"as it is": {func(*Findings) {}, true}, "nothing": {func(f *Findings) { f.Items, f.Subjects = nil, nil }, true},
		"the largest": {func(f *Findings) {
			f.Items, f.Subjects = slices.Repeat([][]byte{make([]byte, MaxFindingSize)}, MaxFindings), slices.Repeat([]string{strings.Repeat("s", MaxSubjectSize)}, MaxSubjects)
		}, true},
		"too many": {func(f *Findings) { f.Items = make([][]byte, MaxFindings+1) }, false}, "too large": {func(f *Findings) { f.Items[0] = make([]byte, MaxFindingSize+1) }, false},
		"too many subjects": {func(f *Findings) { f.Subjects = make([]string, MaxSubjects+1) }, false},
		"a long subject":    {func(f *Findings) { f.Subjects = []string{strings.Repeat("s", MaxSubjectSize+1)} }, false},
		"no incarnation":    {func(f *Findings) { f.Incarnation = 0 }, false}, "no number": {func(f *Findings) { f.Number = 0 }, false},
		"another version": {func(f *Findings) { f.Version++ }, false},
	} {
		m := whole
		m.Items = slices.Clone(whole.Items)
		c.change(&m)
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeFindings(b); (err == nil) != c.good || c.good && (len(got.Items) != len(m.Items) || got.More != m.More) {
			t.Errorf("%s: %v", name, err)
		}
		if len(b) > DefaultMessage {
			t.Errorf("%s: %d bytes are no message", name, len(b))
		}
	}
}

// Messages that break a bound are refused; at the bound they are not.
func TestBounds(t *testing.T) {
	item := Item{Measurement: "m", Instance: "m", Algorithm: "a", Snapshot: []byte("x")}
	long := func(n int) string { return strings.Repeat("n", n) }
	batch := func(f func(*Batch)) error {
		m := Batch{Version: Version, Incarnation: 3, Number: 2, Oldest: 2, Items: []Item{item}}
		f(&m)
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = DecodeBatch(b)
		return err
	}
	of := func(f func(*Item)) error {
		return batch(func(b *Batch) { f(&b.Items[0]) })
	}
	hello := func(f func(*Hello)) error {
		m := Hello{Version: Version, Incarnation: 3, Number: 4, Oldest: 5}
		f(&m)
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = DecodeHello(b)
		return err
	}
	answer := func(f func(*Answer)) error {
		m := Answer{Version: Version, Received: 4, Used: 4, Messages: []Message{{}}, Sent: 1}
		f(&m)
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = DecodeAnswer(b)
		return err
	}
	refused := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint(i)] = ""
		}
		return m
	}
	for what, c := range map[string]struct{ got, want error }{
		"batch":                  {batch(func(*Batch) {}), nil},
		"its version":            {batch(func(b *Batch) { b.Version++ }), ErrVersion},
		"number 0":               {batch(func(b *Batch) { b.Number, b.Oldest = 0, 0 }), ErrMalformed},
		"oldest 0":               {batch(func(b *Batch) { b.Oldest = 0 }), ErrMalformed},
		"oldest after it":        {batch(func(b *Batch) { b.Oldest = 3 }), ErrMalformed},
		"as many as may be":      {batch(func(b *Batch) { b.Items = slices.Repeat(b.Items, MaxItems) }), nil},
		"one more":               {batch(func(b *Batch) { b.Items = slices.Repeat(b.Items, MaxItems+1) }), ErrMalformed},
		"nothing":                {of(func(i *Item) { i.Snapshot = nil }), ErrMalformed},
		"two":                    {of(func(i *Item) { i.Begins = true }), ErrMalformed},
		"begins":                 {of(func(i *Item) { i.Snapshot, i.Begins = nil, true }), nil},
		"message":                {of(func(i *Item) { i.Snapshot, i.Message, i.Number = nil, []byte("x"), 1 }), nil},
		"message without one":    {of(func(i *Item) { i.Snapshot, i.Message = nil, []byte("x") }), ErrMalformed},
		"number without one":     {of(func(i *Item) { i.Number = 1 }), ErrMalformed},
		"long names":             {of(func(i *Item) { i.Measurement, i.Instance, i.Algorithm = long(MaxName), long(2*MaxName), long(MaxName) }), nil},
		"measurement":            {of(func(i *Item) { i.Measurement = long(MaxName + 1) }), ErrMalformed},
		"instance":               {of(func(i *Item) { i.Instance = long(2*MaxName + 1) }), ErrMalformed},
		"algorithm":              {of(func(i *Item) { i.Algorithm = long(MaxName + 1) }), ErrMalformed},
		"hello":                  {hello(func(*Hello) {}), nil},
		"a hello's version":      {hello(func(h *Hello) { h.Version-- }), ErrVersion},
		"without an incarnation": {hello(func(h *Hello) { h.Incarnation = 0 }), ErrMalformed},
		"oldest of the future":   {hello(func(h *Hello) { h.Oldest = 6 }), ErrMalformed},
		"long software":          {hello(func(h *Hello) { h.Software = long(128) }), nil},
		"too long software":      {hello(func(h *Hello) { h.Software = long(129) }), ErrMalformed},
		"many refused":           {hello(func(h *Hello) { h.Refused = refused(MaxMeasurements) }), nil},
		"too many refused":       {hello(func(h *Hello) { h.Refused = refused(MaxMeasurements + 1) }), ErrMalformed},
		"answer":                 {answer(func(*Answer) {}), nil},
		"an answer's version":    {answer(func(a *Answer) { a.Version = 0 }), ErrVersion},
		"used unseen":            {answer(func(a *Answer) { a.Used = 5 }), ErrMalformed},
		"sent unsent":            {answer(func(a *Answer) { a.Sent = 0 }), ErrMalformed},
		"a large plan":           {answer(func(a *Answer) { a.Plan = &Plan{Measurements: make([]Measurement, MaxMeasurements)} }), nil},
		"too large a plan":       {answer(func(a *Answer) { a.Plan = &Plan{Measurements: make([]Measurement, MaxMeasurements+1)} }), ErrMalformed},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	if CheckName(long(MaxName)) != nil || CheckName(long(MaxName+1)) == nil {
		t.Errorf("names have %d letters at most", MaxName)
	}
}

// A plan is read back from its file, with what it is asked for by name; a damaged one is none.
func TestPlans(t *testing.T) {
	whole := &Plan{Revision: 7, Measurements: []Measurement{{Name: "a", WindowNS: 1e9}, {Name: "b", WindowNS: 2e9, Seed: 5, CRC: true, Decap: true, Algorithms: []Chosen{{Name: "fridge", Params: map[string]string{"fridges": "256@1"}, WindowNS: 6e9}}}}}
	b, err := EncodePlan(whole)
	if err != nil {
		t.Fatal(err)
	}
	p, err := DecodePlan(b)
	if err != nil || p.Revision != 7 {
		t.Fatalf("%+v, %v", p, err)
	}
	if m, ok := p.Find("b"); !ok || m.WindowNS != 2e9 || m.Seed != 5 || !m.CRC || !m.Decap || m.Algorithms[0].Params["fridges"] != "256@1" {
		t.Errorf("%+v, %v", m, ok)
	}
	if _, ok := p.Find("c"); ok {
		t.Error("a measurement that is not in it")
	}
	if _, ok := (*Plan)(nil).Find("a"); ok {
		t.Error("a measurement of no plan")
	}
	for n := range b {
		if _, err := DecodePlan(b[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}
