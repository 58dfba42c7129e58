package main

import (
	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/internal/manual"
	"github.com/xdpmon/xdpmon/userspace/agent/config"
)

const rootLong = `xdpmon measures where the packets are: on a host, a hypervisor or a tap box. It reports delays,
losses, reorderings, heavy flows, bursts and unfair users, with kilobytes of memory and
nanoseconds a packet, and the error bound of each answer.

Ask:         check
Measure:     attach, replay, demo, agent
Look:        top, drops, status, history, features, algos, pisa, version
Prepare:     plan, p4
Combine:     merge (live: the program xdpmon-coordinator)
Take down:   detach

A terminal gets tables, a pipe gets one JSON object a line. Exit codes: 0 done, 1 failed, 2 wrong usage,
3 a privilege or a kernel feature is missing, 4 check has found something.`

const rootExample = `  sudo xdpmon demo                                     try it on generated traffic
  sudo xdpmon demo --listen :9400                      incidents on a timetable, and the page that finds them
  sudo xdpmon check eth0                               what is wrong on eth0
  sudo xdpmon attach eth0 --algo fridge                delays of TCP handshakes on eth0
  xdpmon replay capture.pcap --algo fridge --truth     the same from a file, next to the exact answer
  sudo xdpmon top                                      watch what an agent on this host measures
  xdpmon algos                                         what else it can measure`

// Files and exit codes in manual pages.
var (
	manualFiles = [][2]string{{config.DefaultPath, "configuration of the agent"}, {config.DefaultSocket, "query socket of a running agent"}, {config.DefaultStore, "windows that the agent has stored"}}
	manualExit  = [][2]string{{"0", "done"}, {"1", "failed"}, {"2", "wrong usage"}, {"3", "a privilege or a kernel feature is missing"}, {"4", "xdpmon check has found something"}}
)

// run executes one command line and returns its exit code.
func run(env environment) int {
	root := newRoot(&env)
	root.SetArgs(env.args)
	root.SetIn(env.stdin)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	return cli.Execute(root, env.stderr, exitCode, remedy)
}

func newRoot(env *environment) *cobra.Command {
	root := &cobra.Command{
		Use: "xdpmon", Short: "Measures delays, losses and heavy flows where the packets are", Long: rootLong, Example: rootExample,
		Args: cli.UnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			_ = cmd.Help()
			return cli.UsageError("which command?")
		},
	}
	root.AddCommand(
		newCheck(env), newAttach(env), newReplay(env), newDemo(env), newDetach(env), newStatus(env), newDrops(env), newFeatures(env),
		newAlgos(env), newPlan(env), newPisa(env), newP4(env), newMerge(env), newVersion(env),
		newAgent(env), newTop(env), newHistory(env), newMoved(env, "coordinator"), newMoved(env, "keys"),
		manual.Command(manual.About{Version: release, Files: manualFiles, Exit: manualExit, See: []string{"xdpmon-coordinator(1)"}}),
	)
	return root
}
