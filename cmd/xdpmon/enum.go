package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// enum is a flag whose value is one of some words.
type enum[T ~string] struct {
	value   T
	choices []T
}

func (e *enum[T]) String() string { return string(e.value) }

// Type is what help texts show.
func (e *enum[T]) Type() string { return strings.Join(words(e.choices), "|") }

// Set accepts one of the choices.
func (e *enum[T]) Set(text string) error {
	if slices.Contains(e.choices, T(text)) {
		e.value = T(text)
		return nil
	}
	return fmt.Errorf("choose one of %s%s", strings.Join(words(e.choices), ", "), didYouMean(text, words(e.choices)))
}

// words makes strings of choices.
func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// enumFlag adds such a flag with shell completion; the first choice that is not "" is no default by itself.
func enumFlag[T ~string](cmd *cobra.Command, name string, value T, help string, choices ...T) *enum[T] {
	e := &enum[T]{value: value, choices: choices}
	cmd.Flags().Var(e, name, help)
	complete(cmd, name, func(string) []string { return words(choices) })
	return e
}

// complete registers the shell completion of a flag. It fails only for a flag that does not exist.
func complete(cmd *cobra.Command, flag string, words func(typed string) []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return words(typed), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err)
	}
}
