// Command guest is the first process of the virtual machine in which `make kernels` tries xdpmon on another kernel: it
// mounts what a system has, loads the modules that it was given, runs the checks with the xdpmon binary as an operator
// would, writes one line a check to the console, and powers off. On a real machine it refuses to start.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/lab/kernels/verdict"
)

// Where lab/kernels/run puts what the checks need.
const (
	binary   = "/xdpmon"
	capture  = "/trace.pcap"
	expected = "/expected" // NAME.jsonl: what a replay printed on the machine that made the initramfs
	modules  = "/modules"
)

func main() {
	// The kernel hands words of its command line that it does not know to its first process. Without that word this may be
	// a container, whose first process must not mount over what is there.
	if os.Getpid() != 1 || os.Getenv("xdpmon_guest") != "1" {
		fmt.Fprintln(os.Stderr, "guest: this is the first process of a virtual machine; `make kernels` starts it")
		os.Exit(2)
	}
	if err := prepare(); err != nil {
		say(verdict.Line{Name: "boot", Detail: err.Error()})
		powerOff()
	}
	say(verdict.Line{Name: verdict.Kernel, OK: true, Detail: release()})
	if os.Getenv("xdpmon_store") == "1" {
		say(verdict.Line{Name: "store", Detail: fmt.Sprint(keepStore())}) // it runs until the machine is switched off
		powerOff()
	}
	for _, c := range checks() {
		if wanted(c.name, os.Getenv("xdpmon_only")) {
			say(c.judge())
		}
	}
	say(verdict.Line{Name: verdict.End, OK: true})
	powerOff()
}

// wanted reports whether a name begins with one of several texts, with | between.
func wanted(name, only string) bool {
	for text := range strings.SplitSeq(only, "|") {
		if strings.HasPrefix(name, text) {
			return true
		}
	}
	return false
}

// check is one thing that must work; run returns what was seen.
type check struct {
	name string
	run  func() (string, error)
}

// judge runs a check, with the seconds it took: an emulated machine is slow, but not endlessly.
func (c check) judge() (line verdict.Line) {
	start := time.Now()
	line.Name = c.name
	defer func() {
		if problem := recover(); problem != nil {
			line.OK, line.Detail = false, fmt.Sprint("panic: ", problem)
		}
		line.Seconds = time.Since(start).Seconds()
	}()
	detail, err := c.run()
	if err != nil {
		line.Detail = err.Error()
		return line
	}
	line.OK, line.Detail = true, detail
	return line
}

// say writes a line to the console, whole.
func say(line verdict.Line) { fmt.Println(line) }

func release() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err.Error()
	}
	return unix.ByteSliceToString(name.Release[:])
}

// older reports whether this kernel is older than major.minor.
func older(major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(release(), "%d.%d", &a, &b); n != 2 {
		panic("read kernel release " + release())
	}
	return a < major || a == major && b < minor
}

func powerOff() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// shorten keeps the first lines of what a program complained about: the console is slow.
func shorten(text string) string {
	const most = 1500 // bytes
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}
