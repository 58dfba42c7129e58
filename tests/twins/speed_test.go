package twins

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// BenchmarkModel is what a packet of the mix costs the model alone, by twin; -benchtime 200000x is a good measure.
func BenchmarkModel(b *testing.B) {
	var packets []run.Packet
	source := newMix(1, mixPackets, mixFlows)
	for f := (packet.Frame{}); ; {
		if err := source.Next(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			b.Fatal(err)
		}
		packets = append(packets, run.Packet{Data: bytes.Clone(f.Data), Port: port(uint64(f.Time), f.Data), Time: uint64(f.Time)})
	}
	for _, tw := range twin.All() {
		forms := tw.FormsOf()
		b.Run(tw.Name, func(b *testing.B) {
			sw, err := tw.Build(run.Tofino1, forms[len(forms)-1])
			if err := errors.Join(err, forward(sw), tw.SetBank(sw, 0)); err != nil {
				b.Fatal(err)
			}
			var result run.Result
			coin, span := uint32(1), packets[len(packets)-1].Time
			b.ReportAllocs()
			for n := range b.N {
				p := packets[n%len(packets)]
				p.Time += uint64(n/len(packets)) * span
				if coin++; tw.Coins != nil {
					sw.Coins = tw.Coins(coinsOf(coin))
				}
				if err := sw.Process(p, &result); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}
