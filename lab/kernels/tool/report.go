package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/lab/kernels/verdict"
)

// machine is the output of one virtual machine.
type machine struct {
	release string
	checks  []verdict.Line
	ended   bool // it reached the end of its checks
}

// report writes the document and fails when a check did.
func report(w io.Writer, logs []string) error {
	var machines []machine
	for _, path := range logs {
		console, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		machines = append(machines, newMachine(string(console)))
	}
	return errors.Join(writeDocument(w, machines), failures(machines))
}

func newMachine(console string) machine {
	m := machine{release: "unknown"}
	for _, line := range verdict.Parse(console) {
		switch line.Name {
		case verdict.Kernel:
			m.release = line.Detail
		case verdict.End:
			m.ended = true
		default:
			m.checks = append(m.checks, line)
		}
	}
	return m
}

func failures(machines []machine) error {
	var failed error
	for _, m := range machines {
		for _, c := range m.checks {
			if !c.OK {
				failed = errors.Join(failed, fmt.Errorf("kernel %s: %s: %s", m.release, c.Name, c.Detail))
			}
		}
		if !m.ended {
			failed = errors.Join(failed, fmt.Errorf("kernel %s: the machine stopped after %d checks", m.release, len(m.checks)))
		}
	}
	return failed
}

const introduction = `# Other kernels

What xdpmon does on kernels that are not this developer's: Debian's, each booted in a virtual machine without hardware support
(QEMU, two emulated CPUs), with the binary of this repository and nothing else. ` + "`make kernels`" + ` writes this page.

- **features**: nothing that xdpmon needs is missing, and no question stays without a conclusive answer.
- **replay**: some 20,000 packets go through the algorithm and through its exact calculation. Answers, truth and errors must be, number
  for number, those of the kernel of the machine that made the page.
- **attach**: the verifier of that kernel takes the algorithm and the entry programs, and the programs attach in the way they should (TCX from
  6.6 on, clsact before). Real handshakes between two namespaces are counted, SIGINT ends the run, and no program, filter or qdisc is left.
- **queue**: packets go through a queueing discipline between TC egress and the start of transmission. All that were handed over are found again there, in what
  that discipline leaves of their control block, after delays that it makes (an HTB class of 20 Mb/s, where there is one).
- **culprits**: one TCP flow fills such a queue (4 Mb/s), beside datagrams of 3 % of that. conquest without a parameter names the flow, never the datagrams, and its share is between its ends.
- **shape**: what ahab, cake, HTB with fq_codel and a policer make of one load on the same link. Only ahab can fail, above its ceiling and burst; the rest is there to be compared.
- **killed**, **pinned**: what SIGKILL leaves, and that a pinned run is taken over with its counts.

The times are of emulated CPUs on a machine that may be busy: they show what took long, nothing else.

`

func writeDocument(w io.Writer, machines []machine) error {
	var b strings.Builder
	b.WriteString(introduction)
	fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(os.Getenv("XDPMON_KERNELS_RUN")))
	writeTable(&b, machines)
	for _, m := range machines {
		fmt.Fprintf(&b, "\n## %s\n\n", m.release)
		for _, c := range m.checks {
			fmt.Fprintf(&b, "- %s%s: %s (%.1f s)\n", failedMark(c), c.Name, oneLine(c.Detail), c.Seconds)
		}
		if !m.ended {
			b.WriteString("- **the machine stopped here**\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func failedMark(c verdict.Line) string {
	if c.OK {
		return ""
	}
	return "**FAILED** "
}

// writeTable has a row for each check and a column for each kernel.
func writeTable(b *strings.Builder, machines []machine) {
	var names []string
	head, rule := "| check |", "|---|"
	for _, m := range machines {
		head, rule = head+" "+m.release+" |", rule+"---|"
		for _, c := range m.checks {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	fmt.Fprintf(b, "%s\n%s\n", head, rule)
	for _, name := range names {
		fmt.Fprintf(b, "| %s |", name)
		for _, m := range machines {
			fmt.Fprintf(b, " %s |", m.outcome(name))
		}
		b.WriteString("\n")
	}
}

func (m machine) outcome(name string) string {
	for _, c := range m.checks {
		switch {
		case c.Name == name && c.OK:
			return "passed"
		case c.Name == name:
			return "**FAILED**"
		}
	}
	return "not run"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
