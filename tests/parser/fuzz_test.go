package parser

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// quick is the number of mutants in `make test`; each with and without decapsulation.
const quick = 200_000

// A fixed number of mutants: no error from the kernel, no wrong length, agreement with packet.Decode.
func TestMutations(t *testing.T) {
	n := quick
	if testing.Short() {
		n /= 10
	}
	attack(t, func(done int, _ time.Duration) bool { return done >= n })
}

// TestLongFuzz runs for XDPMON_FUZZTIME (`make fuzz`).
func TestLongFuzz(t *testing.T) {
	text := os.Getenv("XDPMON_FUZZTIME")
	if text == "" {
		t.Skip("runs for the duration in XDPMON_FUZZTIME; make fuzz sets it")
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("read XDPMON_FUZZTIME=%s: %v", text, err)
	}
	attack(t, func(_ int, taken time.Duration) bool { return taken >= length })
}

func attack(t *testing.T, enough func(done int, taken time.Duration) bool) {
	probes := map[bool]*probe{false: newProbe(t, false), true: newProbe(t, true)}
	m := newMutant(t, testutil.Seed(t))
	started, reasons, bad := time.Now(), [packet.Reasons]int{}, 0
	n := 0
	for ; n%1000 != 0 || !enough(n, time.Since(started)); n++ {
		f := m.next()
		for decap, p := range probes {
			got, diff := p.judge(&f, decap)
			reasons[got]++
			if diff == "" {
				continue
			}
			t.Errorf("mutant %d (decap %t):\n%s%s", n, decap, diff, dump(&f))
			if bad++; bad >= 10 {
				t.FailNow()
			}
		}
	}
	t.Logf("%d mutants in %s", n, time.Since(started).Round(time.Millisecond))
	for r, count := range reasons {
		t.Logf("  %s: %d", packet.Reason(r), count)
		if count == 0 {
			t.Errorf("no mutant was %s: the mutations do not reach all of the parser", packet.Reason(r))
		}
	}
}

// judge compares a replayed frame with packet.Decode and checks what must hold of any packet.
func (p *probe) judge(f *packet.Frame, decap bool) (packet.Reason, string) {
	got, err := p.see(replayed, f)
	if err != nil {
		return 0, err.Error()
	}
	var want packet.Packet
	reason := packet.Decode(f, packet.DecodeOptions{Decap: decap}, &want)
	if err := sound(&got, f); err != nil {
		return got.reason, fmt.Sprintf("  %v\n", err)
	}
	return got.reason, differences(&got, &want, reason)
}

// sound returns an inconsistency of a vector, for any packet.
func sound(got *sight, f *packet.Frame) error {
	valid := packet.Valid(got.Valid)
	transport := valid&(packet.TCP|packet.UDP|packet.ICMP) != 0
	switch {
	case valid&packet.IP == 0 && valid&packet.Tunnel == 0 && got.Len != uint32(f.Len):
		return fmt.Errorf("not an IP packet, %d bytes on the wire, but its length is %d", f.Len, got.Len)
	case valid&(packet.IP|packet.Tunnel) == packet.IP && transport && got.Payload >= got.Len:
		return fmt.Errorf("payload of %d bytes in a packet of %d", got.Payload, got.Len)
	case got.reason == packet.Parsed && !transport:
		return errors.New("parsed without a transport header")
	case transport && valid&packet.IP == 0:
		return errors.New("a transport header without addresses")
	case valid&packet.TCP != 0 && got.Proto != 6, valid&packet.UDP != 0 && got.Proto != 17:
		return fmt.Errorf("protocol %d with a header of another", got.Proto)
	}
	return nil
}

// request is a frame for the goroutine that owns the probes; the fuzzing engine calls from many.
type request struct {
	frame  packet.Frame
	decap  bool
	answer chan string
}

// serve owns the probes until requests is closed; ready receives the error of the start, and at the end another one.
func serve(requests <-chan request, ready chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var plain, inner probe
	err := errors.Join(plain.open(false), inner.open(true))
	ready <- err
	for r := range requests {
		p := &plain
		if r.decap {
			p = &inner
		}
		_, diff := p.judge(&r.frame, r.decap)
		r.answer <- diff
	}
	ready <- errors.Join(inner.close(), plain.close())
}

// FuzzParser lets Go's engine look for packets on which the program and packet.Decode disagree; go test runs the seeds.
func FuzzParser(f *testing.F) {
	testutil.NeedRoot(f)
	requests, ready := make(chan request), make(chan error)
	go serve(requests, ready)
	if err := <-ready; err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		close(requests)
		if err := <-ready; err != nil {
			f.Error(err)
		}
	})
	_, frames := crafted(f)
	for i := 0; i < len(frames); i += 64 {
		f.Add(frames[i].Data, uint32(frames[i].Len), frames[i].Link == packet.LinkRaw)
	}
	f.Fuzz(func(t *testing.T, data []byte, wire uint32, raw bool) {
		data = data[:min(len(data), longest)]
		frame := packet.Frame{Time: 1, Data: data, Len: max(int(wire), len(data))}
		if raw {
			frame.Link = packet.LinkRaw
		}
		for _, decap := range []bool{false, true} {
			r := request{frame, decap, make(chan string)}
			requests <- r
			if diff := <-r.answer; diff != "" {
				t.Errorf("decap %t:\n%s%s", decap, diff, dump(&frame))
			}
		}
	})
}
