// Package windows is the value of --window of the verbs that run algorithms.
package windows

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/userspace/nearest"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Bounds of a length.
const (
	Min = 100 * time.Millisecond
	Max = 24 * time.Hour
)

// Lengths is the value of --window: the length of windows, and those of algorithms that have another one.
type Lengths struct {
	All time.Duration
	Own map[string]time.Duration
}

func (l *Lengths) String() string {
	list := []string{l.All.String()}
	for _, name := range slices.Sorted(maps.Keys(l.Own)) {
		list = append(list, name+"="+l.Own[name].String())
	}
	return strings.Join(list, ",")
}

// Type is the type in help texts.
func (l *Lengths) Type() string { return "duration" }

// Set reads LENGTH and NAME=LENGTH, separated by commas. The flag may be repeated.
func (l *Lengths) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, length, own := strings.Cut(part, "=")
		if !own {
			name, length = "", part
		}
		d, err := time.ParseDuration(length)
		if err != nil {
			return fmt.Errorf("%q: write a length like 10s, or NAME=LENGTH like lean=1m", part)
		}
		switch {
		case !own:
			l.All = d
		case l.Own[name] != 0:
			return fmt.Errorf("%s has two lengths", name)
		default:
			if l.Own == nil {
				l.Own = map[string]time.Duration{}
			}
			l.Own[name] = d
		}
		if (own || d != 0) && (d < Min || d > Max) {
			return fmt.Errorf("%v: allowed are %v to %v", d, Min, Max)
		}
	}
	return nil
}

// Of is the length of an algorithm's windows, ns.
func (l *Lengths) Of(name string) int64 {
	if own := l.Own[name]; own != 0 {
		return int64(own)
	}
	return int64(l.All)
}

// Check refuses lengths of algorithms that do not run, and those that do not fit together.
func (l *Lengths) Check(selected []session.Selected) error {
	names := make([]string, len(selected))
	for i, s := range selected {
		names[i] = s.Descriptor.Name
	}
	for _, name := range slices.Sorted(maps.Keys(l.Own)) {
		if !slices.Contains(names, name) {
			return cli.UsageError("--window %s=%v: %s is not among the algorithms of this run (%s)%s", name, l.Own[name], name, strings.Join(names, ", "), nearest.Hint(name, names))
		}
	}
	if err := session.CheckWindows(selected, l.All); err != nil {
		return cli.AsUsage(fmt.Errorf("--window: %w", err))
	}
	return nil
}
