// Command cmd lets each system call of an `xdpmon attach` fail, one a run, and says how the runs ended.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/xdpmon/xdpmon/tests/eval"
	"github.com/xdpmon/xdpmon/tests/faults"
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
	s := faults.Scenario{Binary: binary, Args: faults.Arguments, Patience: time.Minute}
	usual, err := s.Usual()
	if err != nil {
		return err
	}
	r := result{last: last, provenance: eval.Provenance(context.Background(), "make faults")}
	for _, p := range plan {
		if only != "" && p.call.Name != only {
			continue
		}
		for _, errno := range p.errnos {
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
	if only == "" {
		err = os.WriteFile(out, []byte(r.document()), 0o644)
	}
	if n := r.sum().count(faults.Unclean); n > 0 && err == nil {
		err = fmt.Errorf("%d of %d runs did not end cleanly", n, len(r.sum().runs))
	}
	return err
}
