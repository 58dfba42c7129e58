package main

import (
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/lab/faults"
)

// scenarios are what is run: the first with all of the plan, the others with the first error of each call.
var scenarios = []struct {
	title string
	faults.Scenario
}{
	{"As usual", faults.Scenario{Args: faults.Arguments}},
	{"XDP and a chain of three", faults.Scenario{Args: faults.Generic}},
	{"Pinned", faults.Scenario{Args: faults.Arguments, Pinned: true}},
}

// plan is which calls fail with which errors: those that a busy, small or guarded machine gives.
var plan = []struct {
	call   faults.Call
	errnos []unix.Errno
}{
	{faults.Call{Name: "bpf", Number: unix.SYS_BPF}, []unix.Errno{unix.ENOMEM, unix.EPERM, unix.EMFILE}},
	{faults.Call{Name: "socket", Number: unix.SYS_SOCKET}, []unix.Errno{unix.EMFILE, unix.ENOBUFS}},
	{faults.Call{Name: "bind", Number: unix.SYS_BIND}, []unix.Errno{unix.ENOMEM}},
	{faults.Call{Name: "sendto", Number: unix.SYS_SENDTO}, []unix.Errno{unix.ENOBUFS}},
	{faults.Call{Name: "recvfrom", Number: unix.SYS_RECVFROM}, []unix.Errno{unix.ENOBUFS}},
	{faults.Call{Name: "getsockname", Number: unix.SYS_GETSOCKNAME}, []unix.Errno{unix.ENOBUFS}},
	{faults.Call{Name: "setsockopt", Number: unix.SYS_SETSOCKOPT}, []unix.Errno{unix.ENOMEM}},
	{faults.Call{Name: "listen", Number: unix.SYS_LISTEN}, []unix.Errno{unix.EADDRINUSE}},
	{faults.Call{Name: "openat", Number: unix.SYS_OPENAT}, []unix.Errno{unix.EMFILE}},
	{faults.Call{Name: "epoll_ctl", Number: unix.SYS_EPOLL_CTL}, []unix.Errno{unix.ENOSPC}},
	{faults.Call{Name: "capset", Number: unix.SYS_CAPSET}, []unix.Errno{unix.EPERM}},
	{faults.Call{Name: "capget", Number: unix.SYS_CAPGET}, []unix.Errno{unix.EPERM}},
	{faults.Call{Name: "prctl", Number: unix.SYS_PRCTL}, []unix.Errno{unix.EPERM}},
	{faults.Call{Name: "mmap", Number: unix.SYS_MMAP, Files: 5}, []unix.Errno{unix.ENOMEM, unix.EPERM}},
	{faults.Call{Name: "ioctl", Number: unix.SYS_IOCTL}, []unix.Errno{unix.EPERM}},
	{faults.Call{Name: "fcntl", Number: unix.SYS_FCNTL}, []unix.Errno{unix.EMFILE}},
	{faults.Call{Name: "prlimit64", Number: unix.SYS_PRLIMIT64}, []unix.Errno{unix.EPERM}},
}
