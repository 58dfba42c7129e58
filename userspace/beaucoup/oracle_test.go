package beaucoup

import (
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const second = int64(time.Second)

// spreading is a key that has 20 new peers in each of four bursts, 40 s apart, and the last half of a burst's peers again 20 s
// after it.
func spreading(o *oracle) {
	send := func(time int64, peer int) {
		o.Packet(&packet.Packet{Time: time, Valid: packet.IP, Src: netip.AddrFrom4([4]byte{10, 0, 0, 1}),
			Dst: netip.AddrFrom4([4]byte{10, 1, byte(peer >> 8), byte(peer)})})
	}
	for burst := range 4 {
		at := int64(burst) * 40 * second
		for n := range 20 {
			send(at+int64(n), 20*burst+n)
		}
		for n := 10; n < 20; n++ {
			send(at+20*second+int64(n), 20*burst+n)
		}
	}
}

// All windows of a key are there until the report that their alerts are in, and not much longer.
func TestOracleRemembers(t *testing.T) {
	queries, err := compile.ParseQueries("s: count distinct dst by src > 10 in 30s")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(queries, compile.CompileOptions{Budget: 1.0 / 3, Word: 32, Ties: true})
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{instance: &instance{config: &config{top: 10}, program: p}, keys: map[place]*history{}}
	spreading(o)
	if len(o.keys) != 1 || len(o.crossed) != 4 {
		t.Fatalf("%d keys passed the threshold in %d windows, want 1 in 4", len(o.keys), len(o.crossed))
	}
	for at, h := range o.keys {
		for _, c := range []struct {
			time, age int64
			want      int
		}{
			{4, 0, 5},                           // the first burst
			{80*second + 14, 0, 15},             // the third
			{20*second + 30, 20 * second, 20},   // the same peers again are the same
			{80*second + 4, 60*second - 1, 35},  // ten of the first burst were repeated since then, all of the second, five of the third
			{80*second + 4, 60*second - 16, 25}, // none of the first
			{120*second + 19, 0, 20},            // the last
			{120*second + 19, 120 * second, 70}, // ten of the first were not seen since
			{-1, 0, 0},                          // before the first packet
		} {
			if got := h.at(c.time, c.age); got != c.want {
				t.Errorf("%v: %d peers in the %d ns before %d, want %d", at.query, got, c.age, c.time, c.want)
			}
		}
	}
	o.Window(report.Window{End: 150 * second})
	for _, h := range o.keys {
		if len(h.windows) != 1 {
			t.Errorf("%d windows are stored for the next report, want 1", len(h.windows))
		}
	}
	o.Window(report.Window{End: 300 * second})
	if len(o.keys) != 0 {
		t.Errorf("%d keys are stored that have been silent for long", len(o.keys))
	}
}
