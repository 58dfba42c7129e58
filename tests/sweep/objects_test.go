package sweep

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// kernelObject is a BPF map, program or link.
type kernelObject struct {
	kind string
	id   uint32
}

func (o kernelObject) String() string { return fmt.Sprintf("%s %d", o.kind, o.id) }

// held lists the BPF objects that this process has open: other processes' are not its business.
func held(t *testing.T) map[kernelObject]bool {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fdinfo")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[kernelObject]bool{}
	for _, file := range files {
		if o, ok := described(filepath.Join("/proc/self/fdinfo", file.Name())); ok {
			objects[o] = true
		}
	}
	return objects
}

// described reads what a descriptor is of; one that was closed meanwhile is of nothing.
func described(path string) (kernelObject, bool) {
	file, err := os.Open(path)
	if err != nil {
		return kernelObject{}, false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		kind, isID := strings.CutSuffix(name, "_id")
		if !isID || !slices.Contains([]string{"map", "prog", "link"}, kind) {
			continue
		}
		if id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32); err == nil {
			return kernelObject{kind, uint32(id)}, true
		}
	}
	return kernelObject{}, false
}

// awaitFreed waits until the kernel has freed objects, which it does after all programs have ended. Constants are mapped into
// this process; the library unmaps them when the garbage collector runs.
func awaitFreed(t *testing.T, objects map[kernelObject]bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); len(objects) > 0; time.Sleep(50 * time.Millisecond) {
		runtime.GC()
		for o := range objects {
			if !o.exists() {
				delete(objects, o)
			}
		}
		if time.Now().After(deadline) {
			break
		}
	}
	for o := range objects {
		t.Errorf("%s is still in the kernel", o)
	}
}

// exists looks for the id without opening the object: a program array that is opened and closed while the kernel clears
// it, because its last descriptor was closed, is never freed (seen on Linux 6.18).
func (o kernelObject) exists() bool {
	switch o.kind {
	case "map":
		next, err := ebpf.MapGetNextID(ebpf.MapID(o.id - 1))
		return err == nil && next == ebpf.MapID(o.id)
	case "prog":
		next, err := ebpf.ProgramGetNextID(ebpf.ProgramID(o.id - 1))
		return err == nil && next == ebpf.ProgramID(o.id)
	}
	return false // a link is removed with its last descriptor
}

// frames are packets of several captures, one after the other.
type frames []packet.Frame

// cornerFrames reads the odd captures; each starts when the one before has ended.
func cornerFrames(t *testing.T) frames {
	t.Helper()
	var all frames
	now := int64(time.Second)
	for _, path := range testutil.CornerCaptures(t) {
		first := int64(0)
		latest := now
		readAll(t, path, func(f *packet.Frame) {
			if first == 0 {
				first = f.Time
			}
			one := *f
			one.Data = slices.Clone(f.Data)
			one.Time = now + min(max(f.Time-first, 0), int64(2*time.Second))
			latest = max(latest, one.Time)
			all = append(all, one)
		})
		now = latest + int64(time.Millisecond)
	}
	return all
}

func readAll(t *testing.T, path string, visit func(*packet.Frame)) {
	t.Helper()
	r, err := capture.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		var f packet.Frame
		err := r.Next(&f)
		if errors.Is(err, io.EOF) || errors.Is(err, capture.ErrTruncated) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(&f)
	}
}

// source hands the frames to a replay.
func (f frames) source() capture.Source { return &memory{frames: f} }

type memory struct {
	frames frames
	next   int
}

func (m *memory) Next(f *packet.Frame) error {
	if m.next == len(m.frames) {
		return io.EOF
	}
	*f = m.frames[m.next]
	m.next++
	return nil
}

func (m *memory) Progress() (read, total int64) { return int64(m.next), int64(len(m.frames)) }
func (m *memory) Skipped() map[string]uint64    { return nil }
func (m *memory) Close() error                  { return nil }
