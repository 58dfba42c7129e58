package loader

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// One TCP connection over veth, data arriving at the end that is attached to, with the fridge as it is compiled. The
// kinds of attachment take turns, so that what else the machine does meets all of them.
//
//	go test ./loader -run '^$' -bench Throughput -benchtime 5x     (5 rounds)
func BenchmarkThroughput(b *testing.B) {
	testutil.NeedRoot(b)
	testutil.NeedTool(b, "iperf3")
	rounds := fmt.Sprint(b.N)
	cmd := exec.Command(os.Args[0], "-test.run=^TestThroughputRounds$", "-test.v", "-test.timeout=600s")
	cmd.Env = append(os.Environ(), isolatedEnv+"=TestThroughputRounds", "XDPMON_ROUNDS="+rounds)
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.Log(string(out))
	for line := range strings.Lines(string(out)) {
		var name string
		var gbit, share float64
		if n, _ := fmt.Sscanf(strings.TrimSpace(line), "median %s %f %f", &name, &gbit, &share); n == 3 {
			b.ReportMetric(gbit, name+"_Gb/s")
			b.ReportMetric(share, name+"_%")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// throughputWays are the ways to attach; nil is nothing attached.
var throughputWays = []struct {
	name string
	opts *AttachOptions
}{
	{"nothing", nil},
	{"auto", &AttachOptions{}},
	{"auto-both", &AttachOptions{Direction: Both}},
	{"clsact", &AttachOptions{Hook: HookTC, withoutTCX: true}},
	{"generic", &AttachOptions{Hook: HookXDP, Mode: ModeGeneric}},
	{"native", &AttachOptions{Hook: HookXDP, Mode: ModeNative}},
}

// TestThroughputRounds runs one short round as a test, so that the benchmark cannot rot: every way must let the
// connection through.
func TestThroughputRounds(t *testing.T) {
	testutil.NeedTool(t, "iperf3")
	if !isolated(t) {
		return
	}
	rounds, length := 1, 200*time.Millisecond
	if _, err := fmt.Sscan(os.Getenv("XDPMON_ROUNDS"), &rounds); err == nil {
		length = 2 * time.Second
	}
	veth(t)
	results := make([][]float64, len(throughputWays))
	for range rounds {
		for i, way := range throughputWays {
			results[i] = append(results[i], measureWay(t, way.opts, length))
		}
	}
	for i, way := range throughputWays {
		m := median(results[i])
		fmt.Printf("median %s %.2f %.1f of nothing attached, rounds in Gb/s: %.1f\n", way.name, m, 100*m/median(results[0]), results[i])
		if m <= 0 {
			t.Errorf("%s: no byte came through", way.name)
		}
	}
}

func measureWay(t *testing.T, opts *AttachOptions, length time.Duration) float64 {
	t.Helper()
	if opts == nil {
		return iperf(t, length)
	}
	spec, err := fridge.LoadFridge()
	noError(t, err)
	inst, err := Load([]Object{{Name: "fridge", Spec: spec}}, Options{Seed: 1})
	noError(t, err)
	defer inst.Close()
	a, err := Attach(inst, near, *opts)
	noError(t, err)
	defer a.Close()
	gbit := iperf(t, length)
	if seenBy(t, inst) == 0 {
		t.Error("the connection was not seen")
	}
	return gbit
}

// iperf returns the rate in Gb/s at which data of one connection arrived at the near end.
func iperf(t *testing.T, length time.Duration) float64 {
	t.Helper()
	server := exec.Command("ip", "netns", "exec", peerNS, "iperf3", "-s", "-1", "-B", farIP)
	server.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	noError(t, server.Start())
	defer func() { _ = server.Wait() }()
	var out []byte
	for range 50 {
		var err error
		out, err = exec.Command("iperf3", "-c", farIP, "-R", "-J", "-t", "60", "-n", bytesFor(length)).Output()
		if err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond) // the server is not listening yet
	}
	var result struct {
		End struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	noError(t, json.Unmarshal(out, &result))
	return result.End.Received.BitsPerSecond / 1e9
}

// bytesFor is how much takes about that long at 8 Gb/s; iperf3 itself counts time in whole seconds.
func bytesFor(length time.Duration) string {
	return fmt.Sprint(length.Nanoseconds())
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
