// Command cmd is `make eval`: it runs the registered studies and writes docs/eval.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	started := time.Now()
	flags := flag.NewFlagSet("eval", flag.ExitOnError)
	only := flags.String("only", "", "studies or sections, separated by commas: "+strings.Join(names(), ", "))
	quick := flags.Bool("quick", false, "few seeds and packets: shows that it works, and proves nothing")
	draft := flags.Bool("draft", false, "write pages from sources that no commit has, too; their footers say draft")
	again := flags.Bool("check", false, "run a tenth of the sections again, drawn, or those of -only, and compare with the pages: exit code 1 if one differs by more than it allows")
	draw := flags.Uint64("draw", uint64(started.UnixNano()), "seed of the drawn tenth")
	dir := flags.String("dir", "", "folder to write to (default docs/eval, with -quick out/eval)")
	var look eval.Look
	flags.IntVar(&look.Seeds, "seeds", 0, "seeds a cell of a section coverage (default 300)")
	flags.BoolVar(&look.Misses, "misses", false, "log the intervals and bounds that did not hold")
	flags.StringVar(&look.Pieces, "pieces", "", "folder where an interrupted section coverage leaves what it has; its next run, of the same build, goes on")
	flags.Func("cells", "cells of a section coverage, by a regular expression", func(text string) (err error) {
		look.Cells, err = regexp.Compile(text)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	o := eval.Options{Dir: *dir, Quick: *quick, Draft: *draft, Look: look, Command: command(args), Log: func(format string, args ...any) {
		fmt.Printf("%7s  %s\n", time.Since(started).Round(time.Second), fmt.Sprintf(format, args...))
	}}
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	if o.Dir == "" {
		o.Dir = "docs/eval"
		if *quick {
			o.Dir = "out/eval"
		}
	}
	if *again {
		return eval.Check(ctx, o, *draw)
	}
	return eval.Run(ctx, o)
}

func command(args []string) string {
	if len(args) == 0 {
		return "make eval"
	}
	return "lab/run eval/cmd " + strings.Join(args, " ")
}

func names() []string {
	var list []string
	for _, s := range eval.Studies() {
		list = append(list, s.Name)
		for _, section := range s.Sections {
			list = append(list, s.Name+"."+section.Name)
		}
	}
	return list
}
