package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
)

const detachLong = `Takes everything that is xdpmon's off the interfaces: pinned attachments and their pins, the programs of running
xdpmon processes (which notice it and say so), and what a killed process left at clsact on old kernels. Other
people's programs stay. What was counted and not yet reported is gone with the pins.

Where nothing is on an interface of that name, it may be the name of a pin or the number of an instance, as
status shows them; their interfaces may be in other network namespaces.`

func newDetach(env *environment) *cobra.Command {
	return &cobra.Command{
		Use: "detach IFACE|PIN|INSTANCE...", Short: "Take xdpmon's programs off interfaces", Long: detachLong,
		Example:           "  sudo xdpmon detach eth0\n  sudo xdpmon detach eth0 eth1\n  sudo xdpmon detach edge      (what was attached with --pin edge)",
		Args:              cli.NeedArgs(1, -1, "the interface to detach from"),
		ValidArgsFunction: completeInterfaces,
		RunE:              func(_ *cobra.Command, ifaces []string) error { return runDetach(env, ifaces) },
	}
}

// detach goes through all interfaces even when one fails, and says what was done.
func runDetach(env *environment, ifaces []string) error {
	var failed error
	for _, iface := range ifaces {
		done, err := env.engine.detach(iface)
		failed = errors.Join(failed, err)
		if len(done) == 0 {
			continue
		}
		if err := env.printLines(done...); err != nil {
			return err
		}
	}
	return failed
}
