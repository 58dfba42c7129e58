package delay

import (
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// The sum of two hosts' spectra has the values and doubts of both, and the larger weights and cluster; neither host's weights are changed.
func TestPlus(t *testing.T) {
	of := func(mass float64, predicted ...float64) *Spectrum {
		return &Spectrum{Mass: []float64{mass, 1}, Square: []float64{2 * mass, 1}, Raw: []float64{3 * mass, 1}, Predicted: predicted, Doubt: mass, Cluster: mass}
	}
	a, b := of(1, 5, 2), of(2, 3, 4)
	weights := a.Predicted
	a.Plus(b)
	if !slices.Equal(a.Mass, []float64{3, 2}) || !slices.Equal(a.Square, []float64{6, 2}) || !slices.Equal(a.Raw, []float64{9, 2}) || !slices.Equal(a.Predicted, []float64{5, 4}) || a.Doubt != 3 || a.Cluster != 2 || a.Count() != 5 || a.Samples() != 11 {
		t.Errorf("%+v", a)
	}
	if !slices.Equal(weights, []float64{5, 2}) || !slices.Equal(b.Predicted, []float64{3, 4}) {
		t.Errorf("weights %g and %g are others now", weights, b.Predicted)
	}
	bare, weighted := of(1), of(1, 5, 2)
	if bare.Plus(b); !slices.Equal(bare.Predicted, b.Predicted) {
		t.Errorf("%g", bare.Predicted)
	}
	if weighted.Plus(of(1)); !slices.Equal(weighted.Predicted, []float64{5, 2}) {
		t.Errorf("%g", weighted.Predicted)
	}
}

// A receiver shuts its window with an acknowledgement of data that advertises none, and with no other packet.
func TestShuts(t *testing.T) {
	shut := packet.Packet{Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, TCPFlags: packet.ACK, Ack: 5}
	r := Rules{Kind: TCPData, Side: AnySide}
	for what, c := range map[string]struct {
		change func(*packet.Packet)
		want   bool
	}{
		"shut": {func(*packet.Packet) {}, true}, "open": {func(p *packet.Packet) { p.Window = 1 }, false}, "reset": {func(p *packet.Packet) { p.TCPFlags |= packet.RST }, false}, "end": {func(p *packet.Packet) { p.TCPFlags |= packet.FIN }, false},
		"start": {func(p *packet.Packet) { p.TCPFlags |= packet.SYN }, false}, "no acknowledgement": {func(p *packet.Packet) { p.TCPFlags = 0 }, false}, "pushed": {func(p *packet.Packet) { p.TCPFlags |= packet.PSH }, true},
	} {
		p := shut
		if c.change(&p); r.Shuts(&p) != c.want {
			t.Errorf("%s: %v", what, !c.want)
		}
	}
}
