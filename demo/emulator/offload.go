package emulator

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolValue is struct ethtool_value.
type ethtoolValue struct {
	cmd, data uint32
}

// ifreqData is struct ifreq with a pointer in its union.
type ifreqData struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// singleSegments are the ethtool commands that switch off aggregation of packets, and checksums that are
// left to hardware which a veth does not have.
var singleSegments = []struct {
	cmd  uint32
	what string
}{
	{unix.ETHTOOL_STSO, "TCP segmentation offload"},
	{unix.ETHTOOL_SGSO, "generic segmentation offload"},
	{unix.ETHTOOL_SGRO, "generic receive offload"},
	{unix.ETHTOOL_STXCSUM, "transmit checksum offload"},
}

// SingleSegments makes an interface of the current namespace send and receive packet by packet with complete
// checksums. Features that the interface does not have are skipped.
func SingleSegments(iface string) error { return setFeatures(iface, 0) }

// Aggregates is the opposite, the usual state of a veth.
func Aggregates(iface string) error { return setFeatures(iface, 1) }

func setFeatures(iface string, on uint32) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket for ethtool: %w", err)
	}
	defer unix.Close(fd)
	for i := range singleSegments {
		feature := singleSegments[i]
		if on != 0 { // segmentation needs checksums first
			feature = singleSegments[len(singleSegments)-1-i]
		}
		err := ethtool(fd, iface, &ethtoolValue{cmd: feature.cmd, data: on})
		if err != nil && err != unix.EOPNOTSUPP {
			return fmt.Errorf("switch %s of %s: %w", feature.what, iface, err)
		}
	}
	return nil
}

func ethtool(fd int, iface string, value *ethtoolValue) error {
	req := ifreqData{data: unsafe.Pointer(value)}
	copy(req.name[:unix.IFNAMSIZ-1], iface)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	if errno != 0 {
		return errno
	}
	return nil
}
