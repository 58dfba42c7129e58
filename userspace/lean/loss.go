package lean

import (
	"math"

	"github.com/xdpmon/xdpmon/bpf/constant"
	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// lossIDs are the choices of lean.loss.id, in the order of enum loss_id_kind.
var lossIDs = []string{"ipid", "rtp", "tcp-bytes"}

// losses is the statistic loss.
type losses struct {
	walk bool
	id   int
	crc  bool // hashes are the switch's
}

func newLoss(v algo.Values, crc bool) (statistic, error) {
	l := &losses{walk: v.Text("loss") == "walk", crc: crc}
	for n, name := range lossIDs {
		if v.Text("loss.id") == name {
			l.id = n
		}
	}
	return l, nil
}

var lossWidths = map[string]int{"lean_loss_own": 2, "lean_loss_owner": 4, "lean_loss_last": 4, "lean_loss_order": 2}

func (l *losses) layout(scale float64) layout {
	if l.walk {
		return layout{columns: power(2048 * scale), filter: power(1024 * scale), // the sketch alone, as the paper counts
			tables: map[string]int{"lean_loss_own": 1, "lean_loss_last": 1}, widths: lossWidths}
	}
	entries := power(4096 * scale)
	tables := map[string]int{"lean_loss_own": entries, "lean_loss_last": entries}
	if l.crc && l.id == int(bpf.LeanLossIdKindLOSS_IPID) { // the switch's words: bpf/lean/loss.h
		tables = map[string]int{"lean_loss_owner": entries, "lean_loss_last": entries}
	}
	if l.bytes() { // the memory of the third array is taken from the sketch
		tables["lean_loss_order"] = entries
		return layout{columns: power(256 * scale), filter: power(256 * scale), tables: tables, widths: lossWidths}
	}
	return layout{columns: power(512 * scale), filter: power(256 * scale), tables: tables, widths: lossWidths}
}

// bytes reports whether loss is detected from TCP's sequence numbers.
func (l *losses) bytes() bool { return l.id == int(bpf.LeanLossIdKindLOSS_BYTES) }

func (l *losses) constants(layout) map[constant.Name]any {
	return map[constant.Name]any{constant.LeanLossWalk: l.walk, constant.LeanLossId: uint32(l.id)}
}

// walks implements walker.
func (l *losses) walks() bool { return l.walk }

func (l *losses) unit() float64 { return 1 }

func (l *losses) value() report.Column {
	if l.bytes() {
		return report.Column{Name: "lost", Unit: report.Bytes, Metric: true, Help: "bytes of the sequence that were left out and did not arrive late"}
	}
	return report.Column{Name: "lost", Unit: report.PacketUnit, Metric: true, Help: "identifiers that were left out"}
}

// estimate: the expected distance of a walk of m steps is the root of 2 m / pi (section 4.2).
func (l *losses) estimate(sketch float64) float64 {
	if l.walk {
		return sketch * sketch * math.Pi / 2
	}
	return sketch
}

func (l *losses) values(n counts) []report.Value {
	gaps, filled := n.at(bpf.LeanLeanCounterLEAN_GAPS), n.at(bpf.LeanLeanCounterLEAN_GIVEN_BACK)
	return []report.Value{
		counter("loss_examined", n.at(bpf.LeanLeanCounterLEAN_NUMBERED), report.PacketUnit, "packets looked at: they have an identifier ("+lossIDs[l.id]+")"),
		counter("loss_followed", n.at(bpf.LeanLeanCounterLEAN_OWNED), report.PacketUnit, "packets of a flow whose last identifier is in memory"),
		counter("loss_jumps", n.at(bpf.LeanLeanCounterLEAN_JUMPS), report.Count, "packets whose identifier jumped: random or shared between flows"),
		counter("loss_gaps", gaps, report.Count, "gaps in a flow's identifiers"),
		counter("loss_missing", n.at(bpf.LeanLeanCounterLEAN_GAP_SUM), l.value().Unit, "what was left out in the gaps: lost, or still to arrive"),
		affected("loss_share", gaps-min(gaps, filled), n.at(bpf.LeanLeanCounterLEAN_OWNED), n.at(bpf.LeanLeanCounterLEAN_NUMBERED), "share of packets before which something is missing that did not arrive late"),
		counter("loss_given_back", filled, report.PacketUnit, "packets that arrived late and filled a gap"),
	}
}

var lossSees = []string{
	"loss is counted from the IPv4 identification: of flows that advance it by one a packet; not of IPv6, nor where it is constant or random; what is lost before this point. A host that numbers all its packets with one counter looks lossy, for what it sends to others: where there is TCP, lean.loss.id=tcp-bytes",
	"loss is counted from RTP sequence numbers: of UDP flows that look like RTP; what is lost before this point",
	"loss is counted from TCP's sequence numbers: bytes that were left out, and that no packet brought late; what is lost before this point. UDP is not covered: lean.loss.id=rtp counts RTP, ipid what else has IPv4 identifications of its own",
}

// missed implements countable: a packet of a flow without an entry may have followed a gap, and the packet that then takes the entry
// has no earlier identifier to compare with.
func (l *losses) missed(n counts) (share, size float64) {
	return 2 * shareOf(n.at(bpf.LeanLeanCounterLEAN_REFUSED), n.at(bpf.LeanLeanCounterLEAN_NUMBERED)),
		shareOf(n.at(bpf.LeanLeanCounterLEAN_GAP_SUM), n.at(bpf.LeanLeanCounterLEAN_GAPS))
}

// refuted implements refutable. A hole is false if its late packet arrived while another flow held the entry, or if a packet with a
// smaller number moved the entry backwards and the flow continued from its old position. About as many packets arrive below the
// expected number as there are holes and late packets; a share of them meets such an entry, and the false hole stays counted, while
// most true holes that a late packet fills are removed. So the share grows as fewer of the holes remain.
func (l *losses) refuted(n counts) float64 {
	share, _ := l.missed(n)
	holes, late := float64(n.at(bpf.LeanLeanCounterLEAN_GAPS)), float64(n.at(bpf.LeanLeanCounterLEAN_GIVEN_BACK))
	if share == 0 || holes == 0 {
		return 0
	}
	return min(1, share*(holes+late)/max(1, holes-late))
}

func (l *losses) notes(counts) []string {
	notes := []string{lossSees[l.id]}
	if l.walk {
		notes = append(notes, "lean.loss=walk leaves a residue of every flow in the sketch: the list is right for a few flows with much loss only")
	}
	return notes
}

func (l *losses) lost(n counts) map[string]uint64 {
	return map[string]uint64{"loss_not_followed": n.at(bpf.LeanLeanCounterLEAN_REFUSED)}
}

// followed implements partial.
func (l *losses) followed(n counts) (share, missed float64) {
	return max(leastFollowed, shareOf(n.at(bpf.LeanLeanCounterLEAN_COMPARED), n.at(bpf.LeanLeanCounterLEAN_NUMBERED))), 0
}

// leastFollowed bounds the correction of flows' sizes.
const leastFollowed = 0.25
