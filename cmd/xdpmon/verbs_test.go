package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/detach"
	"github.com/xdpmon/xdpmon/loader/features"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/loader/status"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// TestWrongUsage: exit code 2, nothing on standard output, and a message with the value and what is allowed.
func TestWrongUsage(t *testing.T) {
	for line, want := range map[string]string{
		"":                                       "which command?",
		"atach eth0":                             `unknown command "atach".*did you mean attach\?`,
		"atach eth0 --algo test-delay":           `unknown command "atach".*did you mean attach\?`,
		"attach":                                 "the interface to attach to is missing",
		"attach eth0":                            "--algo is missing: choose one or more of .*test-delay",
		"attach eth0 --algo test-dely":           `unknown algorithm "test-dely".*did you mean test-delay\?`,
		"attach eth0 eth0 --algo test-delay":     "interface eth0 is given twice",
		"attach eth0 --algo test-delay --hook x": "choose one of auto, xdp, tc",
		"attach eth0 --algo test-delay --hok tc": `unknown flag: --hok; did you mean --hook\?`,
		"attach eth0 --algo test-delay --mode nativ":                                 `did you mean native\?`,
		"attach eth0 --algo test-delay --direction out":                              "choose one of ingress, egress, both",
		"attach eth0 --algo test-delay --window 0":                                   "allowed are 100ms to 24h",
		"attach eth0 --algo test-delay --window 10ms":                                "allowed are 100ms to 24h",
		"attach eth0 --algo test-delay --window test-delay=1ms":                      "allowed are 100ms to 24h",
		"attach eth0 --algo test-delay --window test-delay=0":                        "allowed are 100ms to 24h",
		"attach eth0 --algo test-delay --window much":                                "NAME=LENGTH like",
		"attach eth0 --algo test-delay --window test-dela=1m":                        `is not among the algorithms of this run \(test-delay\); did you mean test-delay\?`,
		"attach eth0 --algo test-delay --window test-delay=1m,test-delay=2m":         "test-delay has two lengths",
		"attach eth0 --algo test-delay,test-flows --window 7s,test-flows=1m":         "1m0s of test-flows is not a multiple of the shortest, 7s",
		"attach eth0 --algo test-delay,test-flows --window test-flows=1m --pin edge": "--pin with windows of several lengths",
		"attach eth0 --algo test-delay --duration -3s":                               "--duration -3s",
		"attach eth0 --algo test-delay --pin a/b":                                    `--pin "a/b"`,
		"attach eth0 --algo test-delay --seed x":                                     `"x".*--seed`,
		"attach eth0 --algo test-delay,test-delay":                                   "names test-delay twice",
		"attach eth0 --algo test-delay --listen host":                                `--listen on "host".*not a TCP port`,
		"attach eth0 --algo test-delay --hash md5":                                   "choose one of fast, crc",
		"attach eth0 --algo test-delay --output xml":                                 "choose one of auto, table, json",
		"replay a.pcap --algo test-delay --set entries=5":                            "write NAME.KEY=VALUE",
		"replay a.pcap --algo test-delay --set test-flows.x=5":                       "test-flows is not among the algorithms of this run",
		"replay a.pcap --algo test-delay --set test-delay.entris=5":                  `no such parameter.*did you mean entries\?`,
		"replay a.pcap --algo test-delay --set test-delay.entries=5":                 "entries=5: allowed are 16 to 65536",
		"replay a.pcap --algo test-delay --set test-delay.entries=17":                "entries=17: a power of two is needed",
		"replay a.pcap --algo test-delay --set test-delay.match=udp":                 "choose one of tcp, dns",
		"replay a.pcap --algo test-delay --set test-delay.share=x":                   "not a number or a fraction",
		"replay --algo test-delay":                                                   "the capture .* is missing",
		"replay - - --algo test-delay":                                               "standard input .* is given 2 times",
		"demo test-delay --rate 1M/s":                                                "--rate 1M/s: at most 5000/s",
		"demo test-delay --median 1s":                                                "--median 1s: allowed are 1ms to 200ms",
		"demo test-delay --window 0":                                                 "--window 0",
		"demo test-delay --duration -1s":                                             "--duration -1s",
		"demo test-dely":                                                             `did you mean test-delay\?`,
		"plan test-delay --rate fast":                                                `--rate: "fast" is not a rate`,
		"plan test-delay --memory 12parsecs":                                         "not a size like 64KiB",
		"plan test-delay --memory 100":                                               "memory of 1 KiB or more",
		"plan test-delay --max-delay 0s":                                             "--max-delay 0s",
		"plan test-delay --extra x":                                                  "write KEY=VALUE",
		"plan test-delay -f queries.yaml":                                            "--query and --file are for beaucoup",
		"plan test-flows":                                                            "there is nothing to plan.*test-delay",
		"p4 params test-flows":                                                       "it has no P4 twin",
		"p4 tables test-delay":                                                       "the twin has only params",
		"p4 bits test-delay":                                                         "unknown command",
		"attach eth0 eth1 --algo test-delay --each --pin edge":                       "a pin of its own",
		"p4":                 "what: params",
		"algos test-dela":    `did you mean test-delay\?`,
		"pisa nothing":       `unknown algorithm "nothing"`,
		"features eth0 eth1": `"eth1" is one argument too many`,
		"status eth0":        "one argument too many",
		"detach":             "the interface to detach from is missing",
		"version now":        "one argument too many",
	} {
		t.Run(line, func(t *testing.T) {
			w := newWorld()
			if code := w.run(strings.Fields(line)...); code != cli.ExitUsage {
				t.Errorf("exit code %d, want %d", code, cli.ExitUsage)
			}
			if !regexp.MustCompile(want).MatchString(w.err.String()) {
				t.Errorf("message %q does not match %q", w.err.String(), want)
			}
			if w.out.String() != "" {
				t.Errorf("standard output has %q", w.out.String())
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0}, {errors.New("x"), 1}, {context.Canceled, 1},
		{fmt.Errorf("attach: %w", attach.ErrUsage), 2}, {algo.ErrUnknown, 2}, {cli.UsageError("x"), 2}, {fmt.Errorf("a: %w", cli.UsageError("x")), 2},
		{fmt.Errorf("attach: %w", privilege.ErrMissing), 3}, {errors.Join(errors.New("x"), kernel.ErrUnsupported), 3},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("exit code of %v = %d, want %d", c.err, got, c.want)
		}
	}
}

// lines decodes JSON lines.
func lines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for l := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		var one map[string]any
		if err := json.Unmarshal([]byte(l), &one); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		all = append(all, one)
	}
	return all
}

func TestAttachPassesFlagsOn(t *testing.T) {
	w := newWorld()
	var got session.LiveConfig
	w.engine.live = func(_ context.Context, cfg session.LiveConfig) error { got = cfg; return nil }
	code := w.run("attach", "eth0", "eth1", "--algo", "test-delay,test-flows", "--hook", "tc", "--mode", "auto", "--direction", "both",
		"--window", "2s", "--duration", "1h", "--set", "test-delay.match=dns", "--hash", "crc", "--decap", "--seed", "42", "--pin", "edge")
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	if fmt.Sprint(got.Interfaces) != "[eth0 eth1]" || got.Hook != "tc" || got.Mode != "auto" || got.Direction != "both" || got.Pin != "edge" ||
		got.Duration.Hours() != 1 || got.Window.Seconds() != 2 || got.Seed != 42 || got.Hash != algo.HashCRC || !got.Decap || got.Truth {
		t.Errorf("config %+v", got)
	}
	if len(got.Algorithms) != 2 || got.Algorithms[0].Values.Text("match") != "dns" || got.Algorithms[0].Values.Int("entries") != 4096 {
		t.Errorf("algorithms %+v", got.Algorithms)
	}
}

// --window has the length of all algorithms, and those of some; of the others it has the default.
func TestAttachWindows(t *testing.T) {
	for line, want := range map[string]string{"": "10s 0s 0s", "--window 2s": "2s 0s 0s", "--window test-flows=1m": "10s 0s 1m0s", "--window 5s,test-flows=1m,test-delay=20s": "5s 20s 1m0s",
		"--window 1m --window test-delay=10s": "1m0s 10s 0s"} {
		w := newWorld()
		got := ""
		w.engine.live = func(_ context.Context, cfg session.LiveConfig) error {
			got = fmt.Sprint(cfg.Window, time.Duration(cfg.Algorithms[0].Window), time.Duration(cfg.Algorithms[1].Window))
			return nil
		}
		w.run(append([]string{"attach", "eth0", "--algo", "test-delay,test-flows"}, strings.Fields(line)...)...)
		if got != want {
			t.Errorf("attach %s: %q, want %q: %s", line, got, want, w.err.String())
		}
	}
}

func TestAttachDirectionDefault(t *testing.T) {
	for line, want := range map[string]string{"eth0": "both", "eth0 eth1": "ingress", "eth0 eth1 --each": "both", "eth0 --direction ingress": "ingress", "eth0 eth1 --direction both": "both"} {
		w := newWorld()
		var got string
		w.engine.live = func(_ context.Context, cfg session.LiveConfig) error { got = string(cfg.Direction); return nil }
		w.run(append([]string{"attach", "--algo", "test-delay"}, strings.Fields(line)...)...)
		if got != want {
			t.Errorf("attach %s: direction %q, want %q", line, got, want)
		}
	}
}

func TestAttachToAPipeWritesJSONLines(t *testing.T) {
	w := newWorld()
	w.emitting(2, false)
	if code := w.run("attach", "eth0", "--algo", "test-delay,test-flows", "--seed", "7"); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	got := lines(t, w.out.String())
	if len(got) != 5 {
		t.Fatalf("%d lines, want the run and 2 windows of 2 algorithms:\n%s", len(got), w.out.String())
	}
	described := got[0]["run"].(map[string]any)
	clock := described["clock"].(map[string]any)
	if described["command"] != "attach" || described["seed"] != 7.0 || described["kernel"] != "6.18.0-test" || described["window_ns"] != 1e10 ||
		clock["name"] != "monotonic" || clock["unix_offset_ns"] != float64(testEpoch.UnixNano()-1e9) {
		t.Errorf("run %v", described)
	}
	first := described["algorithms"].([]any)[0].(map[string]any)
	if first["name"] != "test-delay" || first["params"].(map[string]any)["entries"] != 4096.0 {
		t.Errorf("algorithm %v", first)
	}
	for i, name := range []string{"test-delay", "test-flows", "test-delay", "test-flows"} {
		if got[i+1]["algorithm"] != name {
			t.Errorf("line %d is of %v, want %s", i+1, got[i+1]["algorithm"], name)
		}
	}
	contains(t, w.err.String(), "xdpmon: hook tc was chosen on eth0")
}

func TestOutputFollowsTheTerminal(t *testing.T) {
	for _, c := range []struct {
		verb, output, term string
		terminal           bool
		want, not          string
	}{
		{"attach", "auto", "xterm", true, "\x1b[?1049h", `{"run"`},
		{"attach", "auto", "dumb", true, "test-delay (40.0 % of the packets)", "\x1b["},
		{"attach", "json", "xterm", true, `{"run"`, "\x1b["},
		{"attach", "table", "xterm", false, "Nothing found.", "lost"},
		{"attach --details", "table", "xterm", false, "test-delay on eth0", "\x1b["},
		{"replay", "auto", "xterm", true, "test-delay (40.0 % of the packets)", "Nothing found"},
		{"replay --details", "auto", "xterm", true, "lost      2 evicted", "\x1b["},
		{"replay", "auto", "xterm", false, `{"run"`, "on eth0"},
	} {
		w := newWorld()
		w.emitting(1, false)
		w.terminal[&w.out] = c.terminal
		w.vars["TERM"] = c.term
		if code := w.run(append(strings.Fields(c.verb), "eth0", "--algo", "test-delay", "--output", c.output)...); code != cli.ExitDone {
			t.Fatalf("exit code %d: %s", code, w.err.String())
		}
		if text := w.out.String(); !strings.Contains(text, c.want) || strings.Contains(text, c.not) {
			t.Errorf("%+v: got %q", c, text)
		}
	}
}

// A start that takes longer than a second reports its progress, and nothing before.
func TestSlowStartIsNotSilent(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		w := newWorld()
		w.emitting(1, false)
		w.terminal[&w.err] = terminal
		emit, now := w.engine.live, testEpoch
		w.environment.now = func() time.Time { return now }
		w.engine.live = func(ctx context.Context, cfg session.LiveConfig) error {
			cfg.Loading("quick", 1, 4)
			for n, name := range []string{"slow", "slower", "slowest"} {
				now = now.Add(time.Second)
				cfg.Loading(name, n+2, 4)
			}
			return emit(ctx, cfg)
		}
		if code := w.run("attach", "eth0", "--algo", "test-delay"); code != cli.ExitDone {
			t.Fatalf("exit code %d: %s", code, w.err.String())
		}
		text := w.err.String()
		if strings.Contains(text, "quick") {
			t.Errorf("a word within the first second:\n%q", text)
		}
		if terminal {
			contains(t, text, "\rproving and loading slow, 2 of 4\x1b[K", "\rproving and loading slowest, 4 of 4\x1b[K", "\r\x1b[K")
		} else if strings.Count(text, "proving and loading") != 1 || !strings.Contains(text, "xdpmon: proving and loading slow, 2 of 4\n") {
			t.Errorf("want one line:\n%q", text)
		}
	}
}

func TestReplayShowsProgressOnATerminal(t *testing.T) {
	w := newWorld()
	w.emitting(1, false)
	w.terminal[&w.err] = true
	if code := w.run("replay", "a.pcap", "--algo", "test-delay", "--truth"); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	contains(t, w.err.String(), "\r[##########..........]  50 %, 1,000 packets, 1.00 k/s, 1s left\x1b[K", "\r\x1b[K")
	w = newWorld()
	w.emitting(1, false)
	w.run("replay", "a.pcap", "--algo", "test-delay")
	if strings.Contains(w.err.String(), "\r") {
		t.Errorf("progress without a terminal: %q", w.err.String())
	}
}

func TestReplayPassesStandardInputAndTruth(t *testing.T) {
	w := newWorld()
	w.stdin = strings.NewReader("capture")
	var text []byte
	w.engine.replay = func(_ context.Context, cfg session.Config, files []string, stdin io.Reader, _ func(session.Progress)) error {
		if !cfg.Truth || cfg.Window != 0 || len(files) != 1 || files[0] != "-" {
			t.Errorf("config %+v, files %v", cfg, files)
		}
		var err error
		text, err = io.ReadAll(stdin)
		return err
	}
	if code := w.run("replay", "-", "--algo", "test-delay", "--truth"); code != cli.ExitDone || string(text) != "capture" {
		t.Errorf("exit code %d, read %q", code, text)
	}
}

func TestFirstSignalEndsTheRunWithItsLastWindow(t *testing.T) {
	w := newWorld()
	w.engine.live = func(ctx context.Context, cfg session.LiveConfig) error {
		w.signal <- os.Interrupt
		<-ctx.Done()
		return errors.Join(cfg.Emit(testLine("test-delay", 0)), ctx.Err())
	}
	if code := w.run("attach", "eth0", "--algo", "test-delay"); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, w.err.String())
	}
	if n := len(lines(t, w.out.String())); n != 2 {
		t.Errorf("%d lines, want the run and the last window", n)
	}
}

// TestSignalDuringTheLoad: there is nothing to show, and a script must not take that for an answer.
func TestSignalDuringTheLoad(t *testing.T) {
	w := newWorld()
	w.engine.live = func(ctx context.Context, _ session.LiveConfig) error {
		w.signal <- os.Interrupt
		<-ctx.Done()
		return fmt.Errorf("load test-delay: %w", ctx.Err())
	}
	if code := w.run("attach", "eth0", "--algo", "test-delay"); code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, w.err.String(), "ended by a signal before anything was attached")
}

// TestTwoSignalsAtOnceAreOne is what timeout(1) does: the last window must not be lost.
func TestTwoSignalsAtOnceAreOne(t *testing.T) {
	w := newWorld()
	w.engine.live = func(ctx context.Context, cfg session.LiveConfig) error {
		w.signal <- syscall.SIGTERM
		w.signal <- syscall.SIGTERM
		<-ctx.Done()
		w.graceful <- testEpoch
		return cfg.Emit(testLine("test-delay", 0))
	}
	if code := w.run("attach", "eth0", "--algo", "test-delay"); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, w.err.String())
	}
	if n := len(lines(t, w.out.String())); n != 2 {
		t.Errorf("%d lines, want the run and the last window", n)
	}
	if len(w.exited) > 0 {
		t.Error("the second signal ended the process")
	}
}

func TestSecondSignalEndsTheProcess(t *testing.T) {
	w := newWorld()
	w.terminal[&w.out] = true
	release := make(chan struct{})
	w.engine.live = func(ctx context.Context, cfg session.LiveConfig) error {
		if err := cfg.Emit(testLine("test-delay", 0)); err != nil {
			return err
		}
		w.signal <- syscall.SIGTERM
		<-ctx.Done()
		w.graceful <- testEpoch
		for { // as if closing hung; the first ones may fall into the time of grace
			select {
			case w.signal <- syscall.SIGTERM:
			case <-release:
				return nil
			}
		}
	}
	ended := make(chan int)
	go func() { ended <- w.run("attach", "eth0", "--algo", "test-delay") }()
	if code := <-w.exited; code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, w.out.String(), "\x1b[?1049l")
	close(release)
	<-ended
}

func TestFailureKeepsWhatWasMeasured(t *testing.T) {
	w := newWorld()
	w.engine.replay = func(_ context.Context, cfg session.Config, _ []string, _ io.Reader, _ func(session.Progress)) error {
		return errors.Join(cfg.Emit(testLine("test-delay", 0)), errors.New("read a.pcap: cut off after packet 17"))
	}
	if code := w.run("replay", "a.pcap", "--algo", "test-delay"); code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, w.out.String(), `"matched":150`)
	contains(t, w.err.String(), "cut off after packet 17")
}

type goneReader struct{}

func (goneReader) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestReaderCloses(t *testing.T) {
	w := newWorld()
	w.emitting(1, true) // would wait for ever
	w.stdout = goneReader{}
	if code := w.run("attach", "eth0", "--algo", "test-delay"); code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, w.err.String(), "broken pipe")
}

func TestListenServesMetricsWhileMeasuring(t *testing.T) {
	w := newWorld()
	w.emitting(2, true)
	ended := make(chan int)
	go func() { ended <- w.run("attach", "eth0", "--algo", "test-delay", "--listen", ":0") }()
	address := ""
	waitFor(t, "the notice of the address", func() bool {
		found := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/metrics`).FindStringSubmatch(w.err.String())
		if found != nil {
			address = found[1]
		}
		return found != nil
	})
	contains(t, w.err.String(), "only this host can read them")
	waitFor(t, "both windows in the metrics", func() bool {
		answer, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return strings.Contains(string(body), `xdpmon_test_delay_matched_total{algorithm="test-delay",instance_name="eth0"} 300`)
	})
	w.signal <- os.Interrupt
	if code := <-ended; code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, w.err.String())
	}
}

func TestListenOnATakenPortFailsBeforeAttaching(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	w := newWorld()
	w.engine.live = func(context.Context, session.LiveConfig) error { t.Error("it attached"); return nil }
	if code := w.run("attach", "eth0", "--algo", "test-delay", "--listen", taken.Addr().String()); code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, w.err.String(), "address already in use", "choose another port")
}

func TestMissingPrivilegeIsReportedFirst(t *testing.T) {
	for _, line := range []string{"attach eth0 --algo test-delay", "replay a.pcap --algo test-delay", "demo test-delay"} {
		w := newWorld()
		w.engine.privilege = func() error { return fmt.Errorf("%w: no CAP_BPF; run as root", privilege.ErrMissing) }
		if code := w.run(strings.Fields(line)...); code != cli.ExitMissing {
			t.Errorf("%s: exit code %d, want %d", line, code, cli.ExitMissing)
		}
		contains(t, w.err.String(), "no CAP_BPF; run as root")
	}
}

func TestRunReportsWhereItIsAttached(t *testing.T) {
	w := newWorld()
	w.engine.live = func(_ context.Context, cfg session.LiveConfig) error {
		cfg.Started([]*attach.Attachment{{Interface: "eth0"}})
		return cfg.Emit(testLine("test-delay", 0))
	}
	w.run("attach", "eth0", "--algo", "test-delay")
	if got := lines(t, w.out.String()); len(got) != 2 || got[0]["run"] == nil {
		t.Errorf("got %v, want one run and one window", got)
	}
}

func TestOneCauseIsReportedOnce(t *testing.T) {
	w := newWorld()
	cause := errors.New("disk full")
	w.engine.live = func(context.Context, session.LiveConfig) error { return errors.Join(cause, cause) }
	w.run("attach", "eth0", "--algo", "test-delay")
	if got := w.err.String(); got != "xdpmon: disk full\n" {
		t.Errorf("got %q", got)
	}
}

func TestDetach(t *testing.T) {
	w := newWorld()
	w.engine.detach = func(iface string) ([]string, error) {
		if iface == "eth1" {
			return nil, fmt.Errorf("detach eth1: %w", detach.ErrNothing)
		}
		return []string{iface + ": removed"}, nil
	}
	if code := w.run("detach", "eth1", "eth0"); code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, w.out.String(), "eth0: removed")
	contains(t, w.err.String(), "nothing of xdpmon is attached")
}

func TestStatus(t *testing.T) {
	w := newWorld()
	info := status.Attachment{Interface: "eth0", Index: 3, Instance: 12, Algorithms: []string{"fridge", "rtt-array"}, Pin: "edge", Packets: 1234567, Problem: "not removed"}
	info.Via, info.Direction, info.Program, info.PIDs = "tcx", attach.Ingress, 77, []int{4242}
	w.engine.status = func() ([]status.Attachment, error) { return []status.Attachment{info}, nil }
	if code := w.run("status"); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	contains(t, w.out.String(), "eth0       tcx ingress  12        fridge, rtt-array  1,234,567  pin edge, process 4242", "eth0: program 77: not removed")

	w = newWorld()
	w.engine.status = func() ([]status.Attachment, error) { return []status.Attachment{info}, nil }
	w.run("status", "--output", "json")
	if got := lines(t, w.out.String()); got[0]["interface"] != "eth0" || got[0]["window_packets"] != 1234567.0 {
		t.Errorf("got %v", got)
	}

	w = newWorld()
	w.engine.status = func() ([]status.Attachment, error) { return nil, fmt.Errorf("list: %w", privilege.ErrMissing) }
	if code := w.run("status"); code != cli.ExitMissing {
		t.Errorf("without privilege: exit code %d", code)
	}
}

func TestFeatures(t *testing.T) {
	f := features.Features{Kernel: "6.1", Arch: "amd64", CPUs: 8, Host: []features.Feature{
		{Key: "a", Name: "present", State: kernel.Supported},
		{Key: "b", Name: "optional", State: kernel.Unsupported, Remedy: "do without"},
		{Key: "c", Name: "needed", State: kernel.Unsupported, Required: true, Remedy: "get a newer kernel"},
		{Key: "d", Name: "unasked", State: kernel.Unknown, Detail: "no privilege"},
	}, Interface: &features.InterfaceFeatures{Name: "eth0", Kind: "veth", MTU: 1500, AutoHook: attach.HookTC, Why: "XDP on veth is slow"}}
	w := newWorld()
	w.engine.probe = func(iface string) (features.Features, error) {
		if iface != "eth0" {
			t.Errorf("probed %q", iface)
		}
		return f, nil
	}
	if code := w.run("features", "eth0"); code != cli.ExitMissing {
		t.Errorf("exit code %d, want %d", code, cli.ExitMissing)
	}
	contains(t, w.out.String(), "kernel 6.1, amd64, 8 possible CPUs", "  yes      present", "  no       optional", "do without",
		"  MISSING  needed", "  unknown  unasked   no privilege", "eth0: veth, MTU 1500 bytes; --hook auto takes tc: XDP on veth is slow")
	contains(t, w.err.String(), "not supported here: needed")
}

func TestAlgos(t *testing.T) {
	w := newWorld()
	w.run("algos")
	contains(t, w.out.String(), "test-delay", "delays of the test", "test-flows")
	w = newWorld()
	w.run("algos", "test-delay")
	contains(t, w.out.String(), "test-delay: delays of the test", "First paragraph.\n\nSecond paragraph.", "--set test-delay.KEY=VALUE",
		"entries=4096", "entries of the table; integer, 16 to 65536", "what is matched; choice: tcp, dns", "share=1/4")
	w = newWorld()
	w.run("algos", "test-delay", "--output", "json")
	if got := lines(t, w.out.String())[0]; got["name"] != "test-delay" || got["plan"] != true || len(got["params"].([]any)) != 3 {
		t.Errorf("got %v", got)
	}
}

func TestPlan(t *testing.T) {
	w := newWorld()
	if code := w.run("plan", "test-delay", "--rate", "1M/s", "--max-delay", "4s", "--memory", "1MiB"); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	contains(t, w.out.String(), "entries: 65,536", "rate: 1.00 M/s", "max delay: 4.00 s")
	w = newWorld()
	w.run("plan", "test-delay", "--memory", "64KiB", "--output", "json")
	if got := lines(t, w.out.String())[0]; got["algorithm"] != "test-delay" || got["plan"].(map[string]any)["entries"] != 4096.0 {
		t.Errorf("got %v", got)
	}
	w = newWorld()
	w.run("plan", "test-delay")
	contains(t, w.out.String(), "entries: 2,048", "rate: 100 k/s", "max delay: 4.00 s")
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]float64{"1M/s": 1e6, "500k/s": 5e5, "200000": 2e5, "1.5G": 1.5e9, "1/2": 0.5} {
		if got, err := cli.ParseRate(text); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1k", "x", "1m/s", "inf", "nan"} {
		if got, err := cli.ParseRate(text); err == nil {
			t.Errorf("ParseRate(%q) = %v, want an error", text, got)
		}
	}
}

func TestP4(t *testing.T) {
	w := newWorld()
	if code := w.run("p4", "params", "test-delay", "--set", "test-delay.entries=64"); code != cli.ExitDone || w.out.String() != "#define ENTRIES 64\n" {
		t.Errorf("exit code %d, output %q, %s", code, w.out.String(), w.err.String())
	}
}

type fakeProof string

func (p fakeProof) Text() string { return string(p) }
func (p fakeProof) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"text": string(p)})
}

func TestPisaReportsAllAndFails(t *testing.T) {
	w := newWorld()
	calls := 0
	w.engine.prove = func(string, *ebpf.CollectionSpec) (proof, error) {
		if calls++; calls == 1 {
			return fakeProof("two accesses to table"), errors.New("memory rules: line 12")
		}
		return fakeProof("3 stages"), nil
	}
	if code := w.run("pisa", "--output", "json"); code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	if got := lines(t, w.out.String()); len(got) != len(algo.Names()) || got[0]["report"].(map[string]any)["text"] != "two accesses to table" {
		t.Errorf("got %v", got)
	}
	contains(t, w.err.String(), algo.Names()[0]+": memory rules: line 12")
}

func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"attach", "eth0", "--algo", ""}, "test-delay\tdelays of the test"},
		{[]string{"attach", "eth0", "--algo", "test-delay,"}, "test-delay,test-flows"},
		{[]string{"replay", "a", "--set", ""}, "test-delay.entries=\tentries of the table"},
		{[]string{"replay", "a", "--set", "test-delay.match="}, "test-delay.match=dns"},
		{[]string{"attach", "eth0", "--hook", ""}, "xdp"},
		{[]string{"attach", ""}, "lo"},
		{[]string{"algos", ""}, "test-flows"},
		{[]string{"p4", ""}, "params"},
	} {
		w := newWorld()
		w.run(append([]string{"__complete"}, c.args...)...)
		contains(t, w.out.String(), c.want)
	}
}

// TestHelp: every verb explains itself with an example, and shell completion has a script for each shell.
func TestHelp(t *testing.T) {
	env := newWorld().environment
	for _, c := range newRoot(&env).Commands() {
		if c.Hidden { // it has moved: TestMoved
			continue
		}
		if c.Example == "" || c.Short == "" {
			t.Errorf("%s has no example or summary", c.Name())
		}
		w := newWorld()
		if code := w.run(c.Name(), "--help"); code != cli.ExitDone {
			t.Errorf("%s --help: exit code %d", c.Name(), code)
		}
		contains(t, w.out.String(), "Examples:", "xdpmon "+c.Name())
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		w := newWorld()
		if code := w.run("completion", shell); code != cli.ExitDone || !strings.Contains(w.out.String(), "xdpmon") {
			t.Errorf("completion %s: exit code %d", shell, code)
		}
	}
}

func TestVersion(t *testing.T) {
	w := newWorld()
	w.run("version", "--output=json")
	if got := lines(t, w.out.String())[0]; got["kernel"] != "6.18.0-test" || got["version"] == "" {
		t.Errorf("got %v", got)
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"fridge", "rtt-array", "precision"}
	for typed, want := range map[string]string{
		"frige": "; did you mean fridge?", "Fridge": "; did you mean fridge?", "rtt": "; did you mean rtt-array?", "conquest": "", "": "",
	} {
		if got := didYouMean(typed, names); got != want {
			t.Errorf("didYouMean(%q) = %q, want %q", typed, got, want)
		}
	}
}

// Names are taken from files, packets and other users: no error may contain control characters of a name.
func TestErrorsAreEscaped(t *testing.T) {
	const evil = "\x1b[2Jevil\x07"
	for _, line := range [][]string{
		{"replay", evil, "--algo", evil}, {evil}, {"attach", "eth0", "--algo", "test-delay", "--set", "test-delay." + evil + "=1"},
		{"attach", "eth0", "--algo", "test-delay", "--pin", "a/" + evil}, {"plan", "beaucoup", "-f", evil}, {"merge", evil}, {"--" + evil},
		{"attach", "eth0", "--algo", "test-delay", "--listen", evil}, {"attach", "eth0", "--algo", "test-delay", "--window", evil},
	} {
		w := newWorld()
		if code := w.run(line...); code == cli.ExitDone {
			t.Errorf("%q was taken", line)
		}
		if text := w.err.String() + w.out.String(); strings.ContainsAny(text, "\x1b\x07") || !strings.Contains(text, "evil") {
			t.Errorf("%q printed %q", line, text)
		}
	}
	w := newWorld()
	w.engine.status = func() ([]status.Attachment, error) {
		return nil, errors.New("read link " + evil + ":\nsecond line")
	}
	w.run("status")
	if text := w.err.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, "\nsecond line") {
		t.Errorf("status printed %q", text)
	}
}
