package capture

import (
	"errors"
	"io"
	"sync/atomic"
)

const (
	inputSize = 256 << 10
	maxRecord = 16 << 20 // bytes; no link carries a larger packet, so a longer record is damage
)

// input is a window that slides over a stream. It hands out slices of itself, so that a packet is never copied.
type input struct {
	src  io.Reader
	buf  []byte
	r, w int
	base int64 // offset of buf[0] in the stream
	err  error
}

func newInput(src io.Reader) *input {
	return &input{src: src, buf: make([]byte, inputSize)}
}

// offset is the stream's position of the next unread byte.
func (in *input) offset() int64 { return in.base + int64(in.r) }

// peek returns the next n bytes without consuming them. With none left the error is io.EOF, with fewer than n it is
// io.ErrUnexpectedEOF and the remaining bytes are returned. The slice is valid until the next peek or skip.
func (in *input) peek(n int) ([]byte, error) {
	if in.w-in.r >= n {
		return in.buf[in.r : in.r+n], nil
	}
	return in.fill(n)
}

func (in *input) fill(n int) ([]byte, error) {
	in.slide(n)
	for in.w < n && in.err == nil {
		var k int
		k, in.err = in.src.Read(in.buf[in.w:])
		in.w += k
	}
	if in.w >= n {
		return in.buf[:n], nil
	}
	return in.buf[:in.w], in.shortage()
}

// slide moves unread bytes to the front, so that n bytes fit.
func (in *input) slide(n int) {
	unread := in.buf[in.r:in.w]
	if n > len(in.buf) {
		in.buf = make([]byte, n+inputSize)
	}
	copy(in.buf, unread)
	in.base += int64(in.r)
	in.r, in.w = 0, len(unread)
}

// shortage is the error if fewer bytes are left than requested.
func (in *input) shortage() error {
	if !errors.Is(in.err, io.EOF) {
		return in.err
	}
	if in.w == 0 {
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}

// advance consumes n bytes that a peek returned.
func (in *input) advance(n int) { in.r += n }

// skip consumes n bytes, however many, without keeping them.
func (in *input) skip(n int64) error {
	for n > 0 {
		step := int(min(n, inputSize))
		if _, err := in.peek(step); err != nil {
			return noEOF(err)
		}
		in.advance(step)
		n -= int64(step)
	}
	return nil
}

// noEOF is for places where the end of the stream is not a regular one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// meter counts what passes, for progress.
type meter struct {
	src  io.Reader
	read atomic.Int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.src.Read(p)
	m.read.Add(int64(n))
	return n, err
}
