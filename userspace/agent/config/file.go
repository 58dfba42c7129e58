package config

import (
	file "github.com/xdpmon/xdpmon/userspace/config"
)

// What a file is read with.
type (
	// Problem is one complaint, and where.
	Problem = file.Problem
	// Error is a configuration that is refused.
	Error = file.Error

	parser   = file.Parser
	kind     = file.Kind
	pair     = file.Pair
	word     = file.Word
	flag     = file.Flag
	number   = file.Number
	duration = file.Duration
	size     = file.Size

	list[T any]   = file.List[T]
	field[T any]  = file.Field[T]
	object[T any] = file.Object[T]
)

func to[T, V any](f func(*T) *V) func(*T, any) { return file.To(f) }

// Parse checks a configuration; name is the file's in complaints.
func Parse(name string, text []byte) (*Config, error) {
	return parse(name, "instances are", text, whole())
}
