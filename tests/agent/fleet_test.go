package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/beaucoup" // the oracles of what agents measure
	coordinated "github.com/xdpmon/xdpmon/userspace/coordinator"
	_ "github.com/xdpmon/xdpmon/userspace/fridge"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	_ "github.com/xdpmon/xdpmon/userspace/lean"
	"github.com/xdpmon/xdpmon/userspace/packet"
	_ "github.com/xdpmon/xdpmon/userspace/precision"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// members is how many hosts a fleet has.
const members = 4

// fleet is hosts in namespaces, each with an agent, and a coordinator in a namespace that all of them reach: real processes, mutual TLS.
type fleet struct {
	t           *testing.T
	dir         string
	hub         *netns.Host
	hosts       [members]*netns.Topology
	agents      [members]*running
	places      [members]*place
	coordinator *exec.Cmd
	log         lockedBuffer
	window      time.Duration
}

// newFleet starts everything; more is added to the configurations of hosts, by number.
func newFleet(t *testing.T, window time.Duration, algorithms string, more map[int]string) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), hub: quietNetwork(t).A, window: window}
	f.run("keys", "init", "--dir", f.file("keys"))
	f.run("keys", "coordinator", "central", "--dir", f.file("keys"), "--host", "10.78.0.1", "--host", "10.78.1.1", "--host", "10.78.2.1", "--host", "10.78.3.1")
	text := fmt.Sprintf(`measurements: [{name: edge, window: %v, wait: 3s, seed: 77, algorithms: %s}]
bus: {listen: "0.0.0.0:4222", keys: %s}
data: %s
socket: %s
outputs: [{json: %s}]
`, window, algorithms, f.keys("central"), f.file("data"), f.file("coordinator.sock"), f.file("answers.jsonl"))
	if err := os.WriteFile(f.file("coordinator.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.killCoordinator)
	f.startCoordinator()
	for n := range f.hosts {
		f.hosts[n] = quietNetworkOf(t, netns.Options{MTU: 9000}) // segments of models are whole ones, with options
		f.join(n)
		name := fmt.Sprintf("h%d", n)
		f.run("keys", "agent", name, "--dir", f.file("keys"))
		f.places[n] = newPlace(t, f.hosts[n].A)
		f.places[n].write(more[n] + fmt.Sprintf(`bus: {servers: ["tls://10.78.%d.1:4222"], name: %s, plan: %s, keys: %s}
instances: [{name: edge, interfaces: [%s], direction: ingress, hook: tc, shared: true}]
`, n, name, f.places[n].file("plan"), f.keys(name), f.hosts[n].A.Interface))
		f.agents[n] = f.places[n].start(binary)
	}
	for n := range f.agents {
		eventually(t, "measuring", func() bool { return len(f.agents[n].attached("edge")) == 1 })
	}
	return f
}

func (f *fleet) file(name string) string { return filepath.Join(f.dir, name) }

func (f *fleet) keys(name string) string {
	at := func(file string) string { return filepath.Join(f.dir, "keys", file) }
	return fmt.Sprintf("{ca: %s, certificate: %s, key: %s}", at("ca.crt"), at(name+".crt"), at(name+".key"))
}

func (f *fleet) run(args ...string) {
	f.t.Helper()
	if out, err := exec.Command(coordinatorBinary(f.t), args...).CombinedOutput(); err != nil {
		f.t.Fatalf("xdpmon-coordinator %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// join makes the way from a host to the coordinator.
func (f *fleet) join(n int) {
	f.t.Helper()
	near, far := netlinkOf(f.t, f.hosts[n].A), netlinkOf(f.t, f.hub)
	peer := fmt.Sprintf("xdpmon-h%d", n)
	err := near.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "xdpmon-c"}, PeerName: peer, PeerNamespace: netlink.NsFd(f.hub.Fd())})
	if err != nil {
		f.t.Fatal(err)
	}
	for handle, end := range map[*netlink.Handle][2]string{near: {"xdpmon-c", "2"}, far: {peer, "1"}} {
		link, err := handle.LinkByName(end[0])
		if err == nil {
			err = handle.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(fmt.Sprintf("10.78.%d.%s", n, end[1])), Mask: net.CIDRMask(24, 32)}})
		}
		if err == nil {
			err = handle.LinkSetUp(link)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

// cut interrupts the path from a host to the coordinator, or restores it.
func (f *fleet) cut(n int, away bool) {
	f.t.Helper()
	handle := netlinkOf(f.t, f.hub)
	link, err := handle.LinkByName(fmt.Sprintf("xdpmon-h%d", n))
	if err == nil && away {
		err = handle.LinkSetDown(link)
	} else if err == nil {
		err = handle.LinkSetUp(link)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) startCoordinator() {
	f.t.Helper()
	f.coordinator = exec.Command(coordinatorBinary(f.t), "--config", f.file("coordinator.yaml"))
	f.coordinator.Stderr = &f.log
	f.coordinator.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := f.hub.Start(f.coordinator); err != nil {
		f.t.Fatal(err)
	}
}

// killCoordinator kills it without notice.
func (f *fleet) killCoordinator() {
	_ = f.coordinator.Process.Kill()
	_ = f.coordinator.Wait()
	if f.t.Failed() {
		f.t.Logf("log of the coordinator:\n%s", f.log.String())
	}
}

func (f *fleet) health() (h coordinated.Health) {
	f.t.Helper()
	ask(f.t, f.file("coordinator.sock"), &h)
	return h
}

// answer is what the tests read of a coordinator's line.
type answer struct {
	line
	Packets struct{ Seen uint64 }
	Lost    map[string]uint64
	Hosts   *report.Hosts
	Report  map[string]any
}

// answers are the coordinator's lines; one that a kill has cut is left out.
func (f *fleet) answers() (list []answer) {
	f.t.Helper()
	text, err := os.ReadFile(f.file("answers.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	for l := range bytes.Lines(text) {
		var a answer
		if json.Unmarshal(l, &a) == nil && a.Algorithm != "" {
			list = append(list, a)
		}
	}
	return list
}

// sending is a packet that was sent, and when.
type sending struct {
	host int
	p    packet.Packet
}

// send sends every host its part of a model, at the model's times; the result is what was sent, with its times.
func (f *fleet) send(m traffic.Model) (sent []sending) {
	f.t.Helper()
	var parts [members][]packet.Packet
	for p := (packet.Packet{}); m.Next(&p); {
		parts[spread(&p)] = append(parts[spread(&p)], p)
	}
	began := hostclock.Now() - traffic.Start
	var mu sync.Mutex
	var all sync.WaitGroup
	for n := range parts {
		all.Go(func() {
			if err := f.inject(n, began, parts[n]); err != nil {
				f.t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, p := range parts[n] {
				sent = append(sent, sending{n, p})
			}
		})
	}
	all.Wait()
	slices.SortStableFunc(sent, func(a, b sending) int { return int(a.p.Time - b.p.Time) })
	return sent
}

// spread: both directions of a connection pass the same host.
func spread(p *packet.Packet) int {
	sum := 0
	for _, b := range append(p.Src.AsSlice(), p.Dst.AsSlice()...) {
		sum += int(b)
	}
	return (sum + int(p.SrcPort) + int(p.DstPort)) % members
}

// inject sends packets to a host's interface, and writes down when each left.
func (f *fleet) inject(n int, began int64, packets []packet.Packet) error {
	from := f.hosts[n].B
	socket := -1
	err := from.Run(func() (err error) {
		socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	to := &unix.SockaddrLinklayer{Ifindex: from.Index, Protocol: 0x0300}
	var packer builder.Packer
	buffer := make([]byte, 1<<16)
	for i := range packets {
		p := &packets[i]
		var frame packet.Frame
		if err := packer.Frame(p, &frame); err != nil {
			return err
		}
		clear(buffer[copy(buffer, frame.Data):frame.Len])
		time.Sleep(time.Duration(began + p.Time - hostclock.Now()))
		for {
			p.Time = hostclock.Now()
			if err := unix.Sendto(socket, buffer[:frame.Len], 0, to); err == nil {
				break
			} else if err != unix.ENOBUFS && err != unix.EINTR {
				return err
			}
		}
	}
	return nil
}

// scanned is how many destinations a scanner tries.
const scanned = 400

// several is traffic for all algorithms: handshakes, connections of which some lose segments, and scans.
func several(t *testing.T) traffic.Model {
	t.Helper()
	list := *traffic.NewInsistent(traffic.InsistentOptions{Requests: 4000, Gap: 300 * time.Microsecond, Delay: 200 * time.Millisecond, Seed: 7})
	lean, err := traffic.NewLean(traffic.LeanOptions{Packets: 8000, Flows: 400, Heavy: 40, Victims: 10, Span: 1500 * time.Millisecond,
		Delay: 20 * time.Millisecond, Loss: .08, Late: .04, Again: .02, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	for p := (packet.Packet{}); lean.Next(&p); {
		list = append(list, p)
	}
	for n := range scanned {
		for key := range 10 {
			list = append(list, packet.Packet{Time: traffic.Start + int64(n)*2e6 + int64(key), Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: 1,
				TCPFlags: packet.SYN, Len: 54, Src: netip.AddrFrom4([4]byte{10, 99, 0, byte(key)}), SrcPort: uint16(20000 + n), DstPort: uint16(1 + n),
				Dst: netip.AddrFrom4([4]byte{11, byte(key), byte(n >> 8), byte(n)})})
		}
	}
	end := traffic.Start + int64(1800*time.Millisecond)
	list = slices.DeleteFunc(list, func(p packet.Packet) bool { return p.Time > end })
	return traffic.InTime(list)
}

// truth is the exact answer of all packets, as an object of a JSON line.
func truth(t *testing.T, name string, set map[string]string, sent []sending) map[string]any {
	t.Helper()
	d, err := algo.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	i, err := d.New(v, algo.Env{Seed: 77})
	if err != nil {
		t.Fatal(err)
	}
	o := i.(algo.OracleProvider).Oracle()
	for n := range sent {
		o.Packet(&sent[n].p)
	}
	text, err := json.Marshal(report.Line{Algorithm: name, Report: o.Window(report.Window{Start: sent[0].p.Time, End: sent[len(sent)-1].p.Time})})
	var a answer
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a.Report
}

// held compares every number that is printed with an interval, or with bounds (of a flow what was counted is one), with the truth's number of the same name: rows
// of tables by their texts.
func held(estimate, truth any) (inside, of int) {
	switch e := estimate.(type) {
	case map[string]any:
		known, _ := truth.(map[string]any)
		for name, x := range e {
			low, high := number(e, name+"_low", name+"_at_least", "counted"), number(e, name+"_high", name+"_at_most")
			if want := number(known, name); !math.IsNaN(low + high + want) {
				if of++; low <= want && want <= high {
					inside++
				}
			}
			i, n := held(x, known[name])
			inside, of = inside+i, of+n
		}
	case []any:
		rows := map[string]any{}
		list, _ := truth.([]any)
		for _, r := range list {
			rows[label(r)] = r
		}
		for _, r := range e {
			i, n := held(r, rows[label(r)])
			inside, of = inside+i, of+n
		}
	}
	return inside, of
}

func number(object map[string]any, names ...string) float64 {
	for _, name := range names {
		if x, ok := object[name].(float64); ok {
			return x
		}
	}
	return math.NaN()
}

// label identifies a row.
func label(row any) string {
	object, _ := row.(map[string]any)
	text := ""
	for _, name := range []string{"src", "sport", "dst", "dport", "proto", "query", "key"} {
		text += fmt.Sprint(object[name], " ")
	}
	return text
}

// Four hosts with agents, and a coordinator: traffic is spread over them, and the coordinator's answer is compared with the exact
// answer of all packets.
func TestFleet(t *testing.T) {
	if os.Getenv("XDPMON_FLEET_RUNS") == "" { // intervals of one run may miss the truth, and a busy machine is late with packets
		t.Skip("an interval of one run may miss the truth, and a busy machine is late: make fleet runs it many times")
	}
	settings := map[string]map[string]string{"fridge": nil, "lean": nil, "precision": {"top": "64"},
		"beaucoup": {"queries": "spread: count distinct dst by src > 200 in 10m", "export": "true"}}
	f := newFleet(t, 4*time.Second, `{fridge: {}, lean: {}, precision: {top: 64}, beaucoup: {queries: "spread: count distinct dst by src > 200 in 10m", export: true}}`, nil)
	eventually(t, "a window of all hosts", func() bool {
		list := f.answers()
		return len(list) > 0 && list[len(list)-1].Hosts.Merged == members && list[len(list)-1].Lost["hosts_missing"] == 0
	})
	var sent []sending
	var at int64
	for {
		time.Sleep(time.Until(time.Now().Truncate(f.window).Add(f.window + 300*time.Millisecond)))
		at = time.Now().Truncate(f.window).UnixNano()
		sent = f.send(several(t))
		if end := time.Now().Add(100 * time.Millisecond).Truncate(f.window).UnixNano(); end == at {
			break
		}
		t.Log("the machine is too busy: packets were sent in more than one window; again")
	}
	of := map[string]answer{}
	eventually(t, "the answers", func() bool {
		for _, a := range f.answers() {
			if a.Window.Start == at {
				of[a.Algorithm] = a
			}
		}
		return len(of) == len(settings)
	})
	for name, set := range settings {
		a := of[name]
		if a.Packets.Seen != uint64(len(sent)) || a.Hosts.Merged != members || a.Lost["hosts_missing"]+a.Lost["windows_late"] != 0 {
			t.Errorf("%s: %d of %d packets of %d hosts, lost %v", name, a.Packets.Seen, len(sent), a.Hosts.Merged, a.Lost)
		}
		inside, n := held(a.Report, truth(t, name, set, sent))
		if name == "beaucoup" {
			destinations := map[string]map[netip.Addr]bool{}
			for _, s := range sent {
				key := "src=" + s.p.Src.String()
				if destinations[key] == nil {
					destinations[key] = map[netip.Addr]bool{}
				}
				destinations[key][s.p.Dst] = true
			}
			for _, r := range a.Report["alerts"].([]any) {
				row := r.(map[string]any)
				count := float64(len(destinations[row["key"].(string)]))
				if n++; number(row, "count_low") <= count && count <= number(row, "count_high") {
					inside++
				}
			}
		}
		t.Logf("%s: %d of %d intervals hold the exact answer of %d packets", name, inside, n, len(sent))
		if n == 0 || float64(inside) < .95*float64(n)-3*math.Sqrt(.05*.95*float64(n)) {
			t.Errorf("%s: %d of %d intervals hold the truth", name, inside, n)
		}
	}
}

// The coordinator is killed, agents are killed, and the path from another one to the coordinator is cut, while packets arrive: an
// answer contains what its hosts have counted and no more, and what is missing is reported. A host whose instance is pinned
// loses the window at most that it had read and not stored when it was killed.
func TestFleetDisturbed(t *testing.T) {
	cut, rounds := 3*time.Second, 1
	if os.Getenv("XDPMON_FLEET_RUNS") != "" { // make fleet
		cut, rounds = 30*time.Second, 5
	}
	disturbed(t, cut, rounds)
}

func disturbed(t *testing.T, cut time.Duration, rounds int) {
	const killed, cutOff, pinned, perWindow = 0, 1, 2, 1100 // trickle sends a packet a millisecond
	f := newFleet(t, time.Second, "{precision: {}}", map[int]string{pinned: fmt.Sprintf("pin: true\nbpffs: %s\n", testutil.BPFFS(t))})
	eventually(t, "a window of all hosts", func() bool {
		list := f.answers()
		return len(list) > 0 && list[len(list)-1].Hosts.Merged == members
	})
	stop := make(chan struct{})
	var sending sync.WaitGroup
	var sent [members]uint64
	for n := range f.hosts {
		sending.Go(func() { sent[n] = f.trickle(n, stop) })
	}
	for range rounds {
		time.Sleep(2 * f.window)
		f.killCoordinator()
		time.Sleep(2 * f.window)
		f.startCoordinator()
		time.Sleep(2 * f.window)
		f.agents[killed].kill()
		f.agents[pinned].kill()
		time.Sleep(2 * f.window)
		f.agents[killed], f.agents[pinned] = f.places[killed].start(binary), f.places[pinned].start(binary)
		f.cut(cutOff, true)
		time.Sleep(cut)
		f.cut(cutOff, false)
		time.Sleep(4 * f.window)
	}
	close(stop)
	sending.Wait()
	eventually(t, "everything that waits", func() bool {
		for _, a := range f.agents {
			if h := a.health(); h.Bus == nil || !h.Bus.Connected || h.Bus.Bytes > 0 {
				return false
			}
		}
		return true
	})
	h := f.health()
	for _, a := range f.agents {
		a.stop()
	}
	f.compare(h)
	for n, p := range f.places {
		counted := seen(p.windows(), "precision", "edge")
		if n == killed {
			t.Logf("the agent that was killed has counted %d of %d packets", counted, sent[n])
		} else if n == pinned && counted < sent[n] && sent[n]-counted <= uint64(rounds)*perWindow {
			t.Logf("the agent that was killed with its instance pinned has counted %d of %d packets: a window that was read and not stored yet is lost", counted, sent[n])
		} else if counted != sent[n] {
			t.Errorf("host %d has counted %d of %d packets", n, counted, sent[n])
		}
	}
}

// trickle sends packets to a host until it is stopped, and returns their number.
func (f *fleet) trickle(n int, stop chan struct{}) (sent uint64) {
	p := packet.Packet{Valid: packet.IP | packet.Ports, Proto: 17, Segs: 1, Len: 60, Src: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}),
		Dst: netip.AddrFrom4([4]byte{192, 0, 2, 99}), SrcPort: 9, DstPort: 9}
	for {
		select {
		case <-stop:
			return sent
		default:
		}
		list := slices.Repeat([]packet.Packet{p}, 100)
		for i := range list {
			list[i].Time = int64(i) * int64(time.Millisecond)
		}
		if err := f.inject(n, hostclock.Now(), list); err != nil {
			f.t.Error(err)
			return sent
		}
		sent += uint64(len(list))
	}
}

// compare compares every answer with the windows that the hosts have written.
func (f *fleet) compare(h coordinated.Health) {
	f.t.Helper()
	counted := map[int64]map[int]uint64{} // by window and host
	total, answeredOf := uint64(0), uint64(0)
	for n, p := range f.places {
		for _, l := range p.windows() {
			if l.Algorithm != "precision" {
				continue
			}
			start, err := time.Parse(time.RFC3339Nano, l.Window.StartTime)
			if err != nil {
				f.t.Fatal(err)
			}
			length := time.Duration(l.Window.End - l.Window.Start)
			index := start.Add(length / 2).Truncate(f.window).UnixNano()
			if l.Window.Stretched { // it counts in the period in which it ends
				index = max(index, start.Add(length-f.window/2).Truncate(f.window).UnixNano())
			}
			if counted[index] == nil {
				counted[index] = map[int]uint64{}
			}
			counted[index][n] += l.Packets.Seen
			total += l.Packets.Seen
		}
	}
	last := map[int64]answer{}
	again, whole, short, unsaid, missing, late := 0, 0, 0, uint64(0), uint64(0), uint64(0)
	for _, a := range f.answers() {
		if b, twice := last[a.Window.Start]; twice {
			again++
			if b.Packets.Seen > a.Packets.Seen {
				a = b
			}
		}
		last[a.Window.Start] = a
	}
	for start, a := range last {
		sum := uint64(0)
		for _, n := range counted[start] {
			sum += n
		}
		missing, late = missing+a.Lost["hosts_missing"], late+a.Lost["windows_late"]
		answeredOf += a.Packets.Seen
		switch {
		case a.Packets.Seen > sum:
			f.t.Errorf("the window of %s has %d packets, and its hosts have counted %d", time.Unix(0, start).UTC(), a.Packets.Seen, sum)
		case a.Packets.Seen == sum:
			whole++
		default:
			short++
			if a.Lost["hosts_missing"] == 0 { // then the host's window arrived when it was no longer expected
				unsaid++
			}
		}
	}
	unheard, own := uint64(0), uint64(0)
	for _, k := range h.Agents {
		late, unheard, own = late+k.Late, unheard+k.Lost, own+k.Own
	}
	f.t.Logf("%d windows are answered with all that hosts counted, %d with less, %d twice; %d of %d packets; %d times a host was missing, %d windows were late, %d batches and %d windows were lost",
		whole, short, again, answeredOf, total, missing, late, unheard, own)
	if whole == 0 || answeredOf == 0 {
		f.t.Errorf("%d windows are whole", whole)
	}
	if unsaid > late+unheard+own {
		f.t.Errorf("%d windows have less than was counted and name no host, and %d windows were late", unsaid, late)
	}
}
