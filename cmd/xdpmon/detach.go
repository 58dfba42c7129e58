package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
)

const detachLong = `Detaches everything of xdpmon from the interfaces: pinned attachments and their pins, the programs of running
xdpmon processes (which report it), and filters that a killed process left at clsact on old kernels. Programs of
other owners stay. Counts that were not reported yet are lost with the pins.

A name that is not an interface with programs of xdpmon may be a pin or the number of an instance, as status
shows them; their interfaces may be in other network namespaces.`

func newDetach(env *environment) *cobra.Command {
	return &cobra.Command{
		Use: "detach IFACE|PIN|INSTANCE...", Short: "Detach xdpmon's programs from interfaces", Long: detachLong,
		Example:           "  sudo xdpmon detach eth0\n  sudo xdpmon detach eth0 eth1\n  sudo xdpmon detach edge      (what was attached with --pin edge)",
		Args:              cli.NeedArgs(1, -1, "the interface to detach from"),
		ValidArgsFunction: completeInterfaces,
		RunE:              func(_ *cobra.Command, ifaces []string) error { return runDetach(env, ifaces) },
	}
}

// detach continues with further interfaces when one fails, and prints what was detached.
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
