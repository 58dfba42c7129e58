package attach

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Holders are the processes that hold programs and links open, by id.
type Holders struct {
	programs map[ebpf.ProgramID][]int
	links    map[link.ID][]int
}

// ScanHolders reads the file descriptors of all processes that this one may inspect. Processes that end
// meanwhile, or belong to another user, are skipped: the result informs the operator and decides nothing.
func ScanHolders() Holders {
	h := Holders{map[ebpf.ProgramID][]int{}, map[link.ID][]int{}}
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		if pid, err := strconv.Atoi(p.Name()); err == nil {
			h.scanProcess(pid)
		}
	}
	return h
}

func (h Holders) scanProcess(pid int) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, _ := os.ReadDir(dir)
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join(dir, fd.Name()))
		if err != nil || !isBPFFile(target) {
			continue
		}
		h.scanFD(pid, fd.Name())
	}
}

func isBPFFile(target string) bool {
	return strings.HasSuffix(target, "bpf-prog") || strings.HasSuffix(target, "bpf_link") || strings.HasSuffix(target, "bpf-link]")
}

func (h Holders) scanFD(pid int, fd string) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, fd))
	if err != nil {
		return
	}
	defer f.Close()
	isLink := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
		switch {
		case err != nil:
		case key == "link_id":
			isLink = true
			h.links[link.ID(id)] = appendPID(h.links[link.ID(id)], pid)
		case key == "prog_id" && !isLink:
			h.programs[ebpf.ProgramID(id)] = appendPID(h.programs[ebpf.ProgramID(id)], pid)
		}
	}
}

func appendPID(pids []int, pid int) []int {
	if slices.Contains(pids, pid) {
		return pids
	}
	return append(pids, pid)
}

// Of returns the processes that hold a link, or a program that is attached without one.
func (h Holders) Of(prog ebpf.ProgramID, id link.ID) []int {
	if id != 0 {
		return h.links[id]
	}
	return h.programs[prog]
}

// DescribePIDs names processes: "pid 812 (xdpmon)".
func DescribePIDs(pids []int) string {
	names := make([]string, len(pids))
	for i, pid := range pids {
		names[i] = fmt.Sprintf("pid %d", pid)
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil {
			names[i] += " (" + strings.TrimSpace(string(comm)) + ")"
		}
	}
	return strings.Join(names, ", ")
}

// bootTime is CLOCK_BOOTTIME, the clock of a program's load time.
func bootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// ourMaps are the maps that every program of the chain uses; together they distinguish xdpmon's programs from others
// of the same name.
var ourMaps = []string{"chain_control", "phv_scratch"}

// IsOurs reports whether a program is an entry program or an algorithm of xdpmon.
func IsOurs(info *ebpf.ProgramInfo) bool {
	ids, ok := info.MapIDs()
	if !ok {
		return false
	}
	missing := len(ourMaps)
	for _, id := range ids {
		if slices.Contains(ourMaps, MapName(id)) {
			missing--
		}
	}
	return missing <= 0
}

func MapName(id ebpf.MapID) string {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return ""
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		return ""
	}
	return info.Name
}
