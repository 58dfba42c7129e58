package precision

import (
	"fmt"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Listed reads the flows of a report's list back.
func Listed(l report.Line) ([]heavy.Flow, error) {
	for _, t := range l.Report.Tables {
		if t.Name == "flows" {
			return rows(t)
		}
	}
	return nil, fmt.Errorf("read report of %s: no list of flows", l.Algorithm)
}

func rows(t report.Table) ([]heavy.Flow, error) {
	var flows []heavy.Flow
	for _, row := range t.Rows {
		src, dst := netip.MustParseAddr(row[0].(string)), netip.MustParseAddr(row[2].(string))
		p := packet.Packet{Valid: packet.IP | packet.Ports, Src: src, Dst: dst, SrcPort: uint16(row[1].(int64)), DstPort: uint16(row[3].(int64)), Proto: 6}
		key, ok := Spec.Of(&p)
		if !ok {
			return nil, fmt.Errorf("read report: %v is no flow of the model", row)
		}
		flows = append(flows, heavy.Flow{Key: key, Count: row[5].(float64)})
	}
	return flows, nil
}

// Value of a report, by name.
func Value(l report.Line, name string) float64 {
	for _, v := range l.Report.Values {
		if v.Name == name {
			f, _ := report.Number(v.Value)
			return f
		}
	}
	return 0
}
