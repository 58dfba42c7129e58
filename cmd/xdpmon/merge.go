package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const mergeLong = `Puts windows of beaucoup from several hosts together and reports the keys that pass a threshold on all of them
as a whole: a port scan that touches each host a little, a victim that each edge sees a part of. An attribute that several
hosts have seen counts once.

The hosts run the same queries in the same order with the same --seed, and export: --set beaucoup.export=true --output json.
Give one file a host; - is standard input. Windows of a query are put together by the wall clock: one begins with the first
coupon that any host has of a key, and is over when the query's time is, whatever the windows of the reports were.`

const mergeExample = `  xdpmon replay a.pcap -a beaucoup --seed 7 --set beaucoup.export=true > a.json
  xdpmon replay b.pcap -a beaucoup --seed 7 --set beaucoup.export=true > b.json
  xdpmon merge a.json b.json`

func newMerge(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "merge FILE...", Short: "Put windows of several hosts together", Long: mergeLong, Example: mergeExample,
		Args: needArgs(1, -1, "the file of a host (or - for standard input)"),
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(_ *cobra.Command, files []string) error { return merge(env, files, *asJSON) }
	return cmd
}

func merge(env *environment, files []string, asJSON bool) error {
	if err := stdinOnce(files); err != nil {
		return err
	}
	m := beaucoup.NewMerger()
	for _, name := range files {
		if err := mergeFile(env, m, name); err != nil {
			return err
		}
	}
	body := m.Report()
	if asJSON {
		return env.printJSON(struct {
			Merged *report.Body `json:"merged"`
		}{&body})
	}
	return env.printLines(report.BodyText(body, nil, nil, env.style())...)
}

func mergeFile(env *environment, m *beaucoup.Merger, name string) error {
	var in io.Reader = env.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		defer f.Close()
		in = f
	}
	return m.Read(name, in)
}
