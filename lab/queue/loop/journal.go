package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// entry is a line of the journal.
type entry struct {
	Setting setting
	Result  result
	Program string // xdpmon's version
	At      time.Time
}

// kept are the results so far.
type kept struct {
	mu      sync.Mutex
	program string
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
	version, err := exec.Command(*binary, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s version: %w", *binary, err)
	}
	k := &kept{program: strings.TrimSpace(string(version))}
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

// longestStall of the machine, ms, in a run that counts.
const longestStall = 50

func (e entry) stalled() bool { return e.Result.Stall > longestStall }

// has a result that was not spoiled.
func (k *kept) has(s setting) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.results, func(e entry) bool { return e.Setting == s && !e.stalled() })
}

// spoiled is how many results of the setting were.
func (k *kept) spoiled(s setting) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.results {
		if e.Setting == s && e.stalled() {
			n++
		}
	}
	return n
}

func (k *kept) add(s setting, r result) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := entry{s, r, k.program, time.Now().UTC()}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	k.results = append(k.results, e)
	_, err = k.file.Write(append(line, '\n'))
	return err
}

func (k *kept) Close() error { return k.file.Close() }
