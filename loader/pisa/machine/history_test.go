package machine

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

var (
	wildCount   = flag.Int("pisa.histories", 2500, "random programs to run with two histories")
	wildPackets = 8 // of a program, each in two histories
)

// TestHistories runs random programs twice on the same packets, configuration and registers, with different data left by earlier packets
// on stacks, in records, scratch memory, carry, counters, tallies, rings and the budget. A program that is proven must behave the same
// in both histories, and obey rules 1, 2 and 5 as a simulated switch checks them.
func TestHistories(t *testing.T) {
	t.Logf("seed %d", *randomSeed)
	n := runHistories(t, *randomSeed, *wildCount)
	t.Log(n)
	if n.proven < n.programs/20 || n.seen < n.programs/50 {
		t.Error("random programs are too much alike: the test proves nothing")
	}
	for fn := range allow.Helpers {
		if !n.called[fn] {
			t.Errorf("no proven program calls %s", allow.HelperName(fn))
		}
	}
}

// TestLongHistories runs for XDPMON_FUZZTIME (`make fuzz`), with a different seed on every core.
func TestLongHistories(t *testing.T) {
	text := os.Getenv("XDPMON_FUZZTIME")
	if text == "" {
		t.Skip("runs for the duration in XDPMON_FUZZTIME; make fuzz sets it")
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("read XDPMON_FUZZTIME=%s: %v", text, err)
	}
	end := time.Now().Add(limit)
	for core := range runtime.GOMAXPROCS(0) {
		seed := uint64(time.Now().UnixNano()) + uint64(core)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			n := histories{called: make(map[asm.BuiltinFunc]bool)}
			for i := uint64(0); time.Now().Before(end) && !t.Failed(); i++ {
				n.one(t, seed, i)
			}
			t.Log(n)
		})
	}
}

// histories counts the results of random programs.
type histories struct {
	programs, proven, refused, seen, invalid, complex, packets int
	called                                                     map[asm.BuiltinFunc]bool
}

func (n histories) String() string {
	return fmt.Sprintf("%d programs: %d proven, %d refused (%d of them broke the rule in a run), %d too complex, %d that the verifier would refuse; %d packets in two histories",
		n.programs, n.proven, n.refused, n.seen, n.complex, n.invalid, n.packets)
}

func runHistories(t *testing.T, seed uint64, count int) histories {
	n := histories{called: make(map[asm.BuiltinFunc]bool)}
	for i := range count {
		n.one(t, seed, uint64(i))
	}
	return n
}

// one writes a program, proves it and runs it.
func (n *histories) one(t *testing.T, seed, number uint64) {
	n.programs++
	r := rand.New(rand.NewPCG(seed, number))
	p := wildProgram(r)
	m, err := newMachine(wildEnv(), p, "wild", 20_000)
	if err != nil {
		t.Fatalf("program %d: %v\n%v", number, err, p.Instructions)
	}
	if err := m.prove(); errors.Is(err, rule.ErrTooComplex) {
		n.complex++
		return
	}
	broken, ok := n.run(r, p)
	switch {
	case !ok:
		n.invalid++
	case len(m.Found) > 0 && broken != "":
		n.refused++
		n.seen++
	case len(m.Found) > 0:
		n.refused++
	case broken != "":
		t.Fatalf("program %d is proven, but: %s\n%v", number, broken, p.Instructions)
	default:
		n.proven++
		for _, ins := range p.Instructions {
			if ins.IsBuiltinCall() {
				n.called[asm.BuiltinFunc(ins.Constant)] = true
			}
		}
	}
}

// run returns what differs between two histories, or the rule that a packet broke; false when the kernel's verifier would refuse the
// program.
func (n *histories) run(r *rand.Rand, p *ebpf.ProgramSpec) (broken string, ok bool) {
	moved := make(map[uint64]string) // by path through the program
	for range wildPackets {
		seed, l := r.Uint64(), randomLeft(r)
		history := r.Uint64()
		a, ok1 := simulate(wildEnv(), p, seed, history, 0, l)
		b, ok2 := simulate(wildEnv(), p, seed, r.Uint64(), 0, l)
		c, ok3 := simulate(wildEnv(), p, seed, history, 1, l)
		if !ok1 || !ok2 || !ok3 {
			return "", false
		}
		if a.trace == c.trace && a.throws == 0 && bytes.Equal(a.state, c.state) {
			return "a generator forgets where it was", true
		}
		n.packets++
		if a.broken != "" {
			return a.broken, true
		}
		if why := a.differs(b, l); why != "" {
			return fmt.Sprintf("%s, with %+v", why, l), true
		}
		to := string(a.state) + string(a.budget)
		if other, ok := moved[a.trace]; ok && other != to && !l.budget {
			return "the step of the generator or of the budget depends on the packet", true
		}
		if !l.budget {
			moved[a.trace] = to
		}
	}
	return "", true
}
