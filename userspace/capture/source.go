package capture

import (
	"errors"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// ErrTruncated ends a stream whose file was cut off or is damaged. Every packet before that place was delivered,
// so a caller finishes its last window first and reports the error then.
var ErrTruncated = errors.New("capture is cut off or damaged")

// ErrFormat is returned for a file that is not a capture, or of an unsupported format.
var ErrFormat = errors.New("not a pcap or pcapng capture")

// Source is a stream of frames.
type Source interface {
	// Next fills f with the next frame; f.Data is valid until the following call. It returns io.EOF at the end, or
	// what went wrong; after either it returns the same again.
	Next(f *packet.Frame) error
	// Progress returns the bytes read so far and the size of the whole, 0 when that is not known (a pipe). It may
	// be called from another goroutine.
	Progress() (read, total int64)
	// Skipped counts packets that were read but are no IP or Ethernet frames, by link type.
	Skipped() map[string]uint64
	Close() error
}
