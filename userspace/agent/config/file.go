package config

import (
	file "github.com/xdpmon/xdpmon/userspace/config"
)

// Types of package file, by shorter names.
type (
	parser = file.Parser
	kind   = file.Kind
	word   = file.Word
	flag   = file.Flag
	number = file.Number
	size   = file.Size

	list[T any]   = file.List[T]
	field[T any]  = file.Field[T]
	object[T any] = file.Object[T]
)

func to[T, V any](f func(*T) *V) func(*T, any) { return file.To(f) }

// Parse checks a configuration; name is the file's name in errors.
func Parse(name string, text []byte) (*Config, error) {
	return file.Parse(name, "instances are", text, whole())
}
