package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// programs counts the BPF programs in the kernel.
func programs() int {
	n := 0
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		n++
	}
	return n
}

// nothingLeft looks at the interface and at the kernel: no XDP program, no clsact, as many programs as before. Programs are
// freed a moment after their last user has ended.
func nothingLeft(net *netns.Topology, before int) error {
	if err := cleanInterface(net); err != nil {
		return err
	}
	now := 0
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if now = programs(); now <= before {
			return nil
		}
	}
	return fmt.Errorf("%d programs are left in the kernel", now-before)
}

func cleanInterface(net *netns.Topology) error {
	handle, err := net.A.Netlink()
	if err != nil {
		return err
	}
	defer handle.Close()
	link, err := handle.LinkByName(net.A.Interface)
	if err != nil {
		return err
	}
	if xdp := link.Attrs().Xdp; xdp != nil && xdp.Attached {
		return fmt.Errorf("XDP program %d is left on %s", xdp.ProgId, net.A.Interface)
	}
	disciplines, err := handle.QdiscList(link)
	if err != nil {
		return err
	}
	for _, q := range disciplines {
		if q.Type() == "clsact" {
			return errors.New("clsact is left on " + net.A.Interface)
		}
	}
	return nil
}

// inside runs the binary in A's namespace.
func inside(net *netns.Topology, args ...string) (out string, err error) {
	err = net.A.Run(func() error {
		out, err = xdpmon(args...)
		return err
	})
	return out, err
}

// killed: links take their programs along when the process dies; clsact filters stay until detach, and status names them.
func killed() (detail string, err error) {
	before := programs()
	net, err := netns.New(netns.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, net.Close()) }()
	if err := startAndKill(net, "--hook", "tc"); err != nil {
		return "", err
	}
	if !older(6, 6) {
		return "nothing stays", nothingLeft(net, before)
	}
	status, err := inside(net, "status")
	if err != nil {
		return "", err
	}
	if !strings.Contains(status, "clsact") {
		return "", fmt.Errorf("status does not report what a killed process left at clsact: %s", shorten(status))
	}
	if _, err := inside(net, "detach", net.A.Interface); err != nil {
		return "", err
	}
	return "clsact filters stay without a process, status names them, detach takes them off", nothingLeft(net, before)
}

func startAndKill(net *netns.Topology, args ...string) error {
	run, err := start(net, append([]string{"--algo", "fridge"}, args...)...)
	if err != nil {
		return err
	}
	if err := run.cmd.Process.Signal(unix.SIGKILL); err != nil {
		return err
	}
	_ = run.cmd.Wait() // its error is the signal
	return nil
}

// adopted: handshakes while nobody runs are in the first window of the process that takes over.
func adopted() (detail string, err error) {
	before := programs()
	net, err := netns.New(netns.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, net.Close()) }()
	if err := startAndKill(net, "--pin", "kernels", "--hook", "tc"); err != nil {
		return "", err
	}
	if err := shakeHands(net, handshakes); err != nil {
		return "", err
	}
	run, err := start(net, "--algo", "fridge", "--pin", "kernels", "--hook", "tc")
	if err != nil {
		return "", err
	}
	if err := run.end(unix.SIGINT); err != nil {
		return "", err
	}
	if _, err := run.counted(1); err != nil {
		return "", fmt.Errorf("after the adoption: %w", err)
	}
	if _, err := inside(net, "detach", net.A.Interface); err != nil {
		return "", err
	}
	return "counts of the time without a process are in the first window; detach takes all off", nothingLeft(net, before)
}
