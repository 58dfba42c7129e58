package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// ReadFile reads a configuration of at most MaxFile bytes.
func ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if info.Size() > MaxFile {
		return nil, fmt.Errorf("read configuration %s: %d bytes are too many: at most %d", name, info.Size(), MaxFile)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return text, nil
}

// Parse parses and checks text; name is the file's in errors, lacks names the required key in the error for an empty file. An error is an *Error.
func Parse[T any](name, lacks string, text []byte, k Object[T]) (*T, error) {
	p := &Parser{File: name}
	root := p.Read(text, lacks)
	if root == nil {
		return nil, p.Err()
	}
	v, ok := k.Decode(p, root)
	if err := p.Err(); err != nil || !ok {
		return nil, err
	}
	c := v.(T)
	return &c, nil
}

// MaxFile bounds the size of a configuration.
const MaxFile = 1 << 20

// Exposed describes unsafe permissions of the file; "" if there are none.
func Exposed(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	switch mode := info.Mode().Perm(); {
	case mode&0o022 != 0:
		return fmt.Sprintf("%s is writable by others (%v), who could change what is measured; chmod 600 %s", path, mode, path)
	case mode&0o044 != 0:
		return fmt.Sprintf("%s can be read by others (%v); chmod 600 %s", path, mode, path)
	}
	return ""
}

// Entry is a key of a file.
func Entry[T any](key, help string, k Kind, required bool, set func(*T, any)) Field[T] {
	return Field[T]{Key: key, Help: help, Kind: k, Required: required, Set: set}
}

// Path is an absolute path.
func Path(what string) Kind {
	return Word{What: what, Pattern: "^/", Check: func(text string) error {
		if !filepath.IsAbs(text) {
			return fmt.Errorf("%s %q: give an absolute path", what, text)
		}
		return nil
	}}
}

// WriteSchema returns the JSON schema of a file, for editors and generators of configurations. defs are the parts that it refers to by
// their $id, to be included; without them they must be files in the same folder.
func WriteSchema(k Kind, title string, defs map[string]any) ([]byte, error) {
	s := k.Schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	if len(defs) > 0 {
		s["$defs"] = defs
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return b.Bytes(), nil
}
