package agent

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// each is the cost of an agent with many instances.
type each struct {
	cpu, wall      time.Duration // from its start until everything is attached
	peak, resident float64       // MiB
	share          float64       // of a core, at rest
	descriptors    int
}

func (e each) String() string {
	return fmt.Sprintf("attached after %v with %v of CPU and %.0f MiB at most; at rest %.2f %% of a core, %.0f MiB resident, %d descriptors",
		e.wall.Round(10*time.Millisecond), e.cpu, e.peak, 100*e.share, e.resident, e.descriptors)
}

// attachedTo are the interfaces that have programs of an agent's instances, in all of them.
func (r *running) attachedTo() (n int) {
	for _, i := range r.health().Instances {
		for _, l := range i.Interfaces {
			if l.Attached {
				n++
			}
		}
	}
	return n
}

func (r *running) descriptors() int {
	r.t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.cmd.Process.Pid))
	if err != nil {
		r.t.Fatal(err)
	}
	return len(list)
}

// measureEach starts an agent for n interfaces that are there.
func measureEach(t *testing.T, n int) (e each) {
	network := quietNetwork(t)
	handle := netlinkOf(t, network.A)
	p := newPlace(t, network.A)
	p.write(SixEach)
	var links []netlink.Link
	for i := range n {
		links = append(links, addVeth(t, handle, fmt.Sprintf("xdpmon-d%d", i), fmt.Sprintf("xdpmon-e%d", i)))
	}
	began := time.Now()
	r := p.start(binary)
	eventually(t, "attaching to all", func() bool {
		time.Sleep(100 * time.Millisecond) // asking is work, too
		return r.attachedTo() == n
	})
	e.wall = time.Since(began)
	e.cpu, e.peak = taken(t, r.cmd.Process.Pid)
	time.Sleep(15 * time.Second)
	e.share, e.resident = atRest(t, r.cmd.Process.Pid, 60*time.Second)
	e.descriptors = r.descriptors()
	if h := r.health(); h.Status != "ok" {
		t.Errorf("%+v", h)
	}
	for _, l := range links {
		if err := handle.LinkDel(l); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "releasing all", func() bool { return r.attachedTo() == 0 })
	r.stop()
	return e
}

// Six algorithms on each of ten idle interfaces, or of as many as XDPMON_SOAK_EACH states.
func TestSoakEach(t *testing.T) {
	needSoak(t)
	n, err := strconv.Atoi(cmp.Or(os.Getenv("XDPMON_SOAK_EACH"), "10"))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(measureEach(t, n))
}
