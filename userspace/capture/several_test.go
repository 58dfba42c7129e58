package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// at makes a capture of frames at these times, each marked with the capture's number.
func at(t *testing.T, mark byte, times ...int64) Source {
	t.Helper()
	var frames []packet.Frame
	for _, time := range times {
		frames = append(frames, packet.Frame{Time: time, Data: payload(20, mark), Len: 20})
	}
	r, err := NewReader("source", bytes.NewReader(classic(binary.BigEndian, magicNano, 1, frames...)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func marksOf(frames []packet.Frame) (marks string, times []int64) {
	for _, f := range frames {
		marks += string('a' + rune(f.Data[0]))
		times = append(times, f.Time)
	}
	return marks, times
}

func TestMergeAndConcat(t *testing.T) {
	merged, err := readAll(Merge(at(t, 0, 1, 5, 9), at(t, 1), at(t, 2, 2, 5, 6, 20), at(t, 3, 5, 4)))
	if marks, _ := marksOf(merged); marks != "acacddcac" || err != io.EOF {
		t.Errorf("merged %s: %v", marks, err)
	}
	joined, err := readAll(Concat(at(t, 0, 10, 11), at(t, 1, 1)))
	if marks, times := marksOf(joined); marks != "aab" || times[2] != 1 || err != io.EOF {
		t.Errorf("joined %s at %v: %v", marks, times, err)
	}
	if _, err := readAll(Merge()); err != io.EOF {
		t.Errorf("merge of nothing: %v", err)
	}
}

// Captures of several files stay separate when they are merged, and the last one is after all others.
func TestSides(t *testing.T) {
	frames, err := readAll(Merge(Sides(at(t, 0, 1, 9), at(t, 1, 4), at(t, 2, 2, 5))...))
	if err != io.EOF || len(frames) != 5 {
		t.Fatalf("%d frames: %v", len(frames), err)
	}
	for i, want := range []uint32{1, 3, 2, 3, 1} {
		if f := frames[i]; f.Interface != want || (f.Direction == packet.Egress) != (want == 3) {
			t.Errorf("frame %d: interface %d, direction %d, want interface %d", i, f.Interface, f.Direction, want)
		}
	}
}

// A damaged file in the middle does not keep the others from being read, and is reported at the end.
func TestSeveralWithDamage(t *testing.T) {
	whole := classic(binary.LittleEndian, magicNano, 1, threeFrames()...)
	for name, combine := range map[string]func(...Source) Source{"merge": Merge, "concat": Concat} {
		cut, err := NewReader("cut.pcap", bytes.NewReader(whole[:len(whole)-3]))
		if err != nil {
			t.Fatal(err)
		}
		src := combine(at(t, 0, 1, 2), cut, at(t, 1, 3))
		frames, err := readAll(src)
		if len(frames) != 5 || !errors.Is(err, ErrTruncated) || errors.Is(err, io.EOF) {
			t.Errorf("%s: %d frames, then %v", name, len(frames), err)
		}
		if again := src.Next(new(packet.Frame)); !errors.Is(again, ErrTruncated) {
			t.Errorf("%s: then %v", name, again)
		}
	}
}

func TestOpenAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pcap")
	whole := classic(binary.LittleEndian, magicNano, 113, packet.Frame{Time: 1, Data: payload(60, 0), Len: 60})
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAll([]string{path, path + "x"}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one missing: %v", err)
	}
	sources, err := OpenAll([]string{path, path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	src := Concat(sources...)
	if frames, _ := readAll(src); len(frames) != 2 {
		t.Errorf("%d frames, want 2", len(frames))
	}
	if read, total := src.Progress(); read != total || total != int64(2*len(whole)) {
		t.Errorf("progress %d of %d", read, total)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	if _, total := Concat(append(sources, at(t, 0))...).Progress(); total != 0 {
		t.Errorf("total with a pipe among the sources: %d, want unknown", total)
	}
}
