package coverage

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sync"

	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Part of a capture.
type Part struct {
	Name string
	Open func(seed uint64) (capture.Source, error)
}

// Parts are what is judged of the captures in a folder. The large one is cut: 300 seeds of a part show more of an interval than a
// few of the whole.
func Parts(folder string) []Part {
	of := func(name, file string, skip, most int) Part {
		return Part{name, Captured(filepath.Join(folder, file+".pcap"), skip, most)}
	}
	const all = math.MaxInt32
	return []Part{
		of("composite, packets to 10,000", "composite_120s", 0, 10_000), of("composite, 60,000 to 70,000", "composite_120s", 60_000, 10_000),
		of("laptop", "laptop_wan_300s", 0, all), of("web", "web_reordered", 0, all), of("speedtest, 8,000 packets", "speedtest_server", 0, 8_000),
	}
}

// Captured opens a part of a capture: at most so many packets after those that are skipped. The file is read once for all
// seeds, which differ in hashes and coins alone.
func Captured(path string, skip, most int) func(seed uint64) (capture.Source, error) {
	read := sync.OnceValues(func() ([]packet.Frame, error) { return record(path, skip, most) })
	return func(uint64) (capture.Source, error) {
		frames, err := read()
		return &recorded{frames: frames}, err
	}
}

func record(path string, skip, most int) ([]packet.Frame, error) {
	list, err := capture.OpenAll([]string{path}, nil)
	if err != nil {
		return nil, fmt.Errorf("open capture (XDPMON_TRACES is the folder that has it): %w", err)
	}
	source := capture.Concat(list...)
	defer source.Close()
	var frames []packet.Frame
	for n := 0; n < skip+most; n++ {
		var f packet.Frame
		if err := source.Next(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if n >= skip {
			f.Data = slices.Clone(f.Data)
			frames = append(frames, f)
		}
	}
	return frames, nil
}

// recorded is a capture.Source of what is in memory.
type recorded struct {
	frames []packet.Frame
	next   int
}

// Next implements capture.Source.
func (r *recorded) Next(f *packet.Frame) error {
	if r.next == len(r.frames) {
		return io.EOF
	}
	*f = r.frames[r.next]
	r.next++
	return nil
}

// Progress implements capture.Source.
func (r *recorded) Progress() (read, total int64) { return 0, 0 }

// Skipped implements capture.Source.
func (r *recorded) Skipped() map[string]uint64 { return nil }

// Close implements capture.Source.
func (r *recorded) Close() error { return nil }
