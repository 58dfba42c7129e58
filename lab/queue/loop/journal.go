package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// entry is a line of the journal.
type entry struct {
	Setting setting
	Result  result
}

// kept are the results so far.
type kept struct {
	file    *os.File
	results []entry
}

func openJournal(path string) (*kept, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	k := &kept{}
	for line := range bytes.Lines(text) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		k.results = append(k.results, e)
	}
	k.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return k, err
}

func (k *kept) has(s setting) bool {
	return slices.ContainsFunc(k.results, func(e entry) bool { return e.Setting == s })
}

func (k *kept) add(s setting, r result) error {
	line, err := json.Marshal(entry{s, r})
	if err != nil {
		return err
	}
	k.results = append(k.results, entry{s, r})
	_, err = k.file.Write(append(line, '\n'))
	return err
}

func (k *kept) Close() error { return k.file.Close() }
