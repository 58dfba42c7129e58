package parts

import (
	"errors"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/nearest"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Own is the length of an algorithm's windows in a file.
type Own struct {
	Algorithm string
	Length    time.Duration
	At        *yaml.Node
}

// Windows is a mapping of algorithms to the lengths of their windows.
type Windows struct{}

// WindowsHelp describes it.
const WindowsHelp = "algorithms with windows of another length, a multiple of the shortest: {lean: 1m, reorder: 5m}"

func (Windows) Decode(p *config.Parser, n *yaml.Node) (any, bool) {
	entries, good := p.Pairs(n, "windows")
	var all []Own
	for _, e := range entries {
		v, ok := config.Decode(p, Window, e.Value)
		if !ok {
			good = false
			continue
		}
		all = append(all, Own{e.Key.Value, v.(time.Duration), e.Key})
	}
	return all, good
}

func (Windows) Schema() map[string]any {
	return map[string]any{"type": []string{"object", "null"}, "propertyNames": map[string]any{"enum": algo.Names()}, "additionalProperties": Window.Schema()}
}

// SetWindows gives algorithms their lengths, and refuses those of others.
func SetWindows(p *config.Parser, list []Chosen, own []Own) {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Descriptor.Name
	}
	for _, o := range own {
		there := false
		for i := range list {
			if names[i] == o.Algorithm {
				list[i].Window, there = int64(o.Length), true
			}
		}
		if !there {
			p.Errorf(o.At, "windows of %s, which is not among the algorithms%s", o.Algorithm, nearest.Hint(o.Algorithm, names))
		}
	}
}

// CheckWindows refuses lengths that do not fit together; pinned: algorithms have to have the same.
func CheckWindows(p *config.Parser, own []Own, selected []session.Selected, window time.Duration, pinned bool) {
	if len(own) == 0 {
		return
	}
	err := session.CheckWindows(selected, window)
	if err == nil && pinned && session.Several(selected, window) {
		err = errors.New("the algorithms of an instance that is pinned have windows of one length: give them rules of their own, or pin: false")
	}
	if err != nil {
		p.Errorf(own[0].At, "%s", err)
	}
}
