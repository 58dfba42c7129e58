package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// enum is a flag whose value is one of some words.
type enum struct {
	value   string
	choices []string
}

func (e *enum) String() string { return e.value }

// Type is what help texts show.
func (e *enum) Type() string { return strings.Join(e.choices, "|") }

// Set accepts one of the choices.
func (e *enum) Set(text string) error {
	if slices.Contains(e.choices, text) {
		e.value = text
		return nil
	}
	return fmt.Errorf("choose one of %s%s", strings.Join(e.choices, ", "), didYouMean(text, e.choices))
}

// enumFlag adds such a flag with shell completion; the first choice that is not "" is no default by itself.
func enumFlag(cmd *cobra.Command, name, value, help string, choices ...string) *enum {
	e := &enum{value: value, choices: choices}
	cmd.Flags().Var(e, name, help)
	complete(cmd, name, func(string) []string { return choices })
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
