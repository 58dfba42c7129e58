package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// queryAlgorithm is what runs queries.
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
