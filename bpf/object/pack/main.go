// Command pack compresses the object that bpf2go has made in this folder, and lets its Go file embed the compressed one. .ci/bpf2go calls it.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/xdpmon/xdpmon/bpf/object"
)

func main() {
	log.SetFlags(0)
	if err := pack(); err != nil {
		log.Fatalf("pack object: %v", err)
	}
}

func pack() error {
	found, err := filepath.Glob("*_bpfel.o")
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d objects in this folder, want 1: %v", len(found), err)
	}
	plain, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	defer e.Close()
	if err := os.WriteFile(found[0]+object.Suffix, e.EncodeAll(plain, nil), 0o644); err != nil {
		return err
	}
	if err := embed(found[0]); err != nil {
		return err
	}
	return os.Remove(found[0])
}

// embed rewrites what bpf2go has written: three places, each once.
func embed(name string) error {
	path := name[:len(name)-len(".o")] + ".go"
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, change := range [][2]string{
		{"\t\"bytes\"\n", ""},
		{"\t\"github.com/cilium/ebpf\"\n", "\t\"github.com/cilium/ebpf\"\n\n\t\"github.com/xdpmon/xdpmon/bpf/object\"\n"},
		{"\treader := bytes.NewReader(", "\tspec, err := object.Load("},
		{"\tspec, err := ebpf.LoadCollectionSpecFromReader(reader)\n", ""},
		{"//go:embed " + name + "\n", "//go:embed " + name + object.Suffix + "\n"},
	} {
		if n := bytes.Count(text, []byte(change[0])); n != 1 {
			return fmt.Errorf("%s has %q %d times, want once: bpf2go writes otherwise than this program knows", path, change[0], n)
		}
		text = bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
	}
	return os.WriteFile(path, text, 0o644)
}
