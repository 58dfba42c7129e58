package attach

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/isolated"
	"github.com/xdpmon/xdpmon/tests/netnstest"
)

func TestOffloadDifferences(t *testing.T) {
	before := Offloads{"rx-gro": true, "rx-lro": true, "tx-nocache-copy": false}
	after := Offloads{"rx-gro": true, "rx-lro": false, "tx-nocache-copy": true, "new": true}
	got := summariseChanges(before.diff("eth0", after))
	if want := []string{"eth0: switched off rx-lro", "eth0: switched on tx-nocache-copy"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOffloadsAreThoseOfEthtool(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	before, err := OffloadsOf(lab.Near)
	lab.NoError(t, err)
	if len(before) < 20 {
		t.Errorf("only %d features: %v", len(before), before)
	}
	lab.Sh(t, "ethtool -K %s gro %s", lab.Near, map[bool]string{true: "off", false: "on"}[before["rx-gro"]])
	after, err := OffloadsOf(lab.Near)
	lab.NoError(t, err)
	if got := before.diff(lab.Near, after); len(got) != 1 || got[0].Feature != "rx-gro" {
		t.Errorf("ethtool switched GRO, seen: %v", got)
	}
}

func TestPeerInAnInvisibleNamespace(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	if err := inNamespace(4711, func() error { return nil }); !errors.Is(err, errNoNamespace) {
		t.Errorf("got %v", err)
	}
	lab.Veth(t)
	d, err := Inspect(lab.Near)
	lab.NoError(t, err)
	s := readOffloads(d)
	if s.peerName != lab.Far || len(s.peer) == 0 || s.problem != "" {
		t.Errorf("peer %q with %d features, problem %q", s.peerName, len(s.peer), s.problem)
	}
	if strings.Contains(s.problem, "not compared") {
		t.Error(s.problem)
	}
}

// The other end is in a namespace without a name and without a process, to which only a descriptor refers.
func TestPeerInANamespaceThatIsHeldOpen(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	lab.NoError(t, network.A.Run(func() error {
		d, err := Inspect(network.A.Interface)
		if err != nil {
			return err
		}
		if s := readOffloads(d); s.peerName != network.B.Interface || s.problem != "" {
			t.Errorf("peer %q, problem %q", s.peerName, s.problem)
		}
		return nil
	}))
}
