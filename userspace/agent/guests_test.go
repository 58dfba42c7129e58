package agent

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

// A verb without an agent knows whose an address is, too: here that of a named network namespace, whose address is a neighbour on its interface.
func TestGuests(t *testing.T) {
	testutil.NeedRoot(t)
	name := fmt.Sprintf("xdpmon-g%d", os.Getpid()%100000)
	ip := func(line string) {
		t.Helper()
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
	ip("netns add " + name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	ip("link add " + name + " type veth peer name eth0 netns " + name)
	ip("link set " + name + " up")
	ip("neigh add 203.0.113.77 lladdr 02:00:00:00:00:77 dev " + name)
	guests, err := Guests()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := guests[netip.MustParseAddr("203.0.113.77")], (report.Guest{Kind: known.GuestNamespace, Name: name}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
