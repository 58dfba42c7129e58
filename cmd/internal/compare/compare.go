// Package compare is the verb that compares a P4 twin's structure with the bytecode's.
package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/loader/pisa"
	_ "github.com/xdpmon/xdpmon/p4/all"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/structure"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

const long = `Compares an algorithm's P4 twin with its bytecode, register by register: order, width, entries, what decides whether a
packet touches an element, and what its index and the written value depend on. The bytecode's side is what the proof of the memory rules
follows; the switch's is read from the program's text. What differs by design is printed with its reason (p4/NAME/structure.txt); what
differs without one ends it with exit code 1.`

const example = `  xdpmon p4 compare rtt-array
  xdpmon p4 compare lean --target tofino2 --output json`

// form is the comparison of one form of a twin with its bytecode.
type form struct {
	Algorithm   string            `json:"algorithm"`
	Form        string            `json:"form"`
	Host        []pisa.Touch      `json:"host"`
	Switch      []structure.Touch `json:"switch"`
	Differences []difference      `json:"differences"`
}

type difference struct {
	structure.Difference
	Reason string `json:"reason"` // empty: it is on no list
}

// Command is the verb; complete finishes the name of an algorithm.
func Command(out io.Writer, complete cobra.CompletionFunc) *cobra.Command {
	cmd := &cobra.Command{
		Use: "compare NAME", Short: "Compare a P4 twin's registers and what they depend on with the bytecode", Long: long, Example: example,
		Args: cli.NeedArgs(1, 1, "the name of the algorithm"), ValidArgsFunction: complete,
	}
	target := cli.AddEnum(cmd, "target", "tofino1", "chip that the program is read for: tofino1 or tofino2", "tofino1", "tofino2")
	output := cli.AddEnum(cmd, "output", "table", "text, or one JSON object a form", "table", "json")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		chip := map[string]run.Target{"tofino1": run.Tofino1, "tofino2": run.Tofino2}[target.Value]
		print := map[string]func(*form, io.Writer) error{"table": (*form).text, "json": (*form).json}[output.Value]
		return compare(args[0], chip, func(f *form) error {
			if err := print(f, out); err != nil {
				return fmt.Errorf("write comparison: %w", err)
			}
			return nil
		})
	}
	return cmd
}

func compare(name string, target run.Target, print func(*form) error) error {
	d, err := algo.Lookup(name)
	if err != nil {
		return err
	}
	t, ok := twin.Of(d.Name)
	if !ok {
		return cli.UsageError("p4 compare %s: it has no P4 twin", d.Name)
	}
	list, err := structure.ListOf(t)
	if err != nil {
		return err
	}
	unlisted := 0
	for _, of := range t.FormsOf() {
		f := &form{Algorithm: d.Name, Form: of.Name, Differences: []difference{}}
		if f.Host, err = structure.OfHost(t, of); err != nil {
			return err
		}
		if f.Switch, err = structure.OfTwin(t, target, of); err != nil {
			return err
		}
		for _, found := range list.Differences(f.Host, f.Switch) {
			reason, listed := list.Reason(found)
			if !listed {
				unlisted++
			}
			f.Differences = append(f.Differences, difference{found, reason})
		}
		if err := print(f); err != nil {
			return err
		}
	}
	if unlisted > 0 {
		return fmt.Errorf("compare %s: %d differences are not on the list", d.Name, unlisted)
	}
	return nil
}

func (f *form) json(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(f)
}

func (f *form) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	title := f.Algorithm
	if f.Form != "" {
		title += ", " + f.Form
	}
	fmt.Fprintf(w, "%s: %d registers, %d differences\n", title, len(f.Switch), len(f.Differences))
	if len(f.Differences) > 0 {
		fmt.Fprintln(w, "REGISTER\tFACET\tONLY\tSOURCE\tREASON")
	}
	for _, d := range f.Differences {
		reason := d.Reason
		if reason == "" {
			reason = "NOT ON THE LIST"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", d.Register, d.Facet, d.Side, d.Source, reason)
	}
	return w.Flush()
}
