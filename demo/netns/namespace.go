// Package netns makes small networks of network namespaces for tests and for `xdpmon demo`: two hosts with real TCP
// stacks, and between them nothing, a bridge, or a link emulator with delays and losses. Everything
// is inside of the namespaces, and nothing is added to the caller's network.
//
// The namespaces have no names below /run/netns: a name is a mount there, `ip netns add` of another process mounts over
// all of them, and then neither can be removed any more. With descriptors only they affect no other process, and the kernel
// removes them with the process, even when that is killed. To look inside: nsenter --net=/proc/PID/fd/N, where N links to net:[…].
package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"github.com/xdpmon/xdpmon/loader/namespace"
)

// Namespace is a network namespace. Its name is for messages only.
type Namespace struct {
	Name string
	in   namespace.Handle
}

// NewNamespace makes a namespace with nothing in it but a loopback that is down; the calling thread stays in its own.
func NewNamespace(name string) (*Namespace, error) {
	in, err := namespace.New()
	if err != nil {
		return nil, fmt.Errorf("network namespace %s: %w", name, err)
	}
	return &Namespace{name, in}, nil
}

// Run runs f on a thread inside of the namespace. Goroutines that f starts are outside; sockets that it opens stay
// inside wherever they are used later.
func (n *Namespace) Run(f func() error) error { return n.in.Run(f) }

// Fd is the namespace's descriptor, valid until Close.
func (n *Namespace) Fd() int { return n.in.FD() }

// Start starts a command inside of the namespace. Wait for it as usual.
func (n *Namespace) Start(cmd *exec.Cmd) error { return n.Run(cmd.Start) }

// Output runs a command inside of the namespace and returns what it printed, the error with its standard error.
func (n *Namespace) Output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var out []byte
	err := n.Run(func() (err error) {
		out, err = exec.CommandContext(ctx, name, args...).Output()
		return err
	})
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("run %s in %s: %w: %s", name, n.Name, err, exit.Stderr)
	}
	return out, err
}

// commandTime is how long a command may take.
const commandTime = time.Minute

// Command runs a line without quoting inside of the namespace: ip or tc, of iproute2.
func (n *Namespace) Command(format string, args ...any) error {
	words := strings.Fields(fmt.Sprintf(format, args...))
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	_, err := n.Output(ctx, words[0], words[1:]...)
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: install iproute2", err)
	}
	return err
}

// Dial connects from inside of the namespace. The address is literal: a name would be looked up on another thread,
// outside.
func (n *Namespace) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.DialFrom(ctx, &net.Dialer{}, network, address)
}

// DialFrom is Dial with a dialer of the caller's.
func (n *Namespace) DialFrom(ctx context.Context, d *net.Dialer, network, address string) (conn net.Conn, err error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("dial in %s: %w", n.Name, err)
	}
	d.SetMultipathTCP(false)
	err = n.Run(func() error {
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens for connections inside of the namespace.
func (n *Namespace) Listen(ctx context.Context, network, address string) (l net.Listener, err error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	err = n.Run(func() error {
		l, err = config.Listen(ctx, network, address)
		return err
	})
	return l, err
}

// ListenPacket is Listen for datagrams.
func (n *Namespace) ListenPacket(ctx context.Context, network, address string) (c net.PacketConn, err error) {
	var config net.ListenConfig
	err = n.Run(func() error {
		c, err = config.ListenPacket(ctx, network, address)
		return err
	})
	return c, err
}

// Netlink returns a netlink handle into the namespace; close it.
func (n *Namespace) Netlink() (*netlink.Handle, error) {
	h, err := netlink.NewHandleAt(netns.NsHandle(n.Fd()))
	if err != nil {
		return nil, fmt.Errorf("open netlink in %s: %w", n.Name, err)
	}
	return h, nil
}

// Close releases the namespace; the kernel removes it, with all interfaces in it, when no process and no socket is
// inside any more. It can be called twice.
func (n *Namespace) Close() error {
	return n.in.Close()
}
