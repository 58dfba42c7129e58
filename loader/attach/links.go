package attach

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

func (o Occupant) Remove(ifindex int) error {
	if o.Hook == HookSent {
		return o.unwatch(ifindex)
	}
	if o.filter != nil {
		return (&FilterHold{ifindex, o.Direction, o.filter}).Release()
	}
	l, err := o.link()
	if err != nil {
		return err
	}
	return LinkHold{l}.Release()
}

// Owner is who added the occupant, where that is a filter of ours.
func (o Occupant) Owner() *Owner {
	if o.filter == nil {
		return nil
	}
	owner, ours := ParseOwner(o.filter.Name)
	if !ours {
		return nil
	}
	return &owner
}

// link opens the link that holds the occupant's program.
func (o Occupant) link() (link.Link, error) {
	if o.Link != 0 {
		return link.NewFromID(o.Link)
	}
	var found link.Link
	err := EachLink(func(l link.Link, info *link.Info) bool {
		if info.XDP() == nil || info.Program != o.Program {
			return true
		}
		var err error
		found, err = link.NewFromID(info.ID)
		return err != nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("find the link of program %d: %w", o.Program, os.ErrNotExist)
	}
	return found, err
}

// mostTries is the number of retries for a link that is still being created: some seconds.
const mostTries = 2000

// EachLink calls fn with every BPF link of this host until it returns false.
func EachLink(fn func(link.Link, *link.Info) bool) error {
	it := new(link.Iterator)
	defer func() { it.Close() }()
	for tries := 0; ; tries++ {
		for it.Next() {
			info, err := it.Link.Info()
			if err != nil {
				continue // removed since
			}
			if !fn(it.Link, info) {
				return nil
			}
		}
		if !errors.Is(it.Err(), unix.EAGAIN) || tries == mostTries {
			return it.Err()
		}
		// The link is being created: it has an id already, but can be opened only when it is attached.
		time.Sleep(time.Millisecond)
		it = &link.Iterator{ID: it.ID}
	}
}
