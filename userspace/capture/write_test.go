package capture

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// ngWriter writes pcapng blocks in either byte order, also impossible ones.
type ngWriter struct {
	buf   []byte
	order binary.AppendByteOrder
}

func newNG(order binary.AppendByteOrder) *ngWriter {
	w := &ngWriter{order: order}
	w.section()
	return w
}

func (w *ngWriter) section() {
	body := w.order.AppendUint32(nil, byteOrderMagic)
	body = w.order.AppendUint16(body, 1)
	body = w.order.AppendUint16(body, 0)
	w.block(blockSection, append(body, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
}

func (w *ngWriter) block(kind uint32, body []byte) {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	size := uint32(len(body) + blockOverhead)
	w.buf = w.order.AppendUint32(w.buf, kind)
	w.buf = w.order.AppendUint32(w.buf, size)
	w.buf = append(w.buf, body...)
	w.buf = w.order.AppendUint32(w.buf, size)
}

func (w *ngWriter) option(code uint16, value []byte) []byte {
	b := w.order.AppendUint16(nil, code)
	b = w.order.AppendUint16(b, uint16(len(value)))
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func (w *ngWriter) iface(link uint16, snap uint32, options ...[]byte) {
	body := w.order.AppendUint16(nil, link)
	body = w.order.AppendUint16(body, 0)
	body = w.order.AppendUint32(body, snap)
	w.block(blockInterface, append(body, bytes.Join(options, nil)...))
}

func (w *ngWriter) resolution(v byte) []byte { return w.option(optionTsresol, []byte{v}) }

func (w *ngWriter) offset(seconds int64) []byte {
	return w.option(optionTsoffset, w.order.AppendUint64(nil, uint64(seconds)))
}

func (w *ngWriter) flags(v uint32) []byte {
	return w.option(optionFlags, w.order.AppendUint32(nil, v))
}

func (w *ngWriter) enhanced(iface uint32, ticks uint64, data []byte, wire int, options ...[]byte) {
	body := w.order.AppendUint32(nil, iface)
	w.block(blockEnhanced, w.packet(body, ticks, data, wire, options))
}

func (w *ngWriter) obsolete(iface uint16, ticks uint64, data []byte, wire int, options ...[]byte) {
	body := w.order.AppendUint16(nil, iface)
	body = w.order.AppendUint16(body, 9) // drops
	w.block(blockPacket, w.packet(body, ticks, data, wire, options))
}

func (w *ngWriter) packet(body []byte, ticks uint64, data []byte, wire int, options [][]byte) []byte {
	body = w.order.AppendUint32(body, uint32(ticks>>32))
	body = w.order.AppendUint32(body, uint32(ticks))
	body = w.order.AppendUint32(body, uint32(len(data)))
	body = w.order.AppendUint32(body, uint32(wire))
	body = append(body, data...)
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	return append(body, bytes.Join(options, nil)...)
}

func (w *ngWriter) simple(data []byte, wire int) {
	w.block(blockSimple, append(w.order.AppendUint32(nil, uint32(wire)), data...))
}

// classic writes a pcap file.
func classic(order binary.AppendByteOrder, magic, link uint32, frames ...packet.Frame) []byte {
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(b, 4)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = order.AppendUint32(b, 65535)
	b = order.AppendUint32(b, link)
	unit := int64(1000)
	if magic == magicNano {
		unit = 1
	}
	for _, f := range frames {
		b = order.AppendUint32(b, uint32(f.Time/1e9))
		b = order.AppendUint32(b, uint32(f.Time%1e9/unit))
		b = order.AppendUint32(b, uint32(len(f.Data)))
		b = order.AppendUint32(b, uint32(f.Len))
		b = append(b, f.Data...)
	}
	return b
}

func zipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// readAll reads copies of all frames and the error that ended the stream.
func readAll(src Source) ([]packet.Frame, error) {
	var frames []packet.Frame
	for {
		var f packet.Frame
		if err := src.Next(&f); err != nil {
			return frames, err
		}
		f.Data = bytes.Clone(f.Data)
		frames = append(frames, f)
	}
}

func mustRead(t *testing.T, b []byte) []packet.Frame {
	t.Helper()
	r, err := NewReader("test", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	frames, err := readAll(r)
	if err != io.EOF {
		t.Fatal(err)
	}
	return frames
}

func checkFrames(t *testing.T, got, want []packet.Frame) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d frames, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if !bytes.Equal(g.Data, w.Data) {
			t.Errorf("frame %d: bytes % x, want % x", i, g.Data, w.Data)
		}
		g.Data, w.Data = nil, nil
		if g.Time != w.Time || g.Len != w.Len || g.Link != w.Link || g.Direction != w.Direction || g.Interface != w.Interface {
			t.Errorf("frame %d: %+v, want %+v", i, g, w)
		}
	}
}

var errBroken = errors.New("disk on fire")

// broken delivers some bytes and then fails.
type broken struct{ data io.Reader }

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.data.Read(p)
	if err == io.EOF {
		err = errBroken
	}
	return n, err
}
