package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/session"
)

const pisaLong = `Proves from the compiled instructions that an algorithm keeps the memory rules of a switch pipeline (one access
to a register array a packet, stages in order, 64 bits at most, ...), and prints what it takes of a Tofino 1 and a
Tofino 2: arrays, stages, widths, entries, bits and touches, as a compiler's resource report would.

Violations are reported with their source line, and the exit code is 1. Nothing is loaded.`

const pisaExample = `  xdpmon pisa
  xdpmon pisa fridge
  xdpmon pisa fridge --set fridge.fridges=65536@1 --output json`

func newPisa(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pisa [NAME]", Short: "Prove the memory rules and print the resource report", Long: pisaLong, Example: pisaExample,
		Args: cli.NeedArgs(0, 1, "the name of an algorithm"), ValidArgsFunction: completeName,
	}
	var set []string
	addSet(cmd, &set)
	answer := addAnswer(env, cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			args = algo.Names()
		}
		return pisaAll(env, args, set, answer.asJSON())
	}
	return cmd
}

// pisaAll reports on every algorithm, also after one that fails.
func pisaAll(env *environment, names, set []string, asJSON bool) error {
	given, err := parseSet(set, names)
	if err != nil {
		return err
	}
	var failed error
	for _, name := range names {
		failed = errors.Join(failed, pisaOne(env, name, given[name], asJSON))
	}
	return failed
}

func pisaOne(env *environment, name string, set map[string]string, asJSON bool) error {
	object, err := configured(name, set)
	if err != nil {
		return err
	}
	spec, err := object.Whole()
	if err != nil {
		return err
	}
	p, err := env.engine.prove(name, spec)
	if p != nil {
		if err := env.printProof(name, p, asJSON); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (env *environment) printProof(name string, p proof, asJSON bool) error {
	if !asJSON {
		return env.printLines(name, p.Text())
	}
	return env.printJSON(struct {
		Algorithm string `json:"algorithm"`
		Report    proof  `json:"report"`
	}{name, p})
}

// configured returns an algorithm's object as attach would load it.
func configured(name string, set map[string]string) (loader.Object, error) {
	d, err := lookup(name)
	if err != nil {
		return loader.Object{}, err
	}
	values, err := valuesOf(d, set)
	if err != nil {
		return loader.Object{}, err
	}
	objects, _, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values}}}, false)
	if err != nil {
		return loader.Object{}, err
	}
	return objects[0], nil
}
