// Package slices reads a file of slices: a tree of who shares a link with whom, and how. What belongs to a slice, and what a packet's user
// weighs, becomes rules of a prefix table.
package slices

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// What a user is.
const (
	Flow        = "5tuple"
	Source      = "source"
	Destination = "destination"
)

// Bounds.
const (
	MaxSlices  = 16_383 // leaves: a power of two with the one that is nobody's
	maxWeight  = 1000
	maxDepth   = 16
	maxFile    = 16 << 20
	unlimited  = 0
	maxRate    = 1e12 / 8 // bytes a second
	moreSlices = 64       // that may be added while it runs, unless the file states how many there may be
)

// File is a checked file.
type File struct {
	Capacity float64 // of the link, bytes a second; 0: no slice is limited but by its ceiling
	Room     int     // slices that there may be while it runs
	Slices   []Slice
}

// Slice is a node of the tree.
type Slice struct {
	Name     string
	Weight   float64
	Floor    float64 // bytes a second
	Ceiling  float64 // 0: none
	Match    Match
	User     string
	Prefix4  int // bits of an address that distinguish users
	Prefix6  int
	Users    []User
	Children []Slice

	line, column int
}

// Match states what belongs to a slice: everything of its parent that fits one of each list that is given.
type Match struct {
	Interfaces   []string // names or patterns
	Each         bool     // a slice for every interface
	VLANs        []uint64
	Marks        []uint64
	Sources      []netip.Prefix
	Destinations []netip.Prefix
}

// User is a weight of users whose address lies in a prefix.
type User struct {
	Prefix netip.Prefix
	Weight uint64
}

// Stat looks at a file that can be read more than once: a pipe has nothing the second time, and a device may have no end.
func Stat(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read slices: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read slices %s: it is no regular file: it is read again when it changes", path)
	}
	return info, nil
}

// Load reads and checks a file. An error of its content is a *config.Error.
func Load(path string) (*File, error) {
	info, err := Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("read slices %s: %d bytes are too many: at most %d", path, info.Size(), maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read slices: %w", err)
	}
	return Parse(path, text)
}

// leaves are the slices that packets belong to; those made for interfaces count as one.
func leaves(list []Slice) (n int) {
	for i := range list {
		if s := &list[i]; len(s.Children) > 0 {
			n += leaves(s.Children)
		} else {
			n++
		}
	}
	return n
}

// Watches reports whether it matters to the file which interfaces there are.
func (f *File) Watches() bool { return watches(f.Slices) }

func watches(list []Slice) bool {
	for i := range list {
		if len(list[i].Match.Interfaces) > 0 || watches(list[i].Children) {
			return true
		}
	}
	return false
}

// ParseRate reads bits a second with a unit of thousands, 100Mbit or 2.5Gbit, as bytes a second.
func ParseRate(text string) (float64, error) {
	number, factor := strings.TrimSuffix(text, "bit"), 1.
	for i, unit := range []string{"k", "M", "G", "T"} {
		if rest, ok := strings.CutSuffix(number, unit); ok {
			number = rest
			for range i + 1 {
				factor *= 1000
			}
			break
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !strings.HasSuffix(text, "bit") {
		return 0, fmt.Errorf("%q is no rate like 100Mbit or 2.5Gbit: a number and kbit, Mbit, Gbit or Tbit, of bits a second", text)
	}
	if v = v * factor / 8; !(v >= 1000) || v > maxRate {
		return 0, fmt.Errorf("%q: allowed are 8kbit to 1Tbit", text)
	}
	return v, nil
}
