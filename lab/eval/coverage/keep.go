package coverage

import (
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/xdpmon/xdpmon/tests/outcome"
)

// piece is what the configurations of a cell reported with some seeds.
type piece struct {
	Configs  []int
	Outcomes [][]outcome.Outcome
}

// kept are the pieces of an interrupted study, a file each, so that its next run continues. What another build reported is not taken.
type kept struct {
	dir   string // "": none are stored
	build func() ([]byte, error)
}

func keep(dir string) kept { return kept{dir, sync.OnceValues(ownBuild)} }

// ownBuild is a hash of this program, and so of every program in it.
func ownBuild() ([]byte, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read own program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, fmt.Errorf("read own program: %w", err)
	}
	return h.Sum(nil), nil
}

// path of n seeds of a cell.
func (k kept) path(c Cell, first uint64, n int) (string, error) {
	build, err := k.build()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%x %d %d %v %s %v", build, first, n, c.Window, c.Name, c.Configs)
	return filepath.Join(k.dir, fmt.Sprintf("%x", h.Sum(nil)[:12])), nil
}

// run takes what was stored, else what the cell reports now.
func (k kept) run(c Cell, first uint64, n int, emit func(config int, list []outcome.Outcome), run func(emit func(int, []outcome.Outcome)) error) error {
	if k.dir == "" {
		return run(emit)
	}
	path, err := k.path(c, first, n)
	if err != nil {
		return err
	}
	p, err := readPiece(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = run(func(config int, list []outcome.Outcome) {
			p.Configs, p.Outcomes = append(p.Configs, config), append(p.Outcomes, list)
		})
		if err == nil {
			err = p.write(path)
		}
	}
	if err != nil {
		return err
	}
	for i, config := range p.Configs {
		emit(config, p.Outcomes[i])
	}
	return nil
}

func readPiece(path string) (p piece, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, fmt.Errorf("read piece: %w", err)
	}
	defer f.Close()
	if err := gob.NewDecoder(f).Decode(&p); err != nil {
		return p, fmt.Errorf("read piece %s: %w", path, err)
	}
	return p, nil
}

// write is whole or not at all.
func (p piece) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make folder for pieces: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new")
	if err != nil {
		return fmt.Errorf("keep piece: %w", err)
	}
	defer os.Remove(f.Name()) // absent when it was renamed
	err = errors.Join(gob.NewEncoder(f).Encode(p), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("keep piece: %w", err)
	}
	return nil
}
