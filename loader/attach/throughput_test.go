package attach

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
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/isolated"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// One TCP connection over veth, data arriving at the end that is attached to, with the fridge as it is compiled. The
// kinds of attachment alternate, so that other load of the machine affects all of them; the best round of each is
// the one least affected. On an idle machine best and median agree.
//
//	go test ./loader/attach -run '^$' -bench Throughput -benchtime 5x     (5 rounds)
//
// On a machine with other load, `go test -c` first and run the result under `chrt -r 10` from this folder.
func BenchmarkThroughput(b *testing.B) {
	testutil.NeedRoot(b)
	testutil.NeedTool(b, "iperf3")
	rounds := fmt.Sprint(b.N)
	cmd := exec.Command(os.Args[0], "-test.run=^TestThroughputRounds$", "-test.v", "-test.timeout=600s")
	cmd.Env = append(os.Environ(), lab.IsolatedEnv+"=TestThroughputRounds", "XDPMON_ROUNDS="+rounds)
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.Log(string(out))
	for line := range strings.Lines(string(out)) {
		var name string
		var gbit, share float64
		if n, _ := fmt.Sscanf(strings.TrimSpace(line), "best %s %f Gb/s, %f", &name, &gbit, &share); n == 3 {
			b.ReportMetric(gbit, name+"_Gb/s")
			b.ReportMetric(share, name+"_%")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// throughputWays are the kinds of attachment; nil is nothing attached.
var throughputWays = []struct {
	name string
	opts *Options
}{
	{"nothing", nil},
	{"auto", &Options{}},
	{"auto-both", &Options{Direction: Both}},
	{"clsact", &Options{Hook: HookTC, WithoutTCX: true}},
	{"generic", &Options{Hook: HookXDP, Mode: ModeGeneric}},
	{"native", &Options{Hook: HookXDP, Mode: ModeNative}},
}

// TestThroughputRounds runs the rounds of BenchmarkThroughput, in namespaces of its own.
func TestThroughputRounds(t *testing.T) {
	rounds := 0
	if _, err := fmt.Sscan(os.Getenv("XDPMON_ROUNDS"), &rounds); err != nil || !lab.Isolated(t) {
		t.Skip("run by BenchmarkThroughput only")
	}
	lab.Veth(t)
	results := make([][]float64, len(throughputWays))
	for range rounds {
		for i, way := range throughputWays {
			results[i] = append(results[i], measureWay(t, way.opts))
		}
	}
	for i, way := range throughputWays {
		best, none := slices.Max(results[i]), slices.Max(results[0])
		fmt.Printf("best %s %.2f Gb/s, %.1f %% of nothing attached; median %.1f %%; rounds %.1f\n", way.name, best, 100*best/none,
			100*median(results[i])/median(results[0]), results[i])
	}
}

func measureWay(t *testing.T, opts *Options) float64 {
	t.Helper()
	if opts == nil {
		return iperf(t)
	}
	spec, err := fridge.LoadFridge()
	lab.NoError(t, err)
	inst, err := loader.Load([]loader.Object{{Name: "fridge", Spec: spec}}, loader.Options{Seed: 1})
	lab.NoError(t, err)
	defer inst.Close()
	a, err := Attach(inst, lab.Near, *opts)
	lab.NoError(t, err)
	defer a.Close()
	gbit := iperf(t)
	if lab.SeenBy(t, inst) == 0 {
		t.Error("the connection was not seen")
	}
	return gbit
}

// iperf returns the rate in Gb/s, over a second, at which data of one connection arrived at the near end.
func iperf(t *testing.T) float64 {
	t.Helper()
	server := exec.Command("ip", "netns", "exec", lab.PeerNS, "iperf3", "-s", "-1", "-B", lab.FarIP)
	server.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	lab.NoError(t, server.Start())
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	for range 50 {
		if gbit := iperfClient(t); gbit > 0 {
			return gbit
		}
		time.Sleep(20 * time.Millisecond) // the server does not listen yet, for which iperf3 exits with status 0
	}
	t.Fatal("iperf3 measured nothing")
	return 0
}

func iperfClient(t *testing.T) float64 {
	t.Helper()
	out, err := exec.Command("iperf3", "-c", lab.FarIP, "-R", "-J", "-t", "1").Output()
	if err != nil {
		return 0
	}
	var result struct {
		End struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	lab.NoError(t, json.Unmarshal(out, &result))
	return result.End.Received.BitsPerSecond / 1e9
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
