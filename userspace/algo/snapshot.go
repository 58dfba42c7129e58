package algo

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// ErrMerge is wrapped when snapshots cannot be merged, with the reason.
var ErrMerge = errors.New("they cannot be merged")

// ErrLayout is wrapped when the layout of a snapshot is that of another version of the algorithm.
var ErrLayout = errors.New("the snapshot is of another version of the algorithm")

// LineMerger merges the JSON lines of hosts.
type LineMerger interface {
	// Read adds a host; name is used in its errors.
	Read(name string, r io.Reader) error
	Report() report.Body
}

// Window ends a window of an instance: it reads the snapshot and computes the report.
func Window(i Instance, w report.Window, bank int) (Result, error) {
	s, err := Read(i, w, bank)
	if err != nil {
		return Result{}, err
	}
	return Report(s)
}

// Read reads a window, with the offset of its clock to wall clock time.
func Read(i Instance, w report.Window, bank int) (*snapshot.Snapshot, error) {
	s, err := i.Read(w, bank)
	if err == nil && !s.Replay { // a capture's time is Unix time
		s.Offset = hostclock.Read().UnixOffsetNS
	}
	return s, err
}

// Report computes the report of a snapshot, whatever its source.
func Report(s *snapshot.Snapshot) (Result, error) {
	of, err := SelectedFor(s)
	if err != nil {
		return Result{}, err
	}
	return of.Config.Report(s)
}

// SelectedFor is the configuration that a snapshot was taken with. Equal parameters are parsed once for all snapshots.
func SelectedFor(s *snapshot.Snapshot) (Selected, error) {
	d, err := Lookup(s.Algorithm)
	if err != nil {
		return Selected{}, fmt.Errorf("read snapshot: %w", err)
	}
	if s.Layout != d.Layout {
		return Selected{}, fmt.Errorf("read snapshot of %s: %w: layout %d, this one reads %d", d.Name, ErrLayout, s.Layout, d.Layout)
	}
	of, err := cached.selected(d, s)
	if err != nil {
		return Selected{}, fmt.Errorf("read snapshot of %s: %w: %w", d.Name, snapshot.ErrDamaged, err)
	}
	return of, nil
}

// Merge merges two snapshots of one algorithm into that of a host with the packets of both. It changes
// neither.
func Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	if a.Algorithm != b.Algorithm {
		return nil, fmt.Errorf("merge %s with %s: %w: two algorithms", a.Algorithm, b.Algorithm, ErrMerge)
	}
	fail := func(err error) (*snapshot.Snapshot, error) { return nil, fmt.Errorf("merge %s: %w", a.Algorithm, err) }
	of, err := SelectedFor(a)
	if err != nil {
		return fail(err)
	}
	if _, err := SelectedFor(b); err != nil {
		return fail(err)
	}
	m, ok := of.Config.(Merger)
	if !ok {
		return fail(fmt.Errorf("%w: the algorithm does not support it", ErrMerge))
	}
	if err := alike(a, b); err != nil {
		return fail(err)
	}
	s, err := m.Merge(a, b)
	if err != nil {
		return fail(err)
	}
	return s, nil
}

// alike refuses different parameters.
func alike(a, b *snapshot.Snapshot) error {
	for _, key := range slices.Sorted(maps.Keys(a.Params)) {
		if x, y := a.Params[key], b.Params[key]; x != y {
			return fmt.Errorf("%w: %s is %s on one and %s on the other: give all hosts the same parameters", ErrMerge, key, quoted(x), quoted(y))
		}
	}
	if a.CRC != b.CRC {
		return fmt.Errorf("%w: one has the hashes of --hash crc and the other has not", ErrMerge)
	}
	return nil
}

func quoted(text string) string {
	if text == "" {
		return "empty"
	}
	return text
}

// SameHashes refuses snapshots with different hash seeds or epochs.
func SameHashes(a, b *snapshot.Snapshot) error {
	if a.Hashes != b.Hashes {
		return fmt.Errorf("%w: their hash seeds differ: give all hosts the same --seed", ErrMerge)
	}
	if a.Epoch != b.Epoch {
		return fmt.Errorf("%w: their hashes are of epochs %d and %d", ErrMerge, a.Epoch, b.Epoch)
	}
	return nil
}
