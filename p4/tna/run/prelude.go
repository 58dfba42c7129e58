package run

import (
	"maps"
	"strconv"
)

// Target is the chip that a program is compiled for.
type Target int

const (
	Tofino1 Target = 1
	Tofino2 Target = 2
)

// portMetadataBits precede a packet in the ingress parser.
var portMetadataBits = map[Target]int{Tofino1: 64, Tofino2: 192}

// prelude declares the architecture for a program: intrinsic metadata with the field names and widths of the Tofino
// Native Architecture, and the constants that twins use. Externs are known by name (externs.go).
const prelude = `
#define PORT_METADATA_SIZE PORT_METADATA_BITS
typedef bit<9> PortId_t;
typedef bit<16> MulticastGroupId_t;
#if __TARGET_TOFINO__ == 2
typedef bit<7> QueueId_t;
typedef bit<8> MirrorId_t;
typedef bit<4> MirrorType_t;
#else
typedef bit<5> QueueId_t;
typedef bit<10> MirrorId_t;
typedef bit<3> MirrorType_t;
#endif
typedef bit<3> DigestType_t;
typedef bit<3> ResubmitType_t;
enum HashAlgorithm_t { IDENTITY, RANDOM, XOR8, XOR16, XOR32, CRC8, CRC16, CRC32, CRC64, CUSTOM }
enum CounterType_t { PACKETS, BYTES, PACKETS_AND_BYTES }
enum MeterType_t { PACKETS, BYTES }
enum MathOp_t { MUL, SQR, SQRT, DIV, RSQR, RSQRT }
enum bit<8> MeterColor_t { GREEN = 0, YELLOW = 1, RED = 3 }

header ingress_intrinsic_metadata_t {
    bit<1> resubmit_flag;
    bit<1> _pad1;
    bit<2> packet_version;
    bit<3> _pad2;
    bit<9> ingress_port;
    bit<48> ingress_mac_tstamp;
}
struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<32> global_ver;
    bit<16> parser_err;
}
struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    DigestType_t digest_type;
    ResubmitType_t resubmit_type;
    MirrorType_t mirror_type;
}
struct ingress_intrinsic_metadata_for_tm_t {
    PortId_t ucast_egress_port;
    bit<1> bypass_egress;
    bit<1> deflect_on_drop;
    bit<3> ingress_cos;
    QueueId_t qid;
    bit<3> icos_for_copy_to_cpu;
    bit<1> copy_to_cpu;
    bit<2> packet_color;
    bit<1> disable_ucast_cutthru;
    bit<1> enable_mcast_cutthru;
    MulticastGroupId_t mcast_grp_a;
    MulticastGroupId_t mcast_grp_b;
    bit<13> level1_mcast_hash;
    bit<13> level2_mcast_hash;
    bit<16> level1_exclusion_id;
    bit<9> level2_exclusion_id;
    bit<16> rid;
}
header egress_intrinsic_metadata_t {
    bit<7> _pad0;
    bit<9> egress_port;
    bit<5> _pad1;
    bit<19> enq_qdepth;
    bit<6> _pad2;
    bit<2> enq_congest_stat;
#if __TARGET_TOFINO__ == 2
    bit<32> enq_tstamp;
#else
    bit<14> _pad3;
    bit<18> enq_tstamp;
#endif
    bit<5> _pad4;
    bit<19> deq_qdepth;
    bit<6> _pad5;
    bit<2> deq_congest_stat;
    bit<8> app_pool_congest_stat;
#if __TARGET_TOFINO__ == 2
    bit<32> deq_timedelta;
#else
    bit<14> _pad6;
    bit<18> deq_timedelta;
#endif
    bit<16> egress_rid;
    bit<7> _pad7;
    bit<1> egress_rid_first;
#if __TARGET_TOFINO__ == 2
    bit<1> _pad8;
#else
    bit<3> _pad8;
#endif
    QueueId_t egress_qid;
    bit<5> _pad9;
    bit<3> egress_cos;
    bit<7> _pad10;
    bit<1> deflection_flag;
    bit<16> pkt_length;
#if __TARGET_TOFINO__ == 2
    bit<8> _pad11;
#endif
}
struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<32> global_ver;
    bit<16> parser_err;
}
struct egress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    MirrorType_t mirror_type;
    bit<1> coalesce_flush;
    bit<7> coalesce_length;
}
struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> capture_tstamp_on_tx;
    bit<1> update_delay_on_tx;
}
`

// library is the contents of <...> includes: the architecture of the target; of core.p4, everything is built in.
func library(target Target) map[string]string {
	if target == Tofino2 {
		return map[string]string{"core.p4": "", "t2na.p4": prelude}
	}
	return map[string]string{"core.p4": "", "tna.p4": prelude}
}

// defines is the compiler's definitions, and those of -D.
func defines(target Target, more map[string]string) map[string]string {
	all := map[string]string{
		"__TARGET_TOFINO__":  strconv.Itoa(int(target)),
		"PORT_METADATA_BITS": strconv.Itoa(portMetadataBits[target]),
	}
	maps.Copy(all, more)
	return all
}
