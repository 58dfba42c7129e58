package parser

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// probeSeed is the seed of the hash of names.
const probeSeed = 1

// everything is what an algorithm can ask the parser for.
const everything = maps.NeedTSOpt | maps.NeedDNS | maps.NeedNTP | maps.NeedQName | maps.NeedRTP | maps.NeedBegin | maps.NeedScale

// sight is what an entry program made of one packet.
type sight struct {
	maps.PHV
	reason packet.Reason
}

// probe runs single packets through the entry programs of one instance without algorithms. It belongs to the
// goroutine that made it, which NewReplayer has pinned to a core.
type probe struct {
	inst     *loader.Instance
	replayer *replay.Replayer
	programs map[way]*ebpf.Program
	phv      *ebpf.Map
	counts   *ebpf.Map
	cpu      int
	last     counters
	vectors  []vector // scratch of a per-CPU look-up
	banks    []counters
}

// vector is a packet header vector as in the map: byte for byte, with the padding of the struct.
type vector struct{ maps.PHV }

func (v *vector) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&v.PHV)), unsafe.Sizeof(v.PHV))
}

// UnmarshalBinary decodes the element of one core.
func (v *vector) UnmarshalBinary(b []byte) error {
	if n := copy(v.bytes(), b); n != len(b) {
		return fmt.Errorf("vector of %d bytes, not %d", len(b), n)
	}
	return nil
}

// MarshalBinary is the element of one core.
func (v vector) MarshalBinary() ([]byte, error) { return v.bytes(), nil }

type counters [chain.ChainChainCountCHAIN_COUNTS]uint64

// way is the hook by which a packet reaches the parser.
type way int

const (
	replayed way = iota
	live         // XDP
	tc
	egress // TC, leaving
	tunXDP // no Ethernet header
	tunTC
	ways
)

func (w way) String() string {
	return [ways]string{"replay", "xdp", "tc", "tc egress", "xdp without ethernet", "tc without ethernet"}[w]
}

var entries = map[way]loader.EntryConfig{
	live:   {Kind: loader.XDP, Frags: true},
	tc:     {Kind: loader.TC},
	egress: {Kind: loader.TC, Egress: true},
	tunXDP: {Kind: loader.XDP, L3Only: true},
	tunTC:  {Kind: loader.TC, L3Only: true},
}

// newProbe loads the replay's entry program and those of the other ways that are asked for.
func newProbe(tb testing.TB, decap bool, others ...way) *probe {
	tb.Helper()
	testutil.NeedRoot(tb)
	p := &probe{}
	tb.Cleanup(func() {
		if err := p.close(); err != nil {
			tb.Error(err)
		}
	})
	if err := p.open(decap, others...); err != nil {
		tb.Fatal(err)
	}
	return p
}

func (p *probe) open(decap bool, others ...way) (err error) {
	p.inst, err = loader.Load(nil, loader.Options{Replay: true, Decap: decap, Seed: probeSeed})
	if err != nil {
		return err
	}
	if p.replayer, err = replay.New(p.inst, 1); err != nil {
		return err
	}
	p.programs = map[way]*ebpf.Program{}
	for _, w := range others {
		if p.programs[w], err = p.inst.Entry(entries[w]); err != nil {
			return err
		}
	}
	// Behind the first entry program of each kind of hook, which writes what the chain's members need: nothing here.
	if err := p.inst.Control().SetChain(nil, everything); err != nil {
		return err
	}
	p.phv, p.counts = p.inst.Maps()["chain/phv_scratch"], p.inst.Maps()["chain/chain_counters"]
	p.vectors = make([]vector, maps.PossibleCPUs())
	p.banks = make([]counters, maps.PossibleCPUs())
	p.cpu, err = onlyCPU()
	return err
}

func (p *probe) close() error {
	var errs []error
	for _, prog := range p.programs {
		errs = append(errs, prog.Close())
	}
	if p.replayer != nil {
		errs = append(errs, p.replayer.Close())
	}
	if p.inst != nil {
		errs = append(errs, p.inst.Close())
	}
	return errors.Join(errs...)
}

// onlyCPU is the one that this thread may run on.
func onlyCPU() (int, error) {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return 0, err
	}
	_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	list, _, _ = strings.Cut(list, "\n")
	cpu, err := strconv.Atoi(strings.TrimSpace(list))
	if err != nil {
		return 0, fmt.Errorf("this thread runs on cores %q, not on one", strings.TrimSpace(list))
	}
	return cpu, nil
}

// see runs one packet through the parser.
func (p *probe) see(w way, f *packet.Frame) (sight, error) {
	if err := p.run(w, f); err != nil {
		return sight{}, fmt.Errorf("%s: %w", w, err)
	}
	if err := p.phv.Lookup(uint32(0), &p.vectors); err != nil {
		return sight{}, err
	}
	s := sight{PHV: p.vectors[p.cpu].PHV}
	var err error
	s.reason, err = p.reason(s.Len)
	return s, err
}

func (p *probe) run(w way, f *packet.Frame) error {
	if w != replayed {
		_, err := p.programs[w].Run(&ebpf.RunOptions{Data: f.Data})
		return err
	}
	if err := p.replayer.Feed(f); err != nil {
		return err
	}
	return p.replayer.Flush()
}

// reason finds the counter that increased; exactly one must have, by one packet and its bytes.
func (p *probe) reason(bytes uint32) (packet.Reason, error) {
	if err := p.counts.Lookup(uint32(p.inst.Control().Bank()), &p.banks); err != nil {
		return 0, err
	}
	now, found, packets := p.banks[p.cpu], packet.Reason(0), uint64(0)
	for r := range packet.Reasons {
		if more := now[r] - p.last[r]; more != 0 {
			found, packets = r, packets+more
		}
	}
	counted := now[chain.ChainChainCountCOUNT_BYTES] - p.last[chain.ChainChainCountCOUNT_BYTES]
	p.last = now
	if packets != 1 || counted != uint64(bytes) {
		return 0, fmt.Errorf("counted %d packets and %d bytes, want 1 and %d", packets, counted, bytes)
	}
	return found, nil
}

// poison leaves garbage in the vector, as an earlier packet might.
func (p *probe) poison() error {
	garbage := maps.PHV{
		Now: ^uint64(0), EpSrc: 1, EpDst: 2, Sport: 3, Dport: 4, Valid: 0xffff, Vlan: 4095, Family: 9, Proto: 6,
		TcpFlags: 0xff, IcmpType: 8, Seq: 5, Ack: 6, Len: 7, Payload: 8, Tsval: 9, Tsecr: 10, AppId: 11, Ipid: 12, Segs: 13,
		Ifindex: 14, Coin: 15, Bank: 1, Next: 77, End: 99, Pass: 1, Verdict: 2,
	}
	for i := range p.vectors {
		p.vectors[i].PHV = garbage
	}
	return p.phv.Update(uint32(0), p.vectors, ebpf.UpdateAny)
}
