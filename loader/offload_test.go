package loader

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/netns"
	"github.com/xdpmon/xdpmon/tests/netns/netnstest"
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
	if !isolated(t) {
		return
	}
	veth(t)
	before, err := offloadsOf(near)
	noError(t, err)
	if len(before) < 20 {
		t.Errorf("only %d features: %v", len(before), before)
	}
	sh(t, "ethtool -K %s gro %s", near, map[bool]string{true: "off", false: "on"}[before["rx-gro"]])
	after, err := offloadsOf(near)
	noError(t, err)
	if got := before.diff(near, after); len(got) != 1 || got[0].Feature != "rx-gro" {
		t.Errorf("ethtool switched GRO, seen: %v", got)
	}
}

func TestPeerInAnInvisibleNamespace(t *testing.T) {
	if !isolated(t) {
		return
	}
	if err := inNamespace(4711, func() error { return nil }); !errors.Is(err, errNoNamespace) {
		t.Errorf("got %v", err)
	}
	veth(t)
	d, err := inspect(near)
	noError(t, err)
	s := readOffloads(d)
	if s.peerName != far || len(s.peer) == 0 || s.problem != "" {
		t.Errorf("peer %q with %d features, problem %q", s.peerName, len(s.peer), s.problem)
	}
	if strings.Contains(s.problem, "not compared") {
		t.Error(s.problem)
	}
}

// The other end lies in a namespace that has neither a name nor a process in it, only a descriptor somewhere.
func TestPeerInANamespaceThatIsHeldOpen(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	noError(t, network.A.Run(func() error {
		d, err := inspect(network.A.Interface)
		if err != nil {
			return err
		}
		if s := readOffloads(d); s.peerName != network.B.Interface || s.problem != "" {
			t.Errorf("peer %q, problem %q", s.peerName, s.problem)
		}
		return nil
	}))
}
