package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checks are in the order in which an operator would find out: is the kernel good enough, do the programs load, do they
// count right, do they attach and go away.
func checks() []check {
	list := []check{{"features", features}}
	names, err := algorithms()
	if err != nil {
		return append(list, check{"algos", func() (string, error) { return "", err }})
	}
	for _, name := range names {
		list = append(list, check{"replay " + name, func() (string, error) { return replay(name) }})
	}
	for _, h := range hooks() {
		for _, name := range names {
			list = append(list, check{"attach " + name + ", " + h.name, func() (string, error) { return live(h, name) }})
		}
		list = append(list, check{"attach all, " + h.name, func() (string, error) { return live(h, names...) }})
	}
	for _, q := range queues() {
		list = append(list, check{"queue " + q.name, q.through})
	}
	for _, q := range queues() {
		if q.below {
			list = append(list, check{"culprits " + q.name, q.culprits})
		}
	}
	if _, err := os.Stat(standingStudy); err == nil {
		for _, kind := range standingKinds {
			for n := range standingCells {
				list = append(list, check{fmt.Sprintf("standing %s %d", kind, n), func() (string, error) { return standing(kind, n) }})
			}
		}
	}
	for n, rate := range shareRates {
		if n > 0 && !strings.Contains(os.Getenv("xdpmon_only"), "shape") {
			break // they take minutes: by name only
		}
		for _, c := range crowds(rate) {
			for _, s := range shapers() {
				list = append(list, check{fmt.Sprintf("shape %.0f Mbit/s: %s: %s", rate/1e6, c.name, s.name), func() (string, error) { return s.shape(c) }})
			}
		}
	}
	for n, p := range pacings() {
		list = append(list, check{fmt.Sprintf("pace %02d: %v", n, p), p.through})
	}
	return append(list, check{"queue choke", refused}, check{"queue without CAP_PERFMON", unprivileged},
		check{"killed, tc", killed}, check{"pinned, killed, adopted", adopted})
}

// xdpmon runs the binary to its end; an exit code other than 0 is an error with what it complained about.
func xdpmon(args ...string) (string, error) {
	cmd := exec.Command(binary, args...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("xdpmon %s: %w: %s", strings.Join(args, " "), err, shorten(complaint.String()+verifierLog()))
	}
	return out.String(), nil
}

// verifierLog is the end of the logs that xdpmon left for a verifier's refusal: the machine is deleted before anyone can look.
func verifierLog() string {
	paths, _ := filepath.Glob("/tmp/xdpmon*")
	var text strings.Builder
	for _, path := range paths {
		if log, err := os.ReadFile(path); err == nil {
			fmt.Fprintf(&text, "\n%s: %s", path, log[max(0, len(log)-800):])
			_ = os.Remove(path)
		}
	}
	return text.String()
}

// features passes when nothing is missing that xdpmon needs; what is absent but optional is reported.
func features() (string, error) {
	out, err := xdpmon("features", "--output", "json")
	if err != nil {
		return "", err
	}
	var f struct {
		Host []struct{ Key, State string }
	}
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		return "", fmt.Errorf("read features: %w", err)
	}
	var absent []string
	for _, one := range f.Host {
		if one.State == "unknown" {
			return "", fmt.Errorf("no conclusive answer about %s", one.Key)
		}
		if one.State != "supported" {
			absent = append(absent, one.Key)
		}
	}
	return fmt.Sprintf("%d asked; not there: %s", len(f.Host), orNone(absent)), nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// algorithms are the names of all that this binary has.
func algorithms() ([]string, error) {
	out, err := xdpmon("algos", "--output", "json")
	if err != nil {
		return nil, err
	}
	var names []string
	for text := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		var one struct{ Name string }
		if err := json.Unmarshal([]byte(text), &one); err != nil || one.Name == "" {
			return nil, fmt.Errorf("read algorithms: %q", text)
		}
		names = append(names, one.Name)
	}
	return names, nil
}
