package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/userspace/session"
)

const (
	minWindow = 100 * time.Millisecond
	maxWindow = 24 * time.Hour
)

// lengths is the value of --window: the length of windows, and those of algorithms that have another one.
type lengths struct {
	all time.Duration
	own map[string]time.Duration
}

func (l *lengths) String() string {
	list := []string{l.all.String()}
	for _, name := range slices.Sorted(maps.Keys(l.own)) {
		list = append(list, name+"="+l.own[name].String())
	}
	return strings.Join(list, ",")
}

// Type is the type in help texts.
func (l *lengths) Type() string { return "duration" }

// Set reads LENGTH and NAME=LENGTH, separated by commas. The flag may be repeated.
func (l *lengths) Set(text string) error {
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
			l.all = d
		case l.own[name] != 0:
			return fmt.Errorf("%s has two lengths", name)
		default:
			if l.own == nil {
				l.own = map[string]time.Duration{}
			}
			l.own[name] = d
		}
		if (own || d != 0) && (d < minWindow || d > maxWindow) {
			return fmt.Errorf("%v: allowed are %v to %v", d, minWindow, maxWindow)
		}
	}
	return nil
}

// of is the length of an algorithm's windows, ns.
func (l *lengths) of(name string) int64 {
	if own := l.own[name]; own != 0 {
		return int64(own)
	}
	return int64(l.all)
}

// check refuses lengths of algorithms that do not run, and those that do not fit together.
func (l *lengths) check(selected []session.Selected) error {
	names := make([]string, len(selected))
	for i, s := range selected {
		names[i] = s.Descriptor.Name
	}
	for _, name := range slices.Sorted(maps.Keys(l.own)) {
		if !slices.Contains(names, name) {
			return cli.UsageError("--window %s=%v: %s is not among the algorithms of this run (%s)%s", name, l.own[name], name, orNone(names), didYouMean(name, names))
		}
	}
	if err := session.CheckWindows(selected, l.all); err != nil {
		return cli.AsUsage(fmt.Errorf("--window: %w", err))
	}
	return nil
}
