// Command page measures what the page and `xdpmon top` cost an agent that watches 20 interfaces: how soon a browser shows something with a week in the store, how
// far windows move and how much memory is taken with many browsers and terminals open, and what nobody's looking at it costs. docs/page.md has the figures.
//
//	lab/run page -xdpmon bin/xdpmon
//
// It runs in a network namespace of its own, which ends with it, and needs root and Chromium.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

var (
	program = flag.String("xdpmon", "bin/xdpmon", "the program")
	parts   = flag.String("parts", "week,load,rest", "what is measured")
	past    = flag.Duration("past", 7*24*time.Hour, "of the store in part week")
	folder  = flag.String("dir", "", "folder for the store, which stays; empty: a temporary one")
	tabs    = flag.Int("tabs", 12, "browser windows of part load: a small machine holds no more beside what it measures")
	readers = flag.Int("readers", 38, "clients of part load that follow the stream and ask what the page asks")
	tops    = flag.Int("tops", 10, "full screens of part load")
	window  = flag.Duration("window", 5*time.Second, "of the agent in part load")
	profile = flag.String("profile", "", "file for a profile of the page's scripts (.cpuprofile) while a week is loaded, the last of five; its questions are logged")
	took    = flag.Duration("for", 40*time.Second, "each stretch of parts load and rest")
)

// inside marks the process that is in the namespace.
const inside = "XDPMON_PAGE_INSIDE"

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("page: ")
	flag.Parse()
	if os.Getenv(inside) == "" {
		os.Exit(enter())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// enter runs this program again in a network namespace of its own.
func enter() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Run(); err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

// row is a line of the table.
type row struct{ what, bar, figure string }

func run(ctx context.Context) (err error) {
	r := &rig{dir: *folder, bin: *program}
	if r.bin, err = filepath.Abs(r.bin); err != nil {
		return err
	}
	if r.dir == "" {
		if r.dir, err = os.MkdirTemp("", "xdpmon-page"); err != nil {
			return err
		}
		defer os.RemoveAll(r.dir)
	} else if err := os.MkdirAll(r.dir, 0o750); err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	defer r.end()
	var rows []row
	for _, p := range []struct {
		name string
		run  func(context.Context) ([]row, error)
	}{{"week", r.week}, {"load", r.load}, {"rest", r.rest}} {
		if !slices.Contains(strings.Split(*parts, ","), p.name) {
			continue
		}
		log.Printf("part %s, load %s", p.name, loadAverage())
		more, err := p.run(ctx)
		if rows = append(rows, more...); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	fmt.Println("| what | bar | figure |\n|---|---|---|")
	for _, x := range rows {
		fmt.Printf("| %s | %s | %s |\n", x.what, x.bar, x.figure)
	}
	return nil
}

// loadAverage is of the last minute: a machine that others use measures them, too.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Split(string(text)+" ", " ")[0]
}
