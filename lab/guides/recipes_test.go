package guides

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

var (
	recipeFence = regexp.MustCompile("(?s)```(\\w*)\n(.*?)```\n")
	remark      = regexp.MustCompile(`\s+#.*$`)
	named       = regexp.MustCompile(`/etc/xdpmon/(\w+\.yaml)`)
)

// TestRecipes: the files and commands of docs/ahab.md and docs/slices.md are taken as they stand, on interfaces of their names. A command that does not end is ended after a
// second; what is of a kernel that this one is not is left out.
func TestRecipes(t *testing.T) {
	testutil.NeedRoot(t)
	root := testutil.Root(t)
	bin := programs(t, root)
	network := place(t)
	guests := hypervisor(t, network)
	t.Run("ahab", func(t *testing.T) {
		dir := t.TempDir()
		captures(t, dir)
		if err := os.Rename(filepath.Join(dir, "capture.pcap"), filepath.Join(dir, "trace.pcap")); err != nil {
			t.Fatal(err)
		}
		ran := 0
		for _, b := range recipes(t, filepath.Join(root, "docs/ahab.md")) {
			if b.language == "yaml" {
				save(t, filepath.Join(dir, "slices.yaml"), b.text)
			}
		}
		for _, b := range recipes(t, filepath.Join(root, "docs/ahab.md")) {
			for line := range strings.Lines(b.text) {
				if command := bounded(line); command != "" {
					ran++
					run(t, network, dir, bin, command)
				}
			}
		}
		if ran < 6 {
			t.Errorf("only %d commands", ran)
		}
	})
	t.Run("slices", func(t *testing.T) {
		dir := t.TempDir()
		files := 0
		for _, b := range recipes(t, filepath.Join(root, "docs/slices.md")) {
			if b.language != "yaml" {
				continue
			}
			name := []string{"tree.yaml", "slices.yaml", "agent.yaml"}[files]
			files++
			save(t, filepath.Join(dir, name), named.ReplaceAllString(b.text, dir+"/$1"))
		}
		if files != 3 {
			t.Fatalf("%d files", files)
		}
		run(t, network, dir, bin, "xdpmon attach eth0 --algo ahab --set ahab.config=tree.yaml --duration 1s")
		run(t, network, dir, bin, "chmod 600 agent.yaml; xdpmon agent --config agent.yaml --check")
		holds(t, network, guests, dir, bin)
	})
}

type recipe struct{ language, text string }

func recipes(t *testing.T, page string) (list []recipe) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range recipeFence.FindAllStringSubmatch(string(text), -1) {
		list = append(list, recipe{m[1], m[2]})
	}
	return list
}

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// bounded is a command of xdpmon that ends; none: the line is something else.
func bounded(line string) string {
	command := remark.ReplaceAllString(strings.TrimSpace(line), "")
	switch {
	case strings.HasPrefix(command, "sudo xdpmon attach "):
		return command + " --duration 1s"
	case strings.HasPrefix(command, "xdpmon replay "):
		return command
	}
	return ""
}

// hypervisor adds three interfaces of guests to A, whose other ends are in B, and an uplink. It returns the guests' ends.
func hypervisor(t *testing.T, network *netns.Topology) (guests []string) {
	t.Helper()
	for n, name := range []string{"vnet0", "vnet1", "vnet2", "eth1"} {
		guest := fmt.Sprintf("guest%d", n)
		for _, c := range []string{"link add %[1]s type veth peer name %[2]s", "link set %[1]s up", "link set %[2]s up", "addr add 10.79.%[3]d.1/24 dev %[1]s"} {
			if err := network.A.Command("ip "+c, name, guest, n); err != nil {
				t.Fatal(err)
			}
		}
		guests = append(guests, guest)
	}
	return guests[:3]
}

// holds: the recipe for a hypervisor with a thousandth of its rates, so that datagrams of three guests exceed them: no guest passes its ceiling, ahab.burst of it and a packet in a window.
func holds(t *testing.T, network *netns.Topology, guests []string, dir, bin string) {
	t.Helper()
	const ceiling, burst = 2e6, .2
	text, err := os.ReadFile(filepath.Join(dir, "slices.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(dir, "small.yaml"), strings.ReplaceAll(string(text), "Gbit", "Mbit"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", "exec xdpmon attach vnet0 vnet1 vnet2 --algo ahab --set ahab.config=small.yaml --hook tc --direction ingress --window 500ms --duration 3s --output json")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = network.A.Start(cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	sending, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, guest := range guests {
		all.Go(func() { shout(t, sending, network, guest) })
	}
	judged := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		judged += judge(t, lines.Bytes(), ceiling, burst)
	}
	stop()
	all.Wait()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, complaint.String())
	}
	if judged < len(guests) {
		t.Errorf("only %d windows of guests had more than their ceilings to pass: %s", judged, complaint.String())
	}
}

// judge counts slices that had more to pass than they may.
func judge(t *testing.T, line []byte, ceiling, burst float64) (judged int) {
	t.Helper()
	var w struct {
		Window struct{ Start, End int64 }
		Report struct {
			Unlimited float64
			Slices    []struct {
				Slice        string
				Demand, Used float64
			}
		}
	}
	if err := json.Unmarshal(line, &w); err != nil {
		t.Fatalf("read %q: %v", line, err)
	}
	if w.Report.Unlimited > 0 { // the control loop was away for longer than the lease
		return 0
	}
	for _, s := range w.Report.Slices {
		took := float64(w.Window.End-w.Window.Start) / 1e9
		// Counts are read apart: a packet more.
		if most := ceiling*(took+burst) + 2*8*1514; s.Used*took > most {
			t.Errorf("%s passed %.0f bits in %.3f s, at most %.0f may: %s", s.Slice, s.Used*took, took, most, line)
		}
		if s.Demand > 1.5*ceiling {
			judged++
		}
	}
	return judged
}

// shout sends datagrams of 8 Mbit/s from a guest's end, as frames: the two ends are in one namespace.
func shout(t *testing.T, ctx context.Context, network *netns.Topology, guest string) {
	var fd int
	err := network.A.Run(func() error {
		device, err := net.InterfaceByName(guest)
		if err != nil {
			return err
		}
		if fd, err = syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0); err != nil {
			return err
		}
		return syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: 8, Ifindex: device.Index})
	})
	if err != nil {
		t.Error(err)
		return
	}
	defer syscall.Close(fd)
	frame := make([]byte, 1042)
	copy(frame, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, // Ethernet
		0x45, 0, 4, 4, 0, 0, 0, 0, 64, 17, 0, 0, 10, 79, 9, 2, 10, 79, 9, 1, // 1028 bytes of IPv4
		4, 0, 4, 1, 3, 240, 0, 0}) // UDP
	for ctx.Err() == nil {
		for range 10 {
			_, _ = syscall.Write(fd, frame)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
