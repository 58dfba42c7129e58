// Package completion completes words of the command line that algorithms define.
package completion

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Algorithms completes the last of a comma-separated list.
func Algorithms(typed string) []string {
	head := typed[:strings.LastIndexByte(typed, ',')+1]
	var words []string
	for _, d := range algo.All() {
		if !slices.Contains(strings.Split(head, ","), d.Name) {
			words = append(words, cobra.CompletionWithDesc(head+d.Name, d.Summary))
		}
	}
	return words
}

// Set completes NAME.KEY= and, for parameters with a fixed set of values, NAME.KEY=VALUE.
func Set(typed string) []string {
	path, _, hasValue := strings.Cut(typed, "=")
	var words []string
	for _, d := range algo.All() {
		for _, p := range d.Params {
			key := d.Name + "." + p.Key
			switch {
			case !hasValue:
				words = append(words, cobra.CompletionWithDesc(key+"=", p.Help))
			case key == path:
				words = append(words, valueWords(key, p)...)
			}
		}
	}
	return words
}

func valueWords(key string, p algo.Param) []string {
	choices := p.Choices
	if p.Type == algo.Bool {
		choices = []string{"true", "false"}
	}
	if len(choices) == 0 {
		choices = []string{p.Default}
	}
	words := make([]string, 0, len(choices))
	for _, c := range choices {
		words = append(words, key+"="+c)
	}
	return words
}
