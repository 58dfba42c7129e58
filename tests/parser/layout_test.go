package parser

import (
	"reflect"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/maps"
)

// goNames are the fields of maps.PHV by the members of struct phv.
var goNames = map[string]string{
	"now": "Now", "ep_src": "EpSrc", "ep_dst": "EpDst", "src": "Src", "dst": "Dst", "sport": "SrcPort", "dport": "DstPort",
	"valid": "Valid", "vlan": "VLAN", "family": "Family", "proto": "Proto", "tcp_flags": "TCPFlags", "icmp_type": "ICMPType",
	"seq": "Seq", "ack": "Ack", "len": "Len", "payload": "Payload", "tsval": "TSVal", "tsecr": "TSEcr", "app_id": "AppID", "qname": "QName",
	"ipid": "IPID", "segs": "Segs", "ifindex": "IfIndex", "needs": "Needs", "coin": "Coin", "bank": "Bank", "next": "Next",
	"end": "End", "pass": "Pass", "verdict": "Verdict", "pad": "_", "carry": "Carry",
}

// Go's copy of the vector is the program's: same fields, same places, same sizes.
func TestVectorLayout(t *testing.T) {
	members := vectorMembers(t)
	got := reflect.TypeFor[maps.PHV]()
	if got.NumField() != len(members) {
		t.Errorf("maps.PHV has %d fields, struct phv %d members", got.NumField(), len(members))
	}
	for i := range min(got.NumField(), len(members)) {
		checkMember(t, got.Field(i), members[i])
	}
}

func vectorMembers(t *testing.T) []btf.Member {
	t.Helper()
	spec, err := chain.LoadChain()
	if err != nil {
		t.Fatal(err)
	}
	value, ok := btf.UnderlyingType(spec.Maps["phv_scratch"].Value).(*btf.Struct)
	if !ok {
		t.Fatalf("the vector's map holds %v, not a struct", spec.Maps["phv_scratch"].Value)
	}
	if size := reflect.TypeFor[maps.PHV]().Size(); uint32(size) != value.Size {
		t.Errorf("maps.PHV has %d bytes, struct phv %d", size, value.Size)
	}
	return value.Members
}

func checkMember(t *testing.T, f reflect.StructField, m btf.Member) {
	t.Helper()
	name, known := goNames[m.Name]
	if !known || name != f.Name {
		t.Errorf("member %s of struct phv is %q in Go, found %s there", m.Name, name, f.Name)
	}
	size, err := btf.Sizeof(m.Type)
	if err != nil {
		t.Fatal(err)
	}
	if f.Offset != uintptr(m.Offset.Bytes()) || f.Type.Size() != uintptr(size) {
		t.Errorf("%s: offset %d, %d bytes; in struct phv offset %d, %d bytes", f.Name, f.Offset, f.Type.Size(),
			m.Offset.Bytes(), size)
	}
}
