package pin

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/namespace"
)

// ErrDiffers is wrapped when the pinned instance does not have the requested configuration.
var ErrDiffers = errors.New("the pinned instance differs")

// pinFormat is the version of pinMeta; another one is refused.
const pinFormat = 1

// pinMeta describes a pin. It is stored in a map next to the objects, because a BPF file system has no regular files.
type pinMeta struct {
	Format     int               `json:"format"`
	PID        int               `json:"pid"`   // the process that wrote it
	NetNS      uint64            `json:"netns"` // inode of the network namespace that the interfaces are in
	Seed       uint64            `json:"seed"`
	CRC        bool              `json:"crc"`
	Decap      bool              `json:"decap"`
	Chain      map[string]string `json:"chain,omitempty"` // layout of the maps that all programs share
	Algorithms []pinAlgorithm    `json:"algorithms"`
	Interfaces []pinnedInterface `json:"interfaces"`
}

// pinAlgorithm holds everything that the meaning of an algorithm's registers depends on.
type pinAlgorithm struct {
	Name      string            `json:"name"`
	Maps      map[string]string `json:"maps"`      // shape by name
	Constants map[string]string `json:"constants"` // value in hexadecimal by name
}

type pinnedInterface struct {
	Name   string        `json:"name"`
	Index  int           `json:"index"`
	Points []pinnedPoint `json:"points"`
}

type pinnedPoint struct {
	Direction attach.Direction `json:"direction"`
	Hook      attach.Hook      `json:"hook"`
	Via       string           `json:"via"`
	Mode      attach.Mode      `json:"mode,omitempty"`
}

// describeObjects reads the properties of configured objects that must be equal for an adoption.
func describeObjects(objects []loader.Object, opts loader.Options) pinMeta {
	meta := pinMeta{Format: pinFormat, PID: os.Getpid(), NetNS: namespace.Inode(), Seed: opts.Seed, CRC: opts.CRC, Decap: opts.Decap, Chain: chainLayout()}
	for _, o := range objects {
		meta.Algorithms = append(meta.Algorithms, pinAlgorithm{o.Name, shapesOf(o.Spec), constantsOf(o.Spec)})
	}
	return meta
}

func shapesOf(spec *ebpf.CollectionSpec) map[string]string {
	shapes := map[string]string{}
	for name, m := range spec.Maps {
		if !strings.HasPrefix(name, ".") { // sections: constants are compared one by one
			shapes[name] = fmt.Sprintf("%s of %d entries of %d bytes, key %d bytes", m.Type, m.MaxEntries, m.ValueSize, m.KeySize)
			if fields := layoutOf(m.Value); fields != "" { // two builds may have elements of equal size with other fields
				shapes[name] += ": " + fields
			}
		}
	}
	return shapes
}

// seedConstants are set by Load from the options, which are compared separately.
var seedConstants = []string{"hash_seed", "hash_keys", "hash_crc", "coin_seeded"}

func constantsOf(spec *ebpf.CollectionSpec) map[string]string {
	constants := map[string]string{}
	for name, v := range spec.Variables {
		if v.Constant() && !slices.Contains(seedConstants, name) {
			constants[name] = hex.EncodeToString(v.Value)
		}
	}
	return constants
}

// differences lists, as text, the reasons against adopting a pin.
func (m pinMeta) differences(want pinMeta) []string {
	var diffs []string
	add := func(what string, pinned, asked any) {
		if pinned != asked {
			diffs = append(diffs, fmt.Sprintf("%s: %v pinned, %v requested", what, pinned, asked))
		}
	}
	add("format", m.Format, want.Format)
	add("network namespace", m.NetNS, want.NetNS)
	add("algorithms", m.names(), want.names())
	add("seed", m.Seed, want.Seed)
	add("CRC hashes", m.CRC, want.CRC)
	add("decapsulation", m.Decap, want.Decap)
	if len(diffs) > 0 {
		return diffs
	}
	for i, a := range m.Algorithms {
		diffs = append(diffs, compareText(a.Name+" map", a.Maps, want.Algorithms[i].Maps)...)
		diffs = append(diffs, compareText(a.Name+" constant", a.Constants, want.Algorithms[i].Constants)...)
	}
	return diffs
}

func (m pinMeta) names() string {
	names := make([]string, len(m.Algorithms))
	for i, a := range m.Algorithms {
		names[i] = a.Name
	}
	return strings.Join(names, ",")
}

func compareText(what string, pinned, asked map[string]string) []string {
	var diffs []string
	all := maps.Clone(pinned)
	maps.Copy(all, asked)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p, a := pinned[name], asked[name]
		if p != a {
			diffs = append(diffs, fmt.Sprintf("%s %s: %s pinned, %s requested", what, name, orNone(p), orNone(a)))
		}
	}
	return diffs
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Elements of the description's map.
const (
	textAt  = uint32(iota) // JSON
	sinceAt                // eight bytes: since when the registers and counts have been written, see Pin.Since
	elements
)

// store writes the description into a map and pins that.
func (m pinMeta) store(path string, since int64) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	size := (len(text) + 8) / 8 * 8 // at least one zero after the text
	holder, err := ebpf.NewMap(&ebpf.MapSpec{Name: "xdpmon_meta", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(size), MaxEntries: elements})
	if err != nil {
		return fmt.Errorf("create the description of the pin: %w", err)
	}
	defer holder.Close()
	if err := errors.Join(holder.Put(textAt, append(text, make([]byte, size-len(text))...)), putSince(holder, since)); err != nil {
		return fmt.Errorf("write the description of the pin: %w", err)
	}
	return holder.Pin(path)
}

func putSince(holder *ebpf.Map, since int64) error {
	value := make([]byte, holder.ValueSize())
	binary.NativeEndian.PutUint64(value, uint64(since))
	return holder.Put(sinceAt, value)
}

// Began records when the window began whose records and counts the registers have from now on.
func (p *Pin) Began(at int64) error {
	p.since = at
	holder, err := ebpf.LoadPinnedMap(p.path(metaPin), nil)
	if errors.Is(err, os.ErrNotExist) { // Commit writes it
		return nil
	}
	if err == nil {
		err = errors.Join(putSince(holder, at), holder.Close())
	}
	if err != nil {
		return fmt.Errorf("write the description of the pin: %w", err)
	}
	return nil
}

// Since is when the earlier run began its last window that it did not read, by the kernel's monotonic clock: what was counted since then is in the
// registers. 0: there was none, or one of a version that did not record it.
func (p *Pin) Since() int64 { return p.since }

// loadSince reads it; a map of an earlier version has no element for it.
func loadSince(path string) (int64, error) {
	holder, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return 0, fmt.Errorf("read the description of the pin: %w", err)
	}
	defer holder.Close()
	if holder.MaxEntries() < elements {
		return 0, nil
	}
	value := make([]byte, holder.ValueSize())
	if err := holder.Lookup(sinceAt, value); err != nil {
		return 0, fmt.Errorf("read the description of the pin: %w", err)
	}
	return int64(binary.NativeEndian.Uint64(value)), nil
}

func loadMeta(path string) (pinMeta, error) {
	var meta pinMeta
	holder, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return meta, fmt.Errorf("read the description of the pin: %w", err)
	}
	defer holder.Close()
	text := make([]byte, holder.ValueSize())
	if err := holder.Lookup(textAt, text); err != nil {
		return meta, fmt.Errorf("read the description of the pin: %w", err)
	}
	if err := json.Unmarshal(bytes.TrimRight(text, "\x00"), &meta); err != nil {
		return meta, fmt.Errorf("read the description of the pin: %w", err)
	}
	return meta, nil
}
