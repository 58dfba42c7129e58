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
		if got, hello, ok := Sender(HelloSubject(name)); got != name || !hello || !ok {
			t.Errorf("%s: %s %v %v", name, got, hello, ok)
		}
		if got, hello, ok := Sender(DataSubject(name)); got != name || hello || !ok {
			t.Errorf("%s: %s %v %v", name, got, hello, ok)
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

// Whatever comes is a message, or refused.
func TestDamage(t *testing.T) {
	whole, err := Encode(Batch{Version: Version, Life: 3, Number: 2, Oldest: 1, Items: []Item{{Measurement: "m", Instance: "m", Algorithm: "a", Snapshot: []byte("x")}}})
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
	}
}

// Messages that break a bound are refused; at the bound they are not.
func TestBounds(t *testing.T) {
	item := Item{Measurement: "m", Instance: "m", Algorithm: "a", Snapshot: []byte("x")}
	long := func(n int) string { return strings.Repeat("n", n) }
	batch := func(f func(*Batch)) error {
		m := Batch{Version: Version, Life: 3, Number: 2, Oldest: 2, Items: []Item{item}}
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
		m := Hello{Version: Version, Life: 3, Number: 4, Oldest: 5}
		f(&m)
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = DecodeHello(b)
		return err
	}
	answer := func(f func(*Answer)) error {
		m := Answer{Version: Version, Received: 4, Used: 4, Messages: []Message{{}}, Told: 1}
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
		"batch":                {batch(func(*Batch) {}), nil},
		"its version":          {batch(func(b *Batch) { b.Version++ }), ErrVersion},
		"number 0":             {batch(func(b *Batch) { b.Number, b.Oldest = 0, 0 }), ErrMalformed},
		"oldest 0":             {batch(func(b *Batch) { b.Oldest = 0 }), ErrMalformed},
		"oldest behind it":     {batch(func(b *Batch) { b.Oldest = 3 }), ErrMalformed},
		"as many as may be":    {batch(func(b *Batch) { b.Items = slices.Repeat(b.Items, MaxItems) }), nil},
		"one more":             {batch(func(b *Batch) { b.Items = slices.Repeat(b.Items, MaxItems+1) }), ErrMalformed},
		"nothing":              {of(func(i *Item) { i.Snapshot = nil }), ErrMalformed},
		"two":                  {of(func(i *Item) { i.Begins = true }), ErrMalformed},
		"begins":               {of(func(i *Item) { i.Snapshot, i.Begins = nil, true }), nil},
		"message":              {of(func(i *Item) { i.Snapshot, i.Message, i.Number = nil, []byte("x"), 1 }), nil},
		"message without one":  {of(func(i *Item) { i.Snapshot, i.Message = nil, []byte("x") }), ErrMalformed},
		"number without one":   {of(func(i *Item) { i.Number = 1 }), ErrMalformed},
		"long names":           {of(func(i *Item) { i.Measurement, i.Instance, i.Algorithm = long(MaxName), long(2*MaxName), long(MaxName) }), nil},
		"measurement":          {of(func(i *Item) { i.Measurement = long(MaxName + 1) }), ErrMalformed},
		"instance":             {of(func(i *Item) { i.Instance = long(2*MaxName + 1) }), ErrMalformed},
		"algorithm":            {of(func(i *Item) { i.Algorithm = long(MaxName + 1) }), ErrMalformed},
		"hello":                {hello(func(*Hello) {}), nil},
		"a hello's version":    {hello(func(h *Hello) { h.Version-- }), ErrVersion},
		"without a life":       {hello(func(h *Hello) { h.Life = 0 }), ErrMalformed},
		"oldest of the future": {hello(func(h *Hello) { h.Oldest = 6 }), ErrMalformed},
		"long software":        {hello(func(h *Hello) { h.Software = long(128) }), nil},
		"too long software":    {hello(func(h *Hello) { h.Software = long(129) }), ErrMalformed},
		"many refused":         {hello(func(h *Hello) { h.Refused = refused(MaxMeasurements) }), nil},
		"too many refused":     {hello(func(h *Hello) { h.Refused = refused(MaxMeasurements + 1) }), ErrMalformed},
		"answer":               {answer(func(*Answer) {}), nil},
		"an answer's version":  {answer(func(a *Answer) { a.Version = 0 }), ErrVersion},
		"used unseen":          {answer(func(a *Answer) { a.Used = 5 }), ErrMalformed},
		"told untold":          {answer(func(a *Answer) { a.Told = 0 }), ErrMalformed},
		"a large plan":         {answer(func(a *Answer) { a.Plan = &Plan{Measurements: make([]Measurement, MaxMeasurements)} }), nil},
		"too large a plan":     {answer(func(a *Answer) { a.Plan = &Plan{Measurements: make([]Measurement, MaxMeasurements+1)} }), ErrMalformed},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	if CheckName(long(MaxName)) != nil || CheckName(long(MaxName+1)) == nil {
		t.Errorf("names have %d letters at most", MaxName)
	}
}
