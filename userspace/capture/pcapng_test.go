package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

const second = int64(1e9)

func TestPcapngInterfaces(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		w := newNG(order)
		w.iface(1, 0)
		w.iface(linkRaw, 0, w.resolution(9), w.offset(100))
		w.iface(1, 0, w.resolution(0x80|20))
		w.block(0x0bad, payload(1001, 0)) // unknown, and longer than the file's usual blocks
		w.enhanced(0, 5_000_001, payload(61, 1), 61, w.flags(2))
		w.enhanced(1, 7_000_000_001, payload(20, 2), 1500, w.flags(1))
		w.enhanced(2, 3<<20+1<<19, payload(62, 3), 62, w.option(1, []byte("a comment")), w.flags(0xfffffffe), w.option(0, nil))
		w.simple(payload(33, 4), 33)
		w.obsolete(1, 8_000_000_000, payload(21, 5), 21, w.flags(2))
		w.section()
		w.iface(1, 10)
		w.simple(payload(12, 6), 40)
		w.enhanced(0, 9_000_000, payload(10, 7), 40)
		checkFrames(t, mustRead(t, w.buf), []packet.Frame{
			{Time: 5*second + 1000, Data: payload(61, 1), Len: 61, Direction: packet.Egress},
			{Time: 107*second + 1, Data: payload(20, 2), Len: 1500, Link: packet.LinkRaw, Interface: 1},
			{Time: 3*second + second/2, Data: payload(62, 3), Len: 62, Direction: packet.Egress, Interface: 2},
			{Time: 3*second + second/2, Data: payload(33, 4), Len: 33},
			{Time: 108 * second, Data: payload(21, 5), Len: 21, Link: packet.LinkRaw, Interface: 1, Direction: packet.Egress},
			{Time: 108 * second, Data: payload(10, 6), Len: 40, Interface: 3},
			{Time: 9 * second, Data: payload(10, 7), Len: 40, Interface: 3},
		})
	}
}

func TestClocks(t *testing.T) {
	for _, c := range []struct {
		resolution byte
		offset     int64
		ticks      uint64
		want       int64
	}{
		{6, 0, 1700000000_123456, 1700000000_123456000},
		{9, 0, 1700000000_123456789, 1700000000_123456789},
		{0, 0, 1700000000, 1700000000 * second},
		{3, -10, 1700000000_123, 1699999990_123000000},
		{12, 0, 1700000_123456789012, 1700000_123456789},
		{19, 0, 1_2345678901234567890 % math.MaxUint64, 1_234567890},
		{0x80 | 32, 0, 3<<32 | 1<<31, 3_500000000},
		{0x80 | 63, 0, 1<<63 | 1<<62, 1_500000000},
		{0x80, 0, 7, 7_000000000},
		{6, 0, math.MaxUint64, math.MaxInt64},             // the year 586,912: the latest that can be represented
		{0, math.MaxInt64, math.MaxUint64, math.MaxInt64}, // sums that leave 64 bits
	} {
		units, err := resolution(c.resolution)
		if err != nil {
			t.Fatal(err)
		}
		iface := ngInterface{units: units, offset: c.offset}
		if got := iface.ns(c.ticks); got != c.want {
			t.Errorf("resolution %#x, offset %d, ticks %d: %d ns, want %d", c.resolution, c.offset, c.ticks, got, c.want)
		}
	}
}

// Damage in the middle keeps what was before it.
func TestPcapngDamage(t *testing.T) {
	good := threeFrames()[0]
	for _, c := range []struct {
		name     string
		damage   func(w *ngWriter)
		contains string
	}{
		{"clock too fine", func(w *ngWriter) { w.iface(1, 0, w.resolution(64)) }, ""},
		{"binary clock too fine", func(w *ngWriter) { w.iface(1, 0, w.resolution(0x80|64)) }, ""},
		{"length below header", func(w *ngWriter) { w.buf = append(w.buf, 6, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0) }, "block of type 0x6 claims a length of 8 bytes, at least 12 is possible"},
		{"trailing length differs", func(w *ngWriter) { w.simple(payload(20, 0), 20); w.buf[len(w.buf)-4]++; w.buf[len(w.buf)-3]++ }, "block of type 0x3 has length 36 in front and 296 at its end"},
		{"captured more than the block", func(w *ngWriter) { w.enhanced(0, 1, payload(8, 0), 8); w.buf[len(w.buf)-20]++ }, "packet claims 9 captured bytes in a block that holds 8"},
		{"enhanced without header", func(w *ngWriter) { w.block(blockEnhanced, payload(16, 0)) }, "enhanced packet block of 28 bytes"},
		{"obsolete without header", func(w *ngWriter) { w.block(blockPacket, payload(16, 0)) }, "packet block of 28 bytes"},
		{"simple without header", func(w *ngWriter) { w.block(blockSimple, nil) }, "simple packet block of 12 bytes"},
		{"interface without header", func(w *ngWriter) { w.block(blockInterface, payload(4, 0)) }, "of 16 bytes"},
		{"section without header", func(w *ngWriter) { w.block(blockSection, w.order.AppendUint32(nil, byteOrderMagic)) }, ""},
		{"section of no byte order", func(w *ngWriter) { w.block(blockSection, payload(16, 0)) }, "section header with byte order mark"},
		{"more interfaces than there can be", func(w *ngWriter) {
			for range maxInterfaces {
				w.iface(1, 0, nil)
			}
		}, ""},
		{"block of 2 GiB", func(w *ngWriter) { w.buf = append(w.buf, 6, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0) }, "block of type 0x6 claims 2147483648 bytes, more than any packet has"},
		{"unknown block of 2 GiB", func(w *ngWriter) { w.buf = append(w.buf, 66, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0) }, "file ends inside a block of type 0x42 with 2147483648 bytes"},
	} {
		w := newNG(binary.LittleEndian)
		w.iface(1, 0, w.resolution(9))
		w.enhanced(0, uint64(good.Time), good.Data, good.Len)
		c.damage(w)
		w.enhanced(0, 1, good.Data, good.Len)
		r, err := NewReader(c.name, bytes.NewReader(w.buf))
		if err != nil {
			t.Fatal(err)
		}
		frames, err := readAll(r)
		if !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), c.contains) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.contains)
		}
		checkFrames(t, frames, []packet.Frame{good})
	}
}

func TestPcapngVersion(t *testing.T) {
	w := newNG(binary.LittleEndian)
	w.buf[12] = 2
	r, err := NewReader("future", bytes.NewReader(w.buf))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Next(new(packet.Frame)); !errors.Is(err, ErrFormat) {
		t.Errorf("version 2: %v", err)
	}
}

// One odd interface must not keep the others from being replayed.
func TestUndescribedInterface(t *testing.T) {
	w := newNG(binary.LittleEndian)
	w.iface(1, 0)
	w.enhanced(7, 1, payload(60, 1), 60)
	w.enhanced(0, 1, payload(60, 2), 60)
	r, err := NewReader("odd", bytes.NewReader(w.buf))
	if err != nil {
		t.Fatal(err)
	}
	frames, _ := readAll(r)
	checkFrames(t, frames, []packet.Frame{{Time: 1000, Data: payload(60, 2), Len: 60}})
	if n := r.Skipped()["packet of an interface that the capture does not describe (7)"]; n != 1 {
		t.Errorf("skipped %v", r.Skipped())
	}
}

// Reasons contain numbers from the file: however many there are, a bounded number is distinguished, and every packet is counted.
func TestReasonsAreBounded(t *testing.T) {
	const packets = 1000
	w := newNG(binary.LittleEndian)
	for id := range uint32(packets) {
		w.enhanced(id, 1, payload(60, 0), 60)
	}
	r, err := NewReader("strangers", bytes.NewReader(w.buf))
	if err != nil {
		t.Fatal(err)
	}
	if frames, err := readAll(r); len(frames) > 0 || err != io.EOF {
		t.Fatalf("%d packets, error %v", len(frames), err)
	}
	sum := uint64(0)
	for _, n := range r.Skipped() {
		sum += n
	}
	if reasons := len(r.Skipped()); reasons > maxReasons+1 || sum != packets {
		t.Errorf("%d reasons for %d packets, at most %d for %d", reasons, sum, maxReasons+1, packets)
	}
}
