// Command cmd lets each system call of an `xdpmon attach` fail, one a run, and writes how the runs ended.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/faults"
)

func main() {
	last := flag.Int("k", 60, "let the first to the k-th call fail")
	only := flag.String("call", "", "this system call alone, and print every run")
	workers := flag.Int("j", runtime.NumCPU(), "runs at the same time")
	out := flag.String("out", "docs/faults.md", "where the result of all is written")
	flag.Parse()
	if err := sweep(*last, *workers, *only, *out); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func sweep(last, workers int, only, out string) error {
	dir, err := os.MkdirTemp("", "xdpmon-faults-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := faults.Build(dir)
	if err != nil {
		return err
	}
	all := results{last: last, provenance: eval.Provenance(context.Background(), "make faults")}
	for i, s := range scenarios {
		s.Binary, s.Patience = binary, time.Minute
		r := result{title: s.title, arguments: s.Args}
		if s.Pinned {
			r.arguments = append(slices.Clone(s.Args), "--pin", "PIN")
		}
		if err := r.run(s.Scenario, i > 0, last, workers, only); err != nil {
			return err
		}
		all.parts = append(all.parts, r)
	}
	if only == "" {
		err = os.WriteFile(out, []byte(all.document()), 0o644)
	}
	for _, r := range all.parts {
		if n := r.sum().count(faults.Unclean); n > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d of %d runs did not end cleanly", r.title, n, len(r.sum().runs)))
		}
	}
	return err
}

// run lets the calls of the plan fail in one scenario.
func (r *result) run(s faults.Scenario, first bool, last, workers int, only string) error {
	usual, err := s.Usual()
	if err != nil {
		return err
	}
	fmt.Println(r.title)
	for _, p := range plan {
		if only != "" && p.call.Name != only {
			continue
		}
		errnos := p.errnos
		if first {
			errnos = errnos[:1]
		}
		for _, errno := range errnos {
			row := row{call: p.call.Name, errno: errno}
			if err := row.fill(s, faults.Fault{Call: p.call, Errno: errno}, usual, last, workers); err != nil {
				return err
			}
			for _, o := range row.runs {
				if only != "" || o.Kind == faults.Unclean {
					fmt.Println(o.Fault, o.Kind, o.Problem, o.Took.Round(time.Millisecond), o.Message())
				}
			}
			fmt.Println(row.text())
			r.rows = append(r.rows, row)
		}
	}
	return nil
}
