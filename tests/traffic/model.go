// Package traffic generates packets whose truth is known: request and response with chosen delays (LogUniform, ISP),
// and flows of chosen sizes (Zipf). Every model is a stream in time order, the same for the same seed, made of
// packets that Decode would read from their frames; ten million take some seconds.
package traffic

import (
	"io"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Start is the time of the first packet of every model, in ns: 0 means "no time" to the data plane.
const Start = int64(1_000_000_000)

// Model is a stream of packets in time order.
type Model interface {
	// Next fills p and returns true, or returns false at the end.
	Next(p *packet.Packet) bool
}

// Truth is the exact result of a model of requests and responses; it is complete when Next has returned false.
type Truth struct {
	Delays   []int64 // ns, of every answered request, in the order of the responses
	Requests uint64  // answered or not
	Strays   uint64  // responses that answer no request
}

// Match is the share of requests that were answered.
func (t *Truth) Match() float64 {
	if t.Requests == 0 {
		return 0
	}
	return float64(len(t.Delays)) / float64(t.Requests)
}

// Frames converts a model to the input of a replay: headers only, Frame.Len as on the wire.
func Frames(m Model) capture.Source { return &frames{model: m} }

type frames struct {
	model  Model
	packer builder.Packer
	p      packet.Packet
	err    error
}

// Next implements capture.Source.
func (f *frames) Next(frame *packet.Frame) error {
	if f.err == nil && !f.model.Next(&f.p) {
		f.err = io.EOF
	}
	if f.err == nil {
		f.err = f.packer.Frame(&f.p, frame)
	}
	return f.err
}

// Progress implements capture.Source; nothing is read from anywhere.
func (f *frames) Progress() (read, total int64) { return 0, 0 }

// Skipped implements capture.Source.
func (f *frames) Skipped() map[string]uint64 { return nil }

// Close implements capture.Source.
func (f *frames) Close() error { return nil }

// WritePcap writes a model's frames as a capture with nanoseconds.
func WritePcap(w io.Writer, m Model) error {
	out, err := builder.NewPcapWriter(w, packet.LinkEthernet)
	if err != nil {
		return err
	}
	src := Frames(m)
	for {
		var f packet.Frame
		if err := src.Next(&f); err == io.EOF {
			return out.Close()
		} else if err != nil {
			return err
		}
		if err := out.Write(&f); err != nil {
			return err
		}
	}
}
