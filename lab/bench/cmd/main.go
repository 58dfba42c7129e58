// Command cmd runs the benchmark of all programs: `make bench`.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/lab/bench"
	"github.com/xdpmon/xdpmon/tests/mutator"
	_ "github.com/xdpmon/xdpmon/userspace/all"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	var opts bench.Options
	packets := flag.Uint("packets", 2_000_000, "packets of one run")
	flag.IntVar(&opts.Rounds, "rounds", 5, "runs, of which the best counts")
	flows := flag.Uint("flows", 100_000, "flows that rotate")
	only := flag.String("only", "", "subjects to measure, separated by commas; the empty program of the hook always is")
	columns := flag.String("columns", "", "columns to measure, separated by commas; all if empty")
	set := flag.String("set", "", "one more subject: an algorithm with parameters, as fridge.match=tcp-data,fridge.fridges=4096@1")
	file := flag.String("json", "", "also write the result to this file")
	beside := flag.String("beside", "", "another build of this command: both run by turns, and medians are compared")
	live := flag.Int("live", 0, "instead: frames of so many bytes arrive at an interface, as many as it takes; at XDP and at TC")
	seconds := flag.Float64("seconds", 1, "with -live: of one run")
	turns := flag.Int("turns", 9, "with -beside: how often each of the two runs")
	flag.Parse()
	if *columns != "" {
		names := strings.Split(*columns, ",")
		bench.Cases = slices.DeleteFunc(bench.Cases, func(c bench.Case) bool { return !slices.Contains(names, c.Name) })
	}
	if *beside != "" {
		return compare(os.Stdout, *beside, *turns, []string{"-packets", fmt.Sprint(*packets), "-rounds", fmt.Sprint(opts.Rounds),
			"-flows", fmt.Sprint(*flows), "-only", *only, "-set", *set, "-columns", *columns})
	}
	opts.Packets, opts.Flows = uint32(*packets), uint32(*flows)
	if *live > 0 {
		return arriving(*only, bench.LiveOptions{Bytes: *live, Seconds: *seconds, Rounds: opts.Rounds, Flows: opts.Flows, Traffic: mutator.Data})
	}
	opts.Progress = log.Printf
	subjects, err := chosen(*only, *set)
	if err != nil {
		return err
	}
	result, err := bench.Run(subjects, opts)
	if err != nil {
		return err
	}
	if *file != "" {
		if err := save(result, *file); err != nil {
			return err
		}
	}
	return result.WriteTable(os.Stdout)
}

// arriving measures what is attached in practice: parser and chain, one algorithm, six, all.
func arriving(only string, opts bench.LiveOptions) error {
	if only == "" {
		only = "parser,alone_fridge,alone_precision,chain_6,chain_all"
	}
	subjects, err := chosen(only, "")
	if err != nil {
		return err
	}
	rows, err := bench.Live(subjects, opts, log.Printf)
	if err != nil {
		return err
	}
	return bench.WriteLive(os.Stdout, rows, opts)
}

func chosen(only, set string) ([]bench.Subject, error) {
	all, err := bench.Subjects()
	if err != nil {
		return nil, err
	}
	subjects := all[:1]
	names := "," + only + ","
	for _, s := range all[1:] {
		if only == "" || s.Bare() && strings.Contains(names, ",tc_") || strings.Contains(names, ","+s.Name+",") {
			subjects = append(subjects, s)
		}
	}
	if set == "" {
		return subjects, nil
	}
	extra, err := parse(set)
	return append(subjects, extra), err
}

// parse reads NAME.KEY=VALUE,... of one algorithm.
func parse(text string) (bench.Subject, error) {
	values, name := map[string]string{}, ""
	for _, pair := range strings.Split(text, ",") {
		path, value, ok := strings.Cut(pair, "=")
		algorithm, key, dotted := strings.Cut(path, ".")
		if !ok || !dotted || (name != "" && algorithm != name) {
			return bench.Subject{}, fmt.Errorf("read -set %s: %q is not NAME.KEY=VALUE of one algorithm", text, pair)
		}
		name, values[key] = algorithm, value
	}
	return bench.Configured(name, values)
}

func save(result *bench.Result, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := result.WriteJSON(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
