package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/userspace/nearest"
)

// Enum is a flag whose value is one of some words.
type Enum[T ~string] struct {
	Value   T
	choices []T
}

func (e *Enum[T]) String() string { return string(e.Value) }

// Type is the type in help texts.
func (e *Enum[T]) Type() string { return strings.Join(Words(e.choices), "|") }

// Set accepts one of the choices.
func (e *Enum[T]) Set(text string) error {
	if slices.Contains(e.choices, T(text)) {
		e.Value = T(text)
		return nil
	}
	return fmt.Errorf("choose one of %s%s", strings.Join(Words(e.choices), ", "), nearest.Hint(text, Words(e.choices)))
}

// Words makes strings of choices.
func Words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// AddEnum adds such a flag with shell completion; the first choice that is not "" is no default by itself.
func AddEnum[T ~string](cmd *cobra.Command, name string, value T, help string, choices ...T) *Enum[T] {
	e := &Enum[T]{Value: value, choices: choices}
	cmd.Flags().Var(e, name, help)
	Complete(cmd, name, func(string) []string { return Words(choices) })
	return e
}

// Complete registers the shell completion of a flag. It fails only for a flag that does not exist.
func Complete(cmd *cobra.Command, flag string, words func(typed string) []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return words(typed), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err)
	}
}
