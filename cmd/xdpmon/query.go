package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
)

// queryAlgorithm is the algorithm that runs queries.
const queryAlgorithm = "beaucoup"

func addQueries(cmd *cobra.Command, s *selection) {
	cmd.Flags().StringArrayVar(&s.queries, "query", nil, "count-distinct query for beaucoup, `'NAME: count distinct dst by src > 1000 in 1s'`; repeatable, and selects beaucoup")
}

// useQueries makes a parameter of what --query gave.
func (s *selection) useQueries() {
	if len(s.queries) == 0 {
		return
	}
	if !slices.Contains(s.algorithms, queryAlgorithm) {
		s.algorithms = append(s.algorithms, queryAlgorithm)
	}
	s.set = append(s.set, queryAlgorithm+".queries="+strings.Join(s.queries, "; "))
	s.queries = nil
}

// useQueries makes parameters of --query and --file; only the algorithm that runs queries has them.
func (o *planOptions) useQueries(name string) error {
	if name != queryAlgorithm && (o.file != "" || len(o.queries.queries) > 0) {
		return cli.UsageError("plan %s: --query and --file are for %s", name, queryAlgorithm)
	}
	o.queries.useQueries()
	o.set = append(o.set, o.queries.set...)
	if o.file != "" {
		o.set = append(o.set, queryAlgorithm+".file="+o.file)
	}
	return nil
}
