// Package carpe registers the twin of Carpe's data plane.
package carpe

import (
	"encoding/binary"

	bpf "github.com/xdpmon/xdpmon/bpf/carpe"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "carpe", Algorithm: "carpe",
		Forms: []twin.Form{
			{}, {Name: "small", Generated: true, Set: map[string]string{"entries": "128", "threshold": "640", "observers": "4", "s": "1/4"}},
		},
		Coins: twin.HighBits,
		Fill:  []twin.Fill{{Object: "carpe.groups", What: "parameters of groups, as the coordinator says; those of unknown ones stand in the default action"}},
		Counts: []twin.Count{
			count(bpf.CarpeCarpeCounterCARPE_FULL, "report", "kept_quiet"),
			count(bpf.CarpeCarpeCounterCARPE_REPORTED, "report"),
			count(bpf.CarpeCarpeCounterCARPE_COLLIDED, "collided"),
			count(bpf.CarpeCarpeCounterCARPE_PACKETS, "report", "kept_quiet", "collided", "other"),
		},
		Reports:     &twin.Reports{Ring: "carpe_events", Host: said, Twin: digests},
		Differences: []twin.Difference{twin.Echoes},
	})
}

func count(counter bpf.CarpeCarpeCounter, actions ...string) twin.Count {
	return twin.Count{Table: "carpe.bundles", Actions: actions, Host: "carpe_counts", Index: int(counter)}
}

// What a digest says: bits of report_t.what.
const (
	bundle = 1
	group  = 2
)

// said is a record of the host: what it is, the flow, and the bundle.
func said(record []byte) []uint64 {
	var e bpf.CarpeCarpeEvent
	if _, err := binary.Decode(record, binary.NativeEndian, &e); err != nil {
		return nil
	}
	return []uint64{uint64(e.Kind), e.Key[0], e.Key[1], uint64(e.Units)}
}

// digests of one packet: a host says two things one after the other.
func digests(r *run.Result, _ uint64) (all [][]uint64) {
	for _, d := range r.Digests {
		flow, tag := d.Value("src")<<32|d.Value("dst"), d.Value("ports")<<32|d.Value("protocol")<<24|1
		if d.Value("what")&bundle != 0 {
			all = append(all, []uint64{bundle, flow, tag, d.Value("units")})
		}
		if d.Value("what")&group != 0 {
			all = append(all, []uint64{group, flow, tag, 0})
		}
	}
	return all
}
