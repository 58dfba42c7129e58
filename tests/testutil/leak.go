package testutil

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Main runs a package's tests and fails them when they leave open descriptors or goroutines:
//
//	func TestMain(m *testing.M) { testutil.Main(m) }
func Main(m *testing.M) {
	os.Exit(run(m, os.Stderr.WriteString))
}

func run(m interface{ Run() int }, print func(string) (int, error)) int {
	before := descriptors()
	running := len(goroutines())
	code := m.Run()
	if code != 0 {
		return code
	}
	if leak := leaked(before, running); leak != "" {
		_, _ = print("the tests leaked:\n" + leak)
		return 1
	}
	return 0
}

// leaked waits until everything has ended, at most two seconds, and describes what has not.
func leaked(before map[int]string, running int) string {
	var leak string
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		runtime.GC() // what a finalizer closes is no leak
		leak = leakedDescriptors(before) + leakedGoroutines(running)
		if leak == "" {
			return ""
		}
	}
	return leak
}

func leakedDescriptors(before map[int]string) string {
	var b strings.Builder
	for fd, target := range descriptors() {
		if before[fd] != target {
			fmt.Fprintf(&b, "descriptor %d: %s\n", fd, target)
		}
	}
	return b.String()
}

func leakedGoroutines(allowed int) string {
	stacks := goroutines()
	if len(stacks) <= allowed {
		return ""
	}
	return fmt.Sprintf("%d goroutines, %d at the start:\n%s\n", len(stacks), allowed, strings.Join(stacks, "\n\n"))
}

// goroutines returns the stack of each. The one that waits for signals never ends once it was needed.
func goroutines() []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var stacks []string
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if !strings.Contains(stack, "os/signal.signal_recv") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// descriptors lists what this process has open. The Go runtime's own poller stays open once it was needed.
func descriptors() map[int]string {
	open := map[int]string{}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return open
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || strings.Contains(target, "eventpoll") || strings.Contains(target, "eventfd") {
			continue
		}
		open[fd] = target
	}
	return open
}
