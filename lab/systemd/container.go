package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// inTree are the packages of the tree beside Debian's essential ones: what a small server has, and rpm.
const inTree = "systemd,systemd-sysv,dbus,iproute2,procps,logrotate,curl,kmod,rpm"

// fresh makes the tree of a Debian 12 by mmdebstrap, where there is none yet.
func fresh(ctx context.Context, archive string) error {
	if _, err := os.Stat(archive); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return err
	}
	partial := archive + ".partial.tar"
	cmd := exec.CommandContext(ctx, "mmdebstrap", "--variant=minbase", "--include="+inTree, "bookworm", partial)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return errors.Join(fmt.Errorf("make the tree of a Debian 12 (apt-get install mmdebstrap systemd-container): %w", err), os.Remove(partial))
	}
	return os.Rename(partial, archive)
}

// container is a Debian 12 whose init is systemd, in a network namespace of its own.
type container struct {
	root   string // of its files
	leader int    // its init
	nspawn *exec.Cmd
	done   chan error
	log    bytes.Buffer
}

// boot unpacks the archive into dir, and starts what is in it.
func boot(ctx context.Context, archive, dir string) (*container, error) {
	c := &container{root: filepath.Join(dir, "root"), done: make(chan error, 1)}
	if err := os.Mkdir(c.root, 0o755); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "tar", "-C", c.root, "--numeric-owner", "-xf", archive).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("unpack %s: %w: %s", archive, err, out)
	}
	// What a virtual machine of its own would have: BPF, and control of its own network.
	c.nspawn = exec.Command("systemd-nspawn", "--quiet", "--directory="+c.root, "--machine=xdpmon-"+strconv.Itoa(os.Getpid()), "--boot", "--register=no", "--keep-unit", "--console=pipe",
		"--private-network", "--capability=CAP_BPF,CAP_PERFMON,CAP_NET_ADMIN,CAP_SYS_RESOURCE", "--system-call-filter=bpf perf_event_open", "--resolv-conf=off", "--timezone=off", "--link-journal=no")
	c.nspawn.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	c.nspawn.Stdout, c.nspawn.Stderr = &c.log, &c.log
	if err := c.nspawn.Start(); err != nil {
		return nil, fmt.Errorf("start the container (apt-get install systemd-container): %w", err)
	}
	go func() { c.done <- c.nspawn.Wait() }()
	if err := c.ready(ctx); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// ready waits until its init has started everything.
func (c *container) ready(ctx context.Context) error {
	pid := c.nspawn.Process.Pid
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		select {
		case err := <-c.done:
			c.done <- err
			return fmt.Errorf("the container ended: %w: %s", err, c.log.String())
		default:
		}
		if child := childOf(pid); child != 0 {
			c.leader = child
			if state, _ := c.run(ctx, "systemctl is-system-running"); strings.HasPrefix(state, "running") || strings.HasPrefix(state, "degraded") {
				return nil
			}
		}
	}
	return fmt.Errorf("the container has not booted within two minutes: %s", c.log.String())
}

// childOf is the first process whose parent is this one; 0 where there is none. (Not every kernel has /proc/PID/task/PID/children.)
func childOf(parent int) int {
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // ended meanwhile
		}
		var state string
		var ppid int
		_, rest, _ := strings.Cut(string(text), ") ") // a name may have blanks
		if _, err := fmt.Sscan(rest, &state, &ppid); err == nil && ppid == parent {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			return pid
		}
	}
	return 0
}

// stop powers it off; what does not end is killed.
func (c *container) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if c.leader != 0 {
		_, _ = c.run(ctx, "systemctl poweroff")
	}
	select {
	case <-c.done:
	case <-time.After(30 * time.Second):
		_ = c.nspawn.Process.Signal(unix.SIGTERM)
		select {
		case <-c.done:
		case <-time.After(5 * time.Second):
			_ = c.nspawn.Process.Kill()
			<-c.done
		}
	}
}

// run gives a line to a shell inside, as root; what it prints is the answer, without the last line's end.
func (c *container) run(ctx context.Context, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", "--target="+strconv.Itoa(c.leader), "--mount", "--net", "--pid", "--root", "--wd", "--", "/bin/sh", "-c", line)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "HOME=/root", "TERM=dumb"}
	out, err := cmd.CombinedOutput()
	text := strings.TrimRight(string(out), "\n")
	if err != nil {
		return text, fmt.Errorf("%s: %w: %s", line, err, text)
	}
	return text, nil
}

// until repeats a line until it succeeds and its answer is accepted.
func (c *container) until(ctx context.Context, d time.Duration, line string, accept func(string) bool) (took time.Duration, out string, err error) {
	began := time.Now()
	for {
		out, err = c.run(ctx, line)
		if err == nil && accept(out) {
			return time.Since(began), out, nil
		}
		if time.Since(began) > d {
			return 0, out, fmt.Errorf("%s: not what was waited for within %v: %w %s", line, d, err, out)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// write puts a file into the tree.
func (c *container) write(path, text string, mode os.FileMode) error {
	full := filepath.Join(c.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	return os.WriteFile(full, []byte(text), mode)
}
