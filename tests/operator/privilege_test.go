package operator

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// withoutDAC runs the binary as root without the capabilities that override file permissions, as another owner.
func withoutDAC(t *testing.T, args ...string) outcome {
	t.Helper()
	return with(t, "+bpf,+perfmon,+net_admin", args...)
}

// with runs the binary as another owner with some capabilities.
func with(t *testing.T, capabilities string, args ...string) outcome {
	t.Helper()
	setpriv := testutil.NeedTool(t, "setpriv")
	all := append([]string{"--reuid", "65534", "--clear-groups", "--regid", "65534", "--inh-caps=-all," + capabilities,
		"--ambient-caps=-all," + capabilities, "--", binary}, args...)
	cmd := exec.Command(setpriv, all...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	return finish(t, cmd.Run(), &out, &complaint, args)
}

// TestNoPrivilege: exit code 3 and the remedy from every command. "Nothing is attached" would be wrong without the privilege to list.
func TestNoPrivilege(t *testing.T) {
	needRoot(t) // to change the user
	path := write(t, "some.pcap", capture(t))
	for _, args := range [][]string{
		{"attach", "lo", "--algo", "fridge"}, {"replay", path, "--algo", "fridge"}, {"demo", "fridge"}, {"status"}, {"detach", "lo"},
	} {
		t.Run(args[0], func(t *testing.T) {
			o := runAs(t, nobody, args...)
			grant := "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
			if args[0] == "status" || args[0] == "detach" { // they list programs of other processes
				grant = "CAP_SYS_ADMIN"
			}
			o.want(t, missing, `privilege missing: .*run as root \(sudo\), or grant `+grant+`\n`)
			if o.out != "" {
				t.Errorf("it printed %q", o.out)
			}
		})
	}
	t.Run("features", func(t *testing.T) {
		runAs(t, nobody, "features").want(t, missing, "the capabilities that attaching needs")
	})
}

// TestTracePointsNeedPerfmon: a queue is watched at trace points.
func TestTracePointsNeedPerfmon(t *testing.T) {
	needRoot(t)
	with(t, "+bpf,+net_admin", "attach", "lo", "--algo", "conquest", "--set", "conquest.source=qdisc", "--duration", "1s").
		want(t, missing, `privilege missing: .*lacks CAP_PERFMON; run as root \(sudo\), or grant CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN\n`)
}

// TestQuestionsNeedNoPrivilege: verbs that only explain work for every user.
func TestQuestionsNeedNoPrivilege(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"algos"}, {"algos", "fridge"}, {"plan", "fridge", "--rate", "1M/s"}, {"pisa", "fridge"}, {"--help"}} {
		o := runUnprivileged(t, args...)
		o.want(t, done, "")
		if o.out == "" {
			t.Errorf("xdpmon %v printed nothing", args)
		}
	}
}

func TestWrongWords(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"replay", "x.pcap", "--algo", "frige"}, `unknown algorithm "frige".*did you mean fridge\?`},
		{[]string{"replay", "x.pcap", "--algo", "fridge", "--set", "fridge.fridge=4@1"}, `no such parameter.*did you mean fridges\?`},
		{[]string{"replay", "x.pcap", "--algo", "fridge", "--set", "fridge.fridges=banana"}, `fridges=banana`},
		{[]string{"replay", "x.pcap", "--algo", "fridge", "--set", "fridge.match=smtp"}, `smtp.*choose one of`},
		{[]string{"replay", "x.pcap", "--algo", "fridge", "--window", "1"}, `--window`},
	} {
		o := runUnprivileged(t, c.args...)
		o.want(t, usage, c.want)
		if o.out != "" {
			t.Errorf("xdpmon %v printed %q", c.args, o.out)
		}
	}
}

// runUnprivileged runs as user nobody where that is possible, and otherwise as the test's user.
func runUnprivileged(t *testing.T, args ...string) outcome {
	t.Helper()
	if os.Geteuid() != 0 {
		return xdpmon(t, args...)
	}
	return runAs(t, nobody, args...)
}
