package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// process is read from /proc.
type process struct{ pid int }

// usage of a process.
type usage struct {
	cpu            time.Duration
	resident, peak int // MB
	descriptors    int
}

func (u usage) String() string {
	return fmt.Sprintf("%d MB resident, %d at most, %d descriptors", u.resident, u.peak, u.descriptors)
}

// tick is the unit of times in /proc: USER_HZ is 100 everywhere.
const tick = 10 * time.Millisecond

func (p process) usage() (u usage, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return u, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for _, n := range []int{11, 12} { // user and system
		t, err := strconv.Atoi(fields[n])
		if err != nil {
			return u, err
		}
		u.cpu += time.Duration(t) * tick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "VmRSS":
			u.resident = kilobytes / 1024
		case "VmHWM":
			u.peak = kilobytes / 1024
		}
	}
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
	u.descriptors = len(list)
	return u, err
}
