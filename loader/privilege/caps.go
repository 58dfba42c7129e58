// Package privilege reads and drops the privileges of this process: capabilities, locked memory, open files. It turns the kernel's refusals
// into errors that name the remedy.
package privilege

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrMissing is wrapped when this process lacks a capability; the text names it and the remedy.
var ErrMissing = errors.New("privilege missing")

// capability is a number of linux/capability.h.
type capability uint

// The capabilities that BPF needs.
const (
	CapNetAdmin capability = unix.CAP_NET_ADMIN
	CapSysAdmin capability = unix.CAP_SYS_ADMIN
	CapPerfmon  capability = unix.CAP_PERFMON
	CapBPF      capability = unix.CAP_BPF
)

func (c capability) String() string {
	switch c {
	case CapNetAdmin:
		return "CAP_NET_ADMIN"
	case CapSysAdmin:
		return "CAP_SYS_ADMIN"
	case CapPerfmon:
		return "CAP_PERFMON"
	case CapBPF:
		return "CAP_BPF"
	}
	return fmt.Sprintf("capability %d", uint(c))
}

// capSet is a set of capabilities, bit by number.
type capSet uint64

func setOf(caps ...capability) (s capSet) {
	for _, c := range caps {
		s |= 1 << c
	}
	return s
}

func (s capSet) has(c capability) bool { return s>>c&1 == 1 }

// allows reports whether s grants what c does: CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON, which were cut out of it.
func (s capSet) allows(c capability) bool {
	return s.has(c) || s.has(CapSysAdmin) && (c == CapBPF || c == CapPerfmon)
}

// Privilege is the part of AttachNeeds that this process has.
type Privilege struct {
	Held    []string `json:"held"`
	Missing []string `json:"missing,omitempty"`
}

// AttachNeeds are the capabilities for loading and attaching: CAP_BPF for maps and programs, CAP_NET_ADMIN for
// programs of the network types and their hooks, CAP_PERFMON for programs that the verifier does not slow down with
// barriers against speculation.
var AttachNeeds = []capability{CapBPF, CapPerfmon, CapNetAdmin}

func Current() Privilege {
	var p Privilege
	effective, _, err := readCaps()
	if err != nil {
		return p
	}
	for _, c := range []capability{CapBPF, CapPerfmon, CapNetAdmin, CapSysAdmin} {
		if effective.has(c) {
			p.Held = append(p.Held, c.String())
		}
	}
	for _, c := range AttachNeeds {
		if !effective.allows(c) {
			p.Missing = append(p.Missing, c.String())
		}
	}
	return p
}

func (p Privilege) Lacks(c capability) bool {
	return slices.Contains(p.Missing, c.String())
}

// Check returns an error wrapping ErrMissing that names the capabilities this process would need to
// attach and does not have.
func Check() error {
	p := Current()
	switch {
	case InUserNamespace():
		return fmt.Errorf("load programs: %w: %s", ErrMissing, Remedy(AttachNeeds))
	case len(p.Missing) == 0:
		return nil
	}
	return fmt.Errorf("load programs: %w: this process lacks %s; %s", ErrMissing, strings.Join(p.Missing, ", "), Remedy(AttachNeeds))
}

// Explain marks an error of the kernel as a missing privilege or as a lack of descriptors, where it is one.
func Explain(err error) error { return explainErrno(err, AttachNeeds) }

// ExplainLook is Explain for reading programs and links of other processes.
func ExplainLook(err error) error { return explainErrno(err, []capability{CapSysAdmin}) }

func explainErrno(err error, needs []capability) error {
	switch {
	case errors.Is(err, ErrMissing), errors.Is(err, ErrDescriptors):
		return err
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: %w; %s", ErrMissing, withoutHint{err}, Remedy(needs))
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%w: %w; %s", ErrDescriptors, err, DescriptorRemedy(0))
	}
	return err
}

// Remedy is the remedy when the kernel refuses an operation that needs capabilities. It names only those that are missing.
func Remedy(needs []capability) string {
	if InUserNamespace() {
		return "root of a user namespace is not root of the host, whose privileges BPF asks for: run it outside (sudo on the host), " +
			"or start the container without user namespaces"
	}
	effective, _, err := readCaps()
	if err == nil && !slices.ContainsFunc(needs, func(c capability) bool { return !effective.allows(c) }) {
		return fmt.Sprintf("this process has %s: a security policy forbids it (lockdown, SELinux, AppArmor, the seccomp filter of a "+
			"container); the kernel's log names it (dmesg)", listOf(needs))
	}
	return "run as root (sudo), or grant " + listOf(needs)
}

// listOf names capabilities: "CAP_A, CAP_B and CAP_C".
func listOf(caps []capability) string {
	names := make([]string, len(caps))
	for i, c := range caps {
		names[i] = c.String()
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// initialUserNS is the inode of the user namespace that the kernel starts with (linux/proc_ns.h).
const initialUserNS = 0xEFFFFFFD

// InUserNamespace reports whether the capabilities of this process count in a part of the host only.
func InUserNamespace() bool {
	var st unix.Stat_t
	return unix.Stat("/proc/self/ns/user", &st) == nil && st.Ino != initialUserNS
}

// withoutHint removes the library's guess about locked memory, which is wrong on every kernel that xdpmon
// runs on.
type withoutHint struct{ error }

func (e withoutHint) Unwrap() error { return e.error }

func (e withoutHint) Error() string {
	return strings.ReplaceAll(e.error.Error(), " (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", "")
}

// Keep lists what a process still does after it has attached.
type Keep struct {
	Reattach bool // attach again when an interface reappears
	Load     bool // load further programs (slots of the chain replaced while running)
}

// Drop drops, on all threads and permanently, every capability that is not needed any more, and returns
// the names of those that stay.
//
//   - CAP_BPF stays where map access by file descriptor needs it: kernels before 5.19 check it on every
//     bpf() call when kernel.unprivileged_bpf_disabled is set. It is tried, not inferred.
//   - Re-attaching loads an entry program with the new interface's constants: CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN.
//   - Closing needs nothing: links end with their file descriptors. A filter on a clsact qdisc, which has none,
//     needs CAP_NET_ADMIN to be removed, so an attachment that uses one must pass Reattach.
//
// Everything that needs more (a listener on a low port, entering a namespace, mounting bpffs) must precede this call.
func Drop(keep Keep) ([]string, error) {
	_, permitted, err := readCaps()
	if err != nil {
		return nil, fmt.Errorf("read capabilities: %w", err)
	}
	rest := remaining(permitted, keep, mapAccessNeedsBPF())
	if err := setNoNewPrivileges(); err != nil {
		return nil, fmt.Errorf("forbid new privileges: %w", err)
	}
	if err := writeCaps(rest); err != nil {
		return nil, fmt.Errorf("drop capabilities: %w", err)
	}
	return rest.names(), nil
}

// remaining computes what stays of the permitted set.
func remaining(permitted capSet, keep Keep, mapAccess bool) capSet {
	var want []capability
	if mapAccess {
		want = append(want, CapBPF)
	}
	if keep.Load || keep.Reattach {
		want = append(want, AttachNeeds...)
	}
	var rest capSet
	for _, c := range want {
		switch {
		case permitted.has(c):
			rest |= setOf(c)
		case permitted.allows(c):
			rest |= setOf(CapSysAdmin)
		}
	}
	return rest
}

func (s capSet) names() []string {
	var names []string
	for c := range capability(64) {
		if s.has(c) {
			names = append(names, c.String())
		}
	}
	slices.Sort(names)
	return names
}

func readCaps() (effective, permitted capSet, err error) {
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, 0, err
	}
	effective = capSet(data[0].Effective) | capSet(data[1].Effective)<<32
	permitted = capSet(data[0].Permitted) | capSet(data[1].Permitted)<<32
	return effective, permitted, nil
}
