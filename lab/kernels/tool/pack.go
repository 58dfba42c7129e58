package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// pack writes a folder as the archive that the kernel unpacks at start: cpio in the "newc" format, not compressed, so
// that every kernel can read it.
func pack(dir, path string) error {
	return writeFile(path, func(w io.Writer) error { return writeArchive(w, dir) })
}

func writeArchive(w io.Writer, dir string) error {
	number := uint32(0)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		number++
		return writeEntry(w, path, name, number)
	})
	if err != nil {
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	return writeHeader(w, header{name: "TRAILER!!!"})
}

// Types of a file in the upper bits of its mode.
const (
	modeDir     = 0o040000
	modeRegular = 0o100000
)

func writeEntry(w io.Writer, path, name string, number uint32) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return writeHeader(w, header{name: name, number: number, mode: modeDir | 0o755})
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	mode := modeRegular | uint32(info.Mode().Perm())
	if err := writeHeader(w, header{name: name, number: number, mode: mode, size: uint32(len(content))}); err != nil {
		return err
	}
	return padded(w, content, 0)
}

// header is what differs between entries; everything belongs to root and is of 1970.
type header struct {
	name               string
	number, mode, size uint32
}

// writeHeader writes 110 bytes of hexadecimal digits and the name with its final zero, filled up to four bytes.
func writeHeader(w io.Writer, h header) error {
	const fixed, links = 110, 1
	head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", h.number, h.mode, 0, 0, links, 0, h.size,
		0, 0, 0, 0, len(h.name)+1, 0)
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	return padded(w, append([]byte(h.name), 0), fixed)
}

// padded writes b and zeros until the length, with what was before, is a multiple of four.
func padded(w io.Writer, b []byte, before int) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	_, err := w.Write(make([]byte, -(before+len(b))&3))
	return err
}
