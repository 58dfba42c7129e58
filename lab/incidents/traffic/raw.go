package traffic

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/builder"
)

// Wire sends whole frames through an interface: what no socket would send. Close it.
type Wire struct {
	fd       int
	src, dst [6]byte
}

// NewWire sends to the hardware address dst.
func NewWire(at *netns.Namespace, name string, dst [6]byte) (*Wire, error) {
	w := &Wire{fd: -1, dst: dst}
	err := at.Run(func() error {
		dev, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		copy(w.src[:], dev.HardwareAddr)
		if w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return unix.Bind(w.fd, &unix.SockaddrLinklayer{Ifindex: dev.Index})
	})
	if err != nil {
		return nil, fmt.Errorf("send through %s in %s: %w", name, at.Name, err)
	}
	return w, nil
}

// Send builds a frame with all checksums and sends it.
func (w *Wire) Send(s *builder.Spec) error {
	s.SrcMAC, s.DstMAC, s.Checksums, s.Whole = w.src, w.dst, true, true
	f, err := builder.Build(s)
	if err != nil {
		return err
	}
	if _, err := unix.Write(w.fd, f.Data); err != nil && err != unix.ENOBUFS {
		return fmt.Errorf("send a frame: %w", err)
	}
	return nil
}

// Stream sends what next returns, so many frames a second, until ctx ends.
func (w *Wire) Stream(ctx context.Context, rate float64, next func() *builder.Spec) error {
	began, sent := time.Now(), 0.0
	for sleep(ctx, max(2*time.Millisecond, time.Duration(1e9/rate))) {
		for due := time.Since(began).Seconds() * rate; sent < due && ctx.Err() == nil; sent++ {
			if err := w.Send(next()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close lets go of the interface.
func (w *Wire) Close() { unix.Close(w.fd) }
