package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/internal/compare"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

const p4Long = `Writes the generated parts of an algorithm's P4 twin to standard output: its parameters as P4 constants, or the
entries of its tables (correction factors, rules). Host and switch then agree on sizes, hashes and factors. rules are
entries that change while the switch runs (beaucoup's queries), as JSON for the program that writes its tables.`

const p4Example = `  xdpmon p4 params fridge > p4/fridge/params.p4
  xdpmon p4 tables fridge --set fridge.fridges=65536@1/2
  xdpmon p4 rules beaucoup --set beaucoup.file=queries.yaml > rules.json`
const p4What = "what: params, tables, rules, plan, run or compare?"

func newP4(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "p4", Short: "Write parameters and tables of a P4 twin", Long: p4Long, Example: p4Example,
		Args: cli.UnknownCommand,
		RunE: func(*cobra.Command, []string) error { return cli.UsageError(p4What) },
	}
	cmd.AddCommand(newP4Part(env, "params", "Write the parameters as P4 constants"), newP4Part(env, "tables", "Write the entries of the tables"),
		newP4Part(env, "rules", "Write the entries that change while the switch runs"), newP4Run(env), newP4Plan(env), compare.Command(env.stdout, completeName))
	return cmd
}

func newP4Part(env *environment, part, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: part + " NAME", Short: short, Example: "  xdpmon p4 " + part + " fridge",
		Args: cli.NeedArgs(1, 1, "the name of the algorithm"), ValidArgsFunction: completeName,
	}
	var set []string
	addSet(cmd, &set)
	cmd.RunE = func(_ *cobra.Command, args []string) error { return p4(env, part, args[0], set) }
	return cmd
}

func p4(env *environment, part, name string, set []string) error {
	d, err := lookup(name)
	if err != nil {
		return err
	}
	if !algo.Implements[algo.Twin](d) {
		return cli.UsageError("p4 %s %s: it has no P4 twin", part, name)
	}
	text, err := p4Text(d, part, set)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(env.stdout, text); err != nil {
		return fmt.Errorf("write %s: %w", part, err)
	}
	return nil
}

func p4Text(d *algo.Descriptor, part string, set []string) (string, error) {
	given, err := parseSet(set, []string{d.Name})
	if err != nil {
		return "", err
	}
	values, err := valuesOf(d, given[d.Name])
	if err != nil {
		return "", err
	}
	if part == "rules" {
		return p4Rules(d, values)
	}
	parts, err := d.P4(values)
	if err != nil {
		return "", cli.AsUsage(err)
	}
	text, ok := parts[part]
	if !ok {
		return "", cli.UsageError("p4 %s %s: the twin has only %s", part, d.Name, orNone(sortedKeys(parts)))
	}
	return text, nil
}

func p4Rules(d *algo.Descriptor, values algo.Values) (string, error) {
	if !algo.Implements[algo.TwinRules](d) {
		return "", cli.UsageError("p4 rules %s: none of its entries change while a switch runs", d.Name)
	}
	rules, err := d.P4Rules(values)
	if err != nil {
		return "", cli.AsUsage(err)
	}
	return string(rules), nil
}
