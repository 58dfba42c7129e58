package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// replay runs the capture through an algorithm and its exact twin. The answer must be the one that another kernel gave for
// the same seed, and the packets must all have been seen.
func replay(name string) (string, error) {
	out, err := xdpmon("replay", capture, "--algo", name, "--truth", "--seed", "1", "--output", "json")
	if err != nil {
		return "", err
	}
	want, err := os.ReadFile(filepath.Join(expected, name+".jsonl"))
	if err != nil {
		return "", fmt.Errorf("it runs here, but not on the machine that made this: %w", err)
	}
	windows, err := windowsOf(out)
	if err != nil {
		return "", err
	}
	there, err := windowsOf(string(want))
	if err != nil {
		return "", err
	}
	if err := same(windows, there); err != nil {
		return "", err
	}
	return summary(windows)
}

// windowsOf decodes the lines after the first, which describes the run. Memory depends on the machine, answers do not.
func windowsOf(text string) ([]map[string]any, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var windows []map[string]any
	for _, line := range lines[1:] {
		var window map[string]any
		if err := json.Unmarshal([]byte(line), &window); err != nil {
			return nil, fmt.Errorf("read %q: %w", line, err)
		}
		delete(window, "memory")
		windows = append(windows, window)
	}
	if len(windows) == 0 {
		return nil, fmt.Errorf("no window in %q", shorten(text))
	}
	return windows, nil
}

func same(here, there []map[string]any) error {
	if len(here) != len(there) {
		return fmt.Errorf("%d windows, where they were made %d", len(here), len(there))
	}
	for i := range here {
		for _, field := range slices.Sorted(maps.Keys(there[i])) {
			if !reflect.DeepEqual(here[i][field], there[i][field]) {
				return fmt.Errorf("window %d: %s is %s, where they were made %s", i, field, asJSON(here[i][field]), asJSON(there[i][field]))
			}
		}
	}
	return nil
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return shorten(string(text))
}

// summary states how many packets were compared, and that there was a truth to compare with.
func summary(windows []map[string]any) (string, error) {
	last := windows[len(windows)-1]
	packets, _ := last["packets"].(map[string]any)
	seen, _ := packets["seen"].(float64)
	used, ok := packets["used"].(float64)
	if !ok {
		used, _ = packets["used_segments"].(float64)
	}
	truth, _ := last["truth"].(map[string]any)
	if seen == 0 || used == 0 || len(truth) == 0 {
		return "", fmt.Errorf("%.0f packets seen, %.0f used, %d figures of truth: there is nothing to compare", seen, used, len(truth))
	}
	return fmt.Sprintf("%.0f packets, %.0f used: answers and errors as on the kernel that made them", seen, used), nil
}
