package attach

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
)

// Below Linux 6.6 TC has no links. A filter on the clsact qdisc does the same work, but it exists until it is removed
// explicitly: it outlives a killed process. Its name therefore holds its owner, so that the next run can distinguish a
// leftover from a filter in use.

const (
	// filterPriority is where the search for a free priority starts: after priorities that are usually chosen by hand, and
	// before those that the kernel chooses (0xc000 downwards from the first filter).
	filterPriority = 0xb000
	filterMark     = "xdpmon"
)

// FilterHold is a filter of xdpmon, with its qdisc where xdpmon added that.
type FilterHold struct {
	ifindex   int
	Direction Direction
	Filter    *netlink.BpfFilter
}

func clsactOf(ifindex int) *netlink.Clsact {
	return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: ifindex, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}
}

func parentOf(dir Direction) uint32 {
	if dir == Egress {
		return netlink.HANDLE_MIN_EGRESS
	}
	return netlink.HANDLE_MIN_INGRESS
}

func newFilter(ifindex int, dir Direction, prog *ebpf.Program, priority uint16) *netlink.BpfFilter {
	return &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: ifindex, Parent: parentOf(dir), Handle: 1, Priority: priority, Protocol: unix.ETH_P_ALL,
		},
		Fd: prog.FD(), Name: filterMark, DirectAction: true,
	}
}

// addFilter adds our filter after all others, and the qdisc if the interface has none.
func addFilter(ifindex int, dir Direction, prog *ebpf.Program) (Hold, error) {
	added, err := ensureClsact(ifindex)
	if err != nil {
		return nil, err
	}
	priority, err := freePriority(ifindex, dir)
	if err != nil {
		return nil, errors.Join(err, dropClsact(ifindex, added))
	}
	f := newFilter(ifindex, dir, prog, priority)
	f.Name = newOwner(added || ownsClsact(ifindex)).String()
	if err := netlink.FilterAdd(f); err != nil {
		err = fmt.Errorf("add a filter to the clsact qdisc: %w", privilege.Explain(err))
		return nil, errors.Join(err, dropClsact(ifindex, added))
	}
	return &FilterHold{ifindex, dir, f}, nil
}

// ensureClsact adds the qdisc if there is none, and reports whether it did.
func ensureClsact(ifindex int) (added bool, err error) {
	err = netlink.QdiscAdd(clsactOf(ifindex))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EEXIST):
		return false, nil
	case errors.Is(err, unix.ENOENT):
		return false, fmt.Errorf("add the clsact qdisc: %w: %w; load the kernel modules sch_ingress and cls_bpf", kernel.ErrUnsupported, err)
	}
	return false, fmt.Errorf("add the clsact qdisc: %w", privilege.Explain(err))
}

// dropClsact removes a qdisc that we added, unless other filters use it by now.
func dropClsact(ifindex int, added bool) error {
	if !added {
		return nil
	}
	for _, dir := range []Direction{Ingress, Egress} {
		if filters, err := filtersOf(ifindex, dir); err != nil || len(filters) > 0 {
			return ignoreAbsent(err)
		}
	}
	return ignoreAbsent(netlink.QdiscDel(clsactOf(ifindex)))
}

// ignoreAbsent drops the error that the object to remove does not exist.
func ignoreAbsent(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

func filtersOf(ifindex int, dir Direction) ([]netlink.Filter, error) {
	return netlink.FilterList(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: ifindex}}, parentOf(dir))
}

// freePriority returns a priority after all others: filters run in the order of their priorities.
func freePriority(ifindex int, dir Direction) (uint16, error) {
	filters, err := filtersOf(ifindex, dir)
	if err != nil {
		return 0, fmt.Errorf("list filters: %w", err)
	}
	next := uint32(filterPriority)
	for _, f := range filters {
		next = max(next, uint32(f.Attrs().Priority)+1)
	}
	if next > 0xffff {
		return 0, fmt.Errorf("find a priority after the other filters: %w: priority 65535 is taken", ErrBusy)
	}
	return uint16(next), nil
}

// Replace replaces the program of the filter in place.
func (h *FilterHold) Replace(prog *ebpf.Program) error {
	f := *h.Filter
	f.Fd = prog.FD()
	return netlink.FilterReplace(&f)
}

func (h *FilterHold) Release() error {
	if err := ignoreAbsent(netlink.FilterDel(h.Filter)); err != nil {
		return fmt.Errorf("remove the filter: %w", err)
	}
	owner, _ := ParseOwner(h.Filter.Name)
	return dropClsact(h.ifindex, owner.qdisc)
}

func (h *FilterHold) Leave() error { return nil }

// Keep renames the filter: otherwise the next run would treat it as a leftover.
func (h *FilterHold) Keep(_, name string, prog *ebpf.Program) error {
	owner, _ := ParseOwner(h.Filter.Name)
	owner.Pin = name
	h.Filter.Name = owner.String()
	return h.Replace(prog)
}

func (h *FilterHold) Alive() bool {
	filters, err := filtersOf(h.ifindex, h.Direction)
	if err != nil {
		return false
	}
	for _, f := range filters {
		if f.Attrs().Priority == h.Filter.Priority && isOurFilter(f) {
			return true
		}
	}
	return false
}

// Owner is the process that added a filter, as the filter's name records it. Process ids are reused and are valid
// in one pid namespace only, so start time and namespace are recorded with them.
type Owner struct {
	pid   int
	start string // clock ticks since boot
	pidns string
	qdisc bool   // we added the clsact qdisc
	Pin   string // stays attached on purpose under this name
}

func (o Owner) String() string {
	return fmt.Sprintf("%s pid=%d start=%s pidns=%s qdisc=%t pin=%s", filterMark, o.pid, o.start, o.pidns, o.qdisc, o.Pin)
}

func newOwner(qdisc bool) Owner {
	return Owner{pid: os.Getpid(), start: startTime("self"), pidns: pidNamespace(), qdisc: qdisc}
}

// ownsClsact reports whether one of our filters records that we added the qdisc; the last of them to be removed removes it.
func ownsClsact(ifindex int) bool {
	for _, h := range append(OurFilters(ifindex, Ingress), OurFilters(ifindex, Egress)...) {
		if owner, _ := ParseOwner(h.Filter.Name); owner.qdisc {
			return true
		}
	}
	return false
}

func ParseOwner(name string) (o Owner, ours bool) {
	rest, ours := strings.CutPrefix(name, filterMark+" ")
	if !ours {
		return o, false
	}
	for field := range strings.FieldsSeq(rest) {
		key, value, _ := strings.Cut(field, "=")
		o.set(key, value)
	}
	return o, true
}

func (o *Owner) set(key, value string) {
	switch key {
	case "pid":
		o.pid, _ = strconv.Atoi(value)
	case "start":
		o.start = value
	case "pidns":
		o.pidns = value
	case "qdisc":
		o.qdisc = value == "true"
	case "pin":
		o.Pin = value
	}
}

// Dead reports whether the owner is known to have ended without removing its filter.
func (o Owner) Dead() bool {
	return o.Pin == "" && o.pidns == pidNamespace() && startTime(strconv.Itoa(o.pid)) != o.start
}

func isOurFilter(f netlink.Filter) bool {
	b, ok := f.(*netlink.BpfFilter)
	if !ok {
		return false
	}
	_, ours := ParseOwner(b.Name)
	return ours
}

// startTime is field 22 of /proc/PID/stat; empty when there is no such process.
func startTime(pid string) string {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

func pidNamespace() string {
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(ns, "pid:["), "]")
}

// clearStale removes filters that a killed run left on an interface.
func clearStale(ifindex int, notify func(string, ...any)) {
	for _, dir := range []Direction{Ingress, Egress} {
		for _, h := range OurFilters(ifindex, dir) {
			owner, _ := ParseOwner(h.Filter.Name)
			if !owner.Dead() {
				continue
			}
			notify("removing a filter that a killed xdpmon (pid %d) left at TC %s", owner.pid, dir)
			if err := h.Release(); err != nil {
				notify("removing the filter failed: %v", err)
			}
		}
	}
}

func OurFilters(ifindex int, dir Direction) []*FilterHold {
	filters, err := filtersOf(ifindex, dir)
	if err != nil {
		return nil
	}
	var found []*FilterHold
	for _, f := range filters {
		if isOurFilter(f) {
			found = append(found, &FilterHold{ifindex, dir, f.(*netlink.BpfFilter)})
		}
	}
	return found
}

// TryClsact adds a filter to an unused interface of the caller and leaves it there.
func TryClsact(ifindex int) error {
	prog, err := ebpf.NewProgram(kernel.Returning(ebpf.SchedCLS, -1))
	if err != nil {
		return err
	}
	defer prog.Close()
	if err := netlink.QdiscAdd(clsactOf(ifindex)); err != nil {
		return notThere(err)
	}
	return notThere(netlink.FilterAdd(newFilter(ifindex, Ingress, prog, filterPriority)))
}

// notThere translates the kernel's error for a qdisc or classifier that is not built in and has no module.
func notThere(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return ebpf.ErrNotSupported
	}
	return err
}
