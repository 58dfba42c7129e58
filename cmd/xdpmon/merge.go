package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

const mergeLong = `Merges windows of several hosts, or of one, and reports them as one: a port scan that touches each host a little, a
victim that each edge sees a part of, the delays of a whole day.

Files are snapshots, which attach and replay write with --snapshots DIR. All that are given of an algorithm become one
window. They must have the same parameters; algorithms with hashes need the same --seed on all hosts. Snapshots that cannot be
merged are refused, with the reason.

Files may also be JSON lines, one file a host, of algorithms whose lines hold everything that merging needs: beaucoup with --set
beaucoup.export=true --output json. Windows of a query are merged by the wall clock: one begins with the first
coupon of a key on any host, and ends after the query's time, independent of the windows of the reports.

- is standard input.`

const mergeExample = `  xdpmon replay a.pcap -a fridge --window 10s --snapshots a
  xdpmon replay b.pcap -a fridge --window 10s --snapshots b
  xdpmon merge a/*-fridge-* b/*-fridge-*
  xdpmon replay a.pcap -a beaucoup --seed 7 --set beaucoup.export=true > a.json
  xdpmon replay b.pcap -a beaucoup --seed 7 --set beaucoup.export=true > b.json
  xdpmon merge a.json b.json`

func newMerge(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "merge FILE...", Short: "Merge windows of several hosts", Long: mergeLong, Example: mergeExample,
		Args: cli.NeedArgs(1, -1, "the file of a host (or - for standard input)"),
	}
	answer := addAnswer(env, cmd)
	out := cmd.Flags().String("write", "", "write the merged snapshot to `FILE`, too, to be merged again; of one algorithm")
	cmd.Flags().StringVar(out, "out", "", "as --write, before 0.1.0; removed in 0.2.0")
	if err := cmd.Flags().MarkHidden("out"); err != nil {
		panic(err) // the flag exists
	}
	cmd.RunE = func(_ *cobra.Command, files []string) error { return merge(env, files, answer.asJSON(), *out) }
	return cmd
}

// merger is what has been read so far.
type merger struct {
	env   *environment
	whole map[string]*snapshot.Snapshot // by algorithm
	from  map[[sha256.Size]byte]string  // names of files by content, to refuse the same one twice
	lines map[string]algo.LineMerger    // by algorithm
}

func merge(env *environment, files []string, asJSON bool, out string) error {
	if err := stdinOnce(files); err != nil {
		return err
	}
	m := &merger{env, map[string]*snapshot.Snapshot{}, map[[sha256.Size]byte]string{}, map[string]algo.LineMerger{}}
	for _, name := range files {
		if err := m.file(name); err != nil {
			return err
		}
	}
	return errors.Join(m.print(asJSON), m.write(out))
}

// file reads a host's windows or one of them.
func (m *merger) file(name string) error {
	var in io.Reader = m.env.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		defer f.Close()
		in = f
	}
	b := bufio.NewReader(in)
	if start, _ := b.Peek(snapshot.MagicLength); !snapshot.IsSnapshot(start) {
		return m.text(name, b)
	}
	data, err := io.ReadAll(io.LimitReader(b, snapshot.MaxBytes+1))
	if err != nil {
		return fmt.Errorf("merge: read %s: %w", name, err)
	}
	return m.snapshot(name, data)
}

func (m *merger) snapshot(name string, data []byte) error {
	sum := sha256.Sum256(data)
	if before, known := m.from[sum]; known {
		return fmt.Errorf("merge: %s and %s are the same: its content would count twice", before, name)
	}
	m.from[sum] = name
	s, err := snapshot.Decode(data)
	if err != nil {
		return fmt.Errorf("merge %s: %w", name, err)
	}
	if before := m.whole[s.Algorithm]; before != nil {
		s, err = algo.Merge(before, s)
	} else {
		_, err = algo.Report(s) // refuses a damaged snapshot while its file is known
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	m.whole[s.Algorithm] = s
	return nil
}

// text reads JSON lines by all algorithms that merge them; one of them must find lines of its own.
func (m *merger) text(name string, in io.Reader) error {
	var readers []*algo.Descriptor
	for _, d := range algo.All() {
		if d.Lines != nil {
			readers = append(readers, d)
		}
	}
	data := in
	var errs []error
	for n, d := range readers {
		var rest bytes.Buffer
		if n < len(readers)-1 {
			data = io.TeeReader(in, &rest)
		}
		if m.lines[d.Name] == nil {
			m.lines[d.Name] = d.Lines()
		}
		err := m.lines[d.Name].Read(name, data)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
		data = io.MultiReader(&rest, in)
	}
	return errors.Join(errs...)
}

// print writes the merged result: of JSON lines the body, of snapshots a line as a run writes it.
func (m *merger) print(asJSON bool) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(m.lines)) {
		body := m.lines[name].Report()
		if asJSON {
			errs = append(errs, m.env.printJSON(struct {
				Merged *report.Body `json:"merged"`
			}{&body}))
			continue
		}
		errs = append(errs, m.env.printLines(report.BodyText(body, nil, nil, m.env.style())...))
	}
	for _, name := range slices.Sorted(maps.Keys(m.whole)) {
		errs = append(errs, m.printSnapshot(m.whole[name], asJSON))
	}
	return errors.Join(errs...)
}

func (m *merger) printSnapshot(s *snapshot.Snapshot, asJSON bool) error {
	result, err := algo.Report(s)
	if err != nil {
		return err
	}
	if asJSON {
		line := report.Line{Algorithm: s.Algorithm, Identity: report.Identity{Instance: mergedName}, Window: s.Wall().Window, Packets: s.Packets, Lost: result.Lost, Report: result.Body}
		line.Packets.Used, line.Packets.UsedSegments = result.Used, result.Segments
		return m.env.printJSON(line)
	}
	w := s.Wall().Window
	head := fmt.Sprintf("%s: %d windows from %s to %s, %s packets", s.Algorithm, s.Parts, report.UTC(w.Start), report.UTC(w.End),
		report.Human(s.Packets.Seen, report.Count))
	lines := append([]string{head}, report.BodyText(result.Body, nil, nil, m.env.style())...)
	return m.env.printLines(lines...)
}

// mergedName takes the place of a run's instance.
const mergedName = "merged"

// write stores the merged snapshot.
func (m *merger) write(out string) error {
	if out == "" {
		return nil
	}
	if len(m.whole) != 1 {
		return cli.UsageError("--write: snapshots of one algorithm are needed, there are %d (%s)", len(m.whole), strings.Join(slices.Sorted(maps.Keys(m.whole)), ", "))
	}
	for _, s := range m.whole {
		data, err := s.Encode()
		if err != nil {
			return err
		}
		if err := os.WriteFile(out, data, 0o600); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
	}
	return nil
}
