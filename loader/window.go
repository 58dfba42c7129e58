package loader

import (
	"fmt"

	"github.com/xdpmon/xdpmon/bpf/window"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// windowName begins the names of the programs between algorithms with windows of different lengths: the place among them follows.
const windowName = "window"

// windowKey is the place of such a program among those of its chain, and the group that it selects.
type windowKey struct{ place, group int }

// windowed inserts the programs that select the bank of another group where the group changes along a chain. Packets begin with group 0.
func (i *Instance) windowed(list []Object) (all []Object, err error) {
	group, place := 0, 0
	for _, o := range list {
		if o.Group != group {
			w, err := i.windowObject(windowKey{place, o.Group})
			if err != nil {
				return nil, err
			}
			all = append(all, w)
			group, place = o.Group, place+1
		}
		all = append(all, o)
	}
	return all, nil
}

// windowObject is the configured program; the same each time, so that it stays loaded when the chain is exchanged.
func (i *Instance) windowObject(k windowKey) (Object, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if o, known := i.windows[k]; known {
		return o, nil
	}
	if k.group < 0 || k.group >= xmaps.Groups {
		return Object{}, fmt.Errorf("load chain: windows of %d lengths, at most %d are possible", k.group+1, xmaps.Groups)
	}
	spec, err := window.LoadWindow()
	if err == nil {
		err = xmaps.SetConstant(spec, "window_group", uint32(k.group))
	}
	if err != nil {
		return Object{}, fmt.Errorf("read window object: %w", err)
	}
	o := Object{Name: fmt.Sprintf("%s%d", windowName, k.place), Spec: Outline(spec), Read: window.LoadWindow}
	if i.windows == nil {
		i.windows = map[windowKey]Object{}
	}
	i.windows[k] = o
	return o, nil
}
