// Package folder stores snapshots as files, up to a limit of bytes.
package folder

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Suffix is the suffix of snapshots' files.
const Suffix = ".xdpsnap"

// Options of a folder.
type Options struct {
	Limit int64        // bytes of all files; the oldest go first
	Clock report.Clock // of the windows
	Full  func()       // called once, when the first file is removed
}

// Folder stores snapshots. It is not locked: two processes may write into one folder.
type Folder struct {
	Dir      string
	opts     Options
	files    []file // oldest first
	bytes    int64
	notified bool
}

type file struct {
	name string
	size int64
	at   time.Time
}

// Open creates the folder, or lists its existing snapshots, which count towards the limit.
func Open(dir string, opts Options) (*Folder, error) {
	f := &Folder{Dir: dir, opts: opts}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), Suffix) {
			f.files = append(f.files, file{e.Name(), info.Size(), info.ModTime()})
			f.bytes += info.Size()
		}
	}
	slices.SortFunc(f.files, func(a, b file) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name)) })
	return f, nil
}

// name starts with the end of the window, so that files sort by time, and contains its source.
func (f *Folder) name(l *report.Line) string {
	end := time.Unix(0, l.Window.End+f.opts.Clock.UnixOffsetNS).UTC().Format("20060102T150405.000000000Z")
	where := strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == ',' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, filepath.Base(l.Key()))
	return fmt.Sprintf("%s-%s-%.64s%s", end, l.Algorithm, where, Suffix)
}

// Write stores a window's snapshot atomically, after removing the oldest ones if needed.
func (f *Folder) Write(l *report.Line) error {
	size := int64(len(l.Snapshot))
	if size > f.opts.Limit {
		return fmt.Errorf("a snapshot of %s has %d bytes, the limit is %d", l.Algorithm, size, f.opts.Limit)
	}
	if err := f.makeSpace(size); err != nil {
		return err
	}
	name := f.name(l)
	path := filepath.Join(f.Dir, name)
	if err := os.WriteFile(path+".tmp", l.Snapshot, 0o600); err != nil {
		return errors.Join(err, os.Remove(path+".tmp"))
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	f.files = slices.DeleteFunc(f.files, func(old file) bool { // of a capture that is replayed again
		if old.name == name {
			f.bytes -= old.size
		}
		return old.name == name
	})
	f.files = append(f.files, file{name: name, size: size})
	f.bytes += size
	return nil
}

func (f *Folder) makeSpace(size int64) error {
	for f.bytes+size > f.opts.Limit && len(f.files) > 0 {
		if !f.notified && f.opts.Full != nil {
			f.notified = true
			f.opts.Full()
		}
		oldest := f.files[0]
		if err := os.Remove(filepath.Join(f.Dir, oldest.name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		f.files, f.bytes = f.files[1:], f.bytes-oldest.size
	}
	return nil
}
