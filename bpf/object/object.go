// Package object reads compiled programs in the form in which binaries embed them: compressed, since eBPF objects with line information shrink to a
// tenth.
package object

import (
	"bytes"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/klauspost/compress/zstd"
)

// Suffix of a compressed object's file.
const Suffix = ".zst"

// most is far above the largest object (1.1 MB), and bounds the memory for a damaged file.
const most = 64 << 20

// Load reads an embedded object, compressed or plain.
func Load(data []byte) (*ebpf.CollectionSpec, error) {
	if bytes.HasPrefix(data, []byte("\x7fELF")) {
		return ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data))
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(most))
	if err != nil {
		return nil, fmt.Errorf("decompress object: %w", err)
	}
	defer d.Close()
	plain, err := d.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("decompress object: %w", err)
	}
	return ebpf.LoadCollectionSpecFromReader(bytes.NewReader(plain))
}
