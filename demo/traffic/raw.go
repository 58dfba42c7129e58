package traffic

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// Wire sends whole frames through an interface, such as no socket would send. Close it.
type Wire struct {
	Source, Hop [6]byte // hardware addresses of the interface, and of the router that takes the frames
	fd          int
}

// NewWire sends to the hardware address hop.
func NewWire(at *netns.Namespace, name string, hop [6]byte) (*Wire, error) {
	w := &Wire{fd: -1, Hop: hop}
	err := at.Run(func() error {
		dev, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		copy(w.Source[:], dev.HardwareAddr)
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

// Send sends a frame; it is lost if the interface's queue is full.
func (w *Wire) Send(frame []byte) error {
	if _, err := unix.Write(w.fd, frame); err != nil && err != unix.ENOBUFS {
		return fmt.Errorf("send a frame: %w", err)
	}
	return nil
}

// Stream sends the frames that next returns, at a rate a second, until ctx ends.
func (w *Wire) Stream(ctx context.Context, rate float64, next func() ([]byte, error)) error {
	began, sent := time.Now(), 0.0
	for sleep(ctx, max(2*time.Millisecond, time.Duration(1e9/rate))) {
		for due := time.Since(began).Seconds() * rate; sent < due && ctx.Err() == nil; sent++ {
			frame, err := next()
			if err == nil {
				err = w.Send(frame)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Close closes the socket.
func (w *Wire) Close() { unix.Close(w.fd) }
