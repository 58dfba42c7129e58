package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// coordinatorProgram carries the verbs coordinator and keys.
const coordinatorProgram = "xdpmon-coordinator"

// movedTo is the new command line of a verb that has moved there.
var movedTo = map[string][]string{"coordinator": {coordinatorProgram}, "keys": {coordinatorProgram, "keys"}}

// newMoved is a verb that moved to another program in 0.1: for one version its old name starts the new one.
func newMoved(env *environment, verb string) *cobra.Command {
	command := strings.Join(movedTo[verb], " ")
	return &cobra.Command{
		Use: verb, Short: "Moved: the command is " + command, Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := env.engine.program(coordinatorProgram)
			if err != nil {
				return fmt.Errorf("xdpmon %s has moved to %s, which is not installed (%w): install the package %s", verb, command, err, coordinatorProgram)
			}
			fmt.Fprintf(env.stderr, "xdpmon: xdpmon %s has moved: running %s; the old name is removed in the next version\n", verb, command)
			argv := append(append([]string{path}, movedTo[verb][1:]...), args...)
			return fmt.Errorf("run %s: %w", path, env.engine.become(path, argv))
		},
	}
}
