package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every program is made by a line that a mutant of it can be made by.
func TestObjectsAreKnown(t *testing.T) {
	list := sources(root(t), "*_bpfel.go")
	if len(list) < 20 {
		t.Errorf("%d objects", len(list))
	}
	for _, path := range list {
		if _, _, err := unitOf(path); err != nil {
			t.Error(err)
		}
	}
}

// The sources have places enough, in every folder, and the same seed draws the same ones.
func TestDraw(t *testing.T) {
	t.Chdir(root(t))
	draw := func() []string {
		d, err := newDrawer(7, "")
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for range 300 {
			s, ok := d.next()
			if !ok {
				t.Fatal("no sites are left")
			}
			text, err := os.ReadFile(s.File)
			if err != nil {
				t.Fatal(err)
			}
			if string(text[s.From:s.To]) != s.Old {
				t.Errorf("%s: %q stands there", s, text[s.From:s.To])
			}
			list = append(list, s.key)
		}
		return list
	}
	first := draw()
	if !slices.Equal(first, draw()) {
		t.Error("the same seed drew others")
	}
	for _, prefix := range []string{"bpf/include", "bpf/fridge", "userspace/fridge", "userspace/lean", "userspace/report", "bpf/include/parse.h"} {
		if !slices.ContainsFunc(first, func(key string) bool { return strings.HasPrefix(key, prefix) }) {
			t.Errorf("none of 300 is in %s", prefix)
		}
	}
}

// Every equivalent that is listed has a reason, and its line is still in the file that it names.
func TestEquivalents(t *testing.T) {
	t.Chdir(root(t))
	known, err := readEquivalents()
	if err != nil {
		t.Fatal(err)
	}
	for key := range known {
		file, line, _ := strings.Cut(key, ": ")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		head, rest, _ := strings.Cut(line, "«")
		old, rest, _ := strings.Cut(rest, "»→«")
		_, tail, _ := strings.Cut(rest, "»")
		tail, _, _ = strings.Cut(tail, " #")
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), strings.TrimSpace(head+old+tail)) {
			t.Errorf("%s: no such line", key)
		}
	}
}

// What the named ones change stands where they state.
func TestNamed(t *testing.T) {
	t.Chdir(root(t))
	list, err := readNamed("")
	if err != nil || len(list) == 0 {
		t.Errorf("%d named: %v", len(list), err)
	}
}

func root(t *testing.T) string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// What needs a network, load or time is left out, and nothing whose name only begins like that.
func TestLeftOut(t *testing.T) {
	for name, out := range map[string]bool{"TestLive": true, "TestLiveCores": true, "TestAttacksLive": true, "TestChangesUnderLoad": true, "TestChangesUnderLiveLoad": true,
		"TestSoakMany": true, "TestDemo": true, "TestDemoEndsOnASignal": true, "TestLongFuzz": true, "TestLives": false, "TestTooLong": false, "TestLongestDelay": false, "TestLoad": false} {
		if got := regexp.MustCompile(otherTests).MatchString(name); got != out {
			t.Errorf("%s is left out: %v", name, got)
		}
	}
}
