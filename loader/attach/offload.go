package attach

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offloads are the features of a device that are switched on, by the kernel's name ("rx-gro", "tx-tcp-segmentation").
type Offloads map[string]bool

// OffloadChange is a feature that attaching switched on or off.
type OffloadChange struct {
	Interface string `json:"interface"`
	Feature   string `json:"feature"`
	On        bool   `json:"on"` // after attaching
}

// summariseChanges makes one line of each interface and outcome: "eth0: switched off rx-lro, rx-gro-hw".
func summariseChanges(changes []OffloadChange) []string {
	var order []string
	features := map[string][]string{}
	for _, c := range changes {
		head := c.Interface + ": switched off"
		if c.On {
			head = c.Interface + ": switched on"
		}
		if features[head] == nil {
			order = append(order, head)
		}
		features[head] = append(features[head], c.Feature)
	}
	for i, head := range order {
		order[i] = head + " " + strings.Join(features[head], ", ")
	}
	return order
}

// OffloadsOf reads the features of a device in the network namespace of the calling thread.
func OffloadsOf(name string) (Offloads, error) {
	var names []string
	var on []bool
	err := withIfreq(name, func(fd int, _ *unix.Ifreq) (err error) {
		if names, err = featureNames(fd, name); err != nil {
			return err
		}
		on, err = featureBits(fd, name, len(names))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read offloads of %s: %w", name, err)
	}
	found := Offloads{}
	for i, n := range names {
		if n != "" {
			found[n] = on[i]
		}
	}
	return found, nil
}

// diff lists what changed from o to after, in the order of names.
func (o Offloads) diff(iface string, after Offloads) []OffloadChange {
	var changes []OffloadChange
	for name, on := range after {
		if before, known := o[name]; known && before != on {
			changes = append(changes, OffloadChange{iface, name, on})
		}
	}
	slices.SortFunc(changes, func(a, b OffloadChange) int { return strings.Compare(a.Feature, b.Feature) })
	return changes
}

// mergesInHardware reports whether the device itself merges packets. A device that cannot be queried counts as one that does
// not.
func mergesInHardware(name string) bool {
	o, err := OffloadsOf(name)
	return err == nil && (o["rx-gro-hw"] || o["rx-lro"])
}

// ethtool commands and layout: include/uapi/linux/ethtool.h.
const (
	ethtoolGStrings  = 0x1b
	ethtoolGSSetInfo = 0x37
	ethtoolGFeatures = 0x3a
	ethSSFeatures    = 4
	ethGStringLen    = 32
)

// ethtoolCall runs SIOCETHTOOL with a buffer that starts with the command.
func ethtoolCall(fd int, name string, buf []byte) error {
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(req.name[:unix.IFNAMSIZ-1], name)
	req.data = unsafe.Pointer(&buf[0])
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	if errno != 0 {
		return errno
	}
	return nil
}

// words views a buffer of ethtool as native 32-bit words.
func words(buf []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(&buf[0])), len(buf)/4)
}

// featureCount reads the number of features that the kernel names.
func featureCount(fd int, name string) (int, error) {
	buf := make([]byte, 24) // cmd, reserved, sset_mask (64 bits), data[1], padding
	w := words(buf)
	w[0], w[2] = ethtoolGSSetInfo, 1<<ethSSFeatures
	if err := ethtoolCall(fd, name, buf); err != nil {
		return 0, err
	}
	return int(w[4]), nil
}

func featureNames(fd int, name string) ([]string, error) {
	n, err := featureCount(fd, name)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 12+n*ethGStringLen)
	w := words(buf[:12])
	w[0], w[1], w[2] = ethtoolGStrings, ethSSFeatures, uint32(n)
	if err := ethtoolCall(fd, name, buf); err != nil {
		return nil, err
	}
	names := make([]string, n)
	for i := range names {
		raw := buf[12+i*ethGStringLen:][:ethGStringLen]
		names[i] = unix.ByteSliceToString(raw)
	}
	return names, nil
}

// featureBits returns which of n features are active. The kernel answers in blocks of 32 features: available,
// requested, active, never changed.
func featureBits(fd int, name string, n int) ([]bool, error) {
	blocks := (n + 31) / 32
	buf := make([]byte, 8+16*blocks)
	w := words(buf)
	w[0], w[1] = ethtoolGFeatures, uint32(blocks)
	if err := ethtoolCall(fd, name, buf); err != nil {
		return nil, err
	}
	on := make([]bool, n)
	for i := range on {
		on[i] = w[2+4*(i/32)+2]>>(i%32)&1 == 1
	}
	return on, nil
}
