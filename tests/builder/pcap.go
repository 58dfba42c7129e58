package builder

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// PcapWriter writes frames to a capture with nanoseconds; Close flushes it and leaves the underlying writer open.
type PcapWriter struct {
	buf  *bufio.Writer
	pcap *pcapgo.Writer
	link packet.Link
}

// NewPcapWriter starts a capture of frames with one kind of link.
func NewPcapWriter(w io.Writer, link packet.Link) (*PcapWriter, error) {
	buf := bufio.NewWriterSize(w, 1<<20)
	pcap := pcapgo.NewWriterNanos(buf)
	kind := layers.LinkTypeEthernet
	if link == packet.LinkRaw {
		kind = layers.LinkTypeRaw
	}
	if err := pcap.WriteFileHeader(1<<18, kind); err != nil {
		return nil, fmt.Errorf("write capture header: %w", err)
	}
	return &PcapWriter{buf: buf, pcap: pcap, link: link}, nil
}

// Write appends a frame.
func (w *PcapWriter) Write(f *packet.Frame) error {
	if f.Link != w.link {
		return fmt.Errorf("write frame of link %d to a capture of link %d: %w", f.Link, w.link, ErrSpec)
	}
	info := gopacket.CaptureInfo{Timestamp: time.Unix(0, f.Time), CaptureLength: len(f.Data), Length: f.Len}
	if err := w.pcap.WritePacket(info, f.Data); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// Close writes buffered data.
func (w *PcapWriter) Close() error {
	if err := w.buf.Flush(); err != nil {
		return fmt.Errorf("write capture: %w", err)
	}
	return nil
}
