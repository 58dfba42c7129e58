package queue

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/tests/isolated"
	"github.com/xdpmon/xdpmon/tests/queue/departures"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/conquest"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func init() { lab.Helpers["drop"] = func([]string) error { return dropUntilKilled() } }

// acting is conquest on the near end, acting on culprits, with an algorithm after it that reports every packet that leaves.
func acting(set map[string]string) (*loader.Instance, *attach.Attachment, error) {
	d, err := algo.Lookup(conquest.Name)
	if err != nil {
		return nil, nil, err
	}
	all := map[string]string{"source": "qdisc", "tau": "1ms", "alpha": "1/4"}
	for key, text := range set {
		all[key] = text
	}
	v, err := algo.NewValues(d.Name, d.Params, all)
	if err != nil {
		return nil, nil, err
	}
	objects, _, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: 7}, false)
	if err != nil {
		return nil, nil, err
	}
	object, err := departures.Object(true)
	if err != nil {
		return nil, nil, err
	}
	inst, err := loader.Load(append([]loader.Object{object}, objects...), loader.Options{Seed: 7, Lazy: true})
	if err != nil {
		return nil, nil, err
	}
	a, err := attach.Attach(inst, lab.Near, attach.Options{Direction: attach.Egress})
	if err != nil {
		inst.Close()
	}
	return inst, a, err
}

// narrow gives the near end a queue of 20 Mb/s, and another one next to it.
func narrow(t *testing.T) {
	t.Helper()
	for _, line := range []string{
		"qdisc add dev %s root handle 1: htb default 10",
		"class add dev %s parent 1: classid 1:10 htb rate 20mbit burst 3k cburst 3k",
		"class add dev %s parent 1: classid 1:20 htb rate 20mbit burst 3k cburst 3k",
		"qdisc add dev %s parent 1:10 pfifo limit 100",
		"qdisc add dev %s parent 1:20 pfifo limit 100",
	} {
		lab.Sh(t, "tc "+line, lab.Near)
	}
}

// The two flows: one that fills the queue, and one of a packet now and then.
const (
	heavyPort = 7001
	lightPort = 7002
)

// flood sends both flows to the far end until the test ends; sent counts the heavy one's datagrams, got those that arrive.
func flood(t *testing.T) (sent, got *atomic.Int64) {
	t.Helper()
	sent, got = &atomic.Int64{}, &atomic.Int64{}
	var sink net.PacketConn
	lab.InPeer(t, func() (err error) {
		sink, err = net.ListenPacket("udp4", lab.FarIP+":7000")
		return err
	})
	var flows [2]*net.UDPConn
	for n, port := range []int{heavyPort, lightPort} {
		conn, err := net.DialUDP("udp4", &net.UDPAddr{Port: port}, &net.UDPAddr{IP: net.ParseIP(lab.FarIP), Port: 7000})
		lab.NoError(t, err)
		raw, err := conn.SyscallConn()
		lab.NoError(t, err)
		lab.NoError(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, 2) })) // ECT(0)
		lab.NoError(t, err)
		flows[n] = conn
	}
	var stop atomic.Bool
	var both sync.WaitGroup
	both.Go(func() {
		for ; !stop.Load(); time.Sleep(5 * time.Millisecond) {
			for range 15 { // 25 Mb/s
				if _, err := flows[0].Write(make([]byte, 1000)); err == nil {
					sent.Add(1)
				}
			}
			_, _ = flows[1].Write(make([]byte, 10))
		}
	})
	both.Go(func() {
		for b := make([]byte, 2000); ; {
			_, from, err := sink.ReadFrom(b)
			if err != nil {
				return
			}
			if from.(*net.UDPAddr).Port == heavyPort {
				got.Add(1)
			}
		}
	})
	t.Cleanup(func() {
		stop.Store(true)
		sink.Close()
		both.Wait()
		for _, conn := range flows {
			conn.Close()
		}
	})
	return sent, got
}

// eventually waits for what happens soon.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(lab.Patience); !happened(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it has not happened: %s", what)
		}
	}
}

// Each action is seen where it works: marks of ECN at the receiver's kernel, marks of the host's own at the start of transmission, another class at
// the queue's counters, drops at the counters of the verdict. The flow that does not fill the queue is not affected.
func TestActs(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	narrow(t)
	flood(t)
	for _, c := range []struct {
		set  map[string]string
		seen func(inst *loader.Instance) bool
	}{
		{map[string]string{"action": "ecn"}, func(*loader.Instance) bool { return peerCounter(t, "InCEPkts") >= 20 }},
		{map[string]string{"action": "drop", "drop_from": "1ms", "gap": "1ms"}, func(inst *loader.Instance) bool {
			c, err := inst.CountsSoFar()
			lab.NoError(t, err)
			return c.Verdicts.Dropped >= 3
		}},
		{map[string]string{"action": "mark", "to": "77"}, func(inst *loader.Instance) bool {
			marked := 0
			for _, d := range drain(t, inst) {
				if d.Mark == 77 && d.Sport != heavyPort {
					t.Fatalf("marked: a packet from port %d", d.Sport)
				}
				if d.Mark == 77 {
					marked++
				}
			}
			return marked >= 20
		}},
		{map[string]string{"action": "class", "to": "1:20"}, func(*loader.Instance) bool { return classPackets(t) >= 20 }},
	} {
		inst, a, err := acting(c.set)
		lab.NoError(t, err)
		eventually(t, fmt.Sprint(c.set), func() bool { return c.seen(inst) })
		lab.NoError(t, a.Close())
		lab.NoError(t, inst.Close())
	}
}

// A weight is of a flow in the queue, whatever its share: what leaves in 4 ms, which is as far as 16 snapshots reach back here, is a weight of 10 kB at most however long packets wait, and one
// above it is of nobody.
func TestActsByWeight(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	narrow(t)
	flood(t)
	for _, c := range []struct {
		set  map[string]string
		acts bool
	}{
		{map[string]string{"weight": "4kB"}, true},
		{map[string]string{"snapshots": "16", "interval": "262us", "weight": "5kB"}, true},
		{map[string]string{"snapshots": "16", "interval": "262us", "weight": "50kB"}, false},
	} {
		c.set["action"], c.set["to"] = "mark", "77"
		inst, a, err := acting(c.set)
		lab.NoError(t, err)
		left, marked := 0, 0
		eventually(t, fmt.Sprint(c.set), func() bool {
			for _, d := range drain(t, inst) {
				if d.Mark == 77 && d.Sport != heavyPort {
					t.Errorf("%v: marked: a packet from port %d", c.set, d.Sport)
				}
				left++
				if d.Mark == 77 {
					marked++
				}
			}
			return left >= 1000
		})
		if c.acts && marked < left/4 || !c.acts && marked > 0 {
			t.Errorf("%v: %d packets of %d are marked", c.set, marked, left)
		}
		lab.NoError(t, a.Close())
		lab.NoError(t, inst.Close())
	}
}

// peerCounter is a counter of IP in the far end's namespace.
func peerCounter(t *testing.T, name string) int {
	t.Helper()
	lines := strings.Split(lab.Sh(t, "ip netns exec %s grep ^IpExt: /proc/net/netstat", lab.PeerNS), "\n")
	values := strings.Fields(lines[1])
	for n, word := range strings.Fields(lines[0]) {
		if word == name {
			v, err := strconv.Atoi(values[n])
			lab.NoError(t, err)
			return v
		}
	}
	t.Fatalf("this kernel does not count %s", name)
	return 0
}

// classPackets is how many packets the other class has sent.
func classPackets(t *testing.T) (n int) {
	t.Helper()
	text := lab.Sh(t, "tc -s class show dev %s classid 1:20", lab.Near)
	if _, rest, ok := strings.Cut(text, " bytes "); ok {
		_, err := fmt.Sscan(rest, &n)
		lab.NoError(t, err)
	}
	return n
}

// A flow that does not react keeps all but one packet per gap, although its condemnation lasts and covers each of its packets.
func TestNoFlowStarves(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	narrow(t)
	sent, _ := flood(t)
	for _, chance := range []string{"threshold", "linear", "quadratic", "steps"} {
		began, before := time.Now(), sent.Load()
		inst, a, err := acting(map[string]string{"action": "drop", "hold": "1s", "drop_from": "1ms", "gap": "10ms", "chance": chance})
		lab.NoError(t, err)
		dropped := func() uint64 {
			c, err := inst.CountsSoFar()
			lab.NoError(t, err)
			return c.Verdicts.Dropped
		}
		eventually(t, chance+": two drops, and 500 datagrams", func() bool { return dropped() >= 2 && sent.Load()-before >= 500 })
		most := uint64(time.Since(began)/(1024<<14)) + 1
		if n := dropped(); n > most {
			t.Errorf("%s: %d packets of %d were dropped in %v, %d are the most", chance, n, sent.Load()-before, time.Since(began), most)
		}
		lab.NoError(t, a.Close())
		lab.NoError(t, inst.Close())
	}
}

// dropUntilKilled is a process that marks and drops culprits' packets for a second each time.
func dropUntilKilled() error {
	if _, _, err := acting(map[string]string{"action": "drop", "hold": "1s", "drop_from": "1ms"}); err != nil {
		return err
	}
	lab.SayReady()
	return lab.UntilKilled()
}

// A process that is killed while it acts leaves nothing: its condemnations expire.
func TestKilledWhileActing(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	narrow(t)
	sent, _ := flood(t)
	// marked is how many of 200 datagrams arrive marked, plus or minus what is in the queue.
	marked := func() int {
		s, n := sent.Load(), peerCounter(t, "InCEPkts")
		eventually(t, "200 datagrams", func() bool { return sent.Load()-s >= 200 })
		return peerCounter(t, "InCEPkts") - n
	}
	child := lab.StartHelper(t, "drop")
	eventually(t, "half of them are marked", func() bool { return marked() >= 100 })
	lab.NoError(t, child.Kill())
	killed := time.Now()
	eventually(t, "none is marked", func() bool { return marked() == 0 })
	t.Logf("none was marked %v after the kill, the time of 200 datagrams included", time.Since(killed).Round(time.Millisecond))
}
