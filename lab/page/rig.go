package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/userspace/api"
)

const (
	interfaces = 20
	perSecond  = 10 // connections on each
	address    = "127.0.0.1:9400"
	base       = "http://" + address
	tick       = 100 // of /proc/PID/stat, a second
)

// rig is 20 interfaces with traffic, and an agent that measures on them.
type rig struct {
	dir, bin string
	peers    *netns.Namespace
	end      func()
}

func iface(n int) string { return fmt.Sprintf("xdpmon-p%d", n) }

// begin makes the interfaces and their traffic.
func (r *rig) begin(ctx context.Context) (err error) {
	if r.peers, err = netns.NewNamespace("xdpmon-page"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	r.end = func() { cancel(); r.peers.Close() }
	run := func(format string, args ...any) {
		words := strings.Fields(fmt.Sprintf(format, args...))
		out, e := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w: %s", strings.Join(words, " "), e, out))
		}
	}
	run("ip link set lo up")
	for n := range interfaces {
		run("ip link add %s type veth peer name e%d", iface(n), n)
		run("ip addr add 10.99.%d.1/24 dev %s", n, iface(n))
		run("ip link set %s up", iface(n))
		run("ip link set e%d netns /proc/%d/fd/%d", n, os.Getpid(), r.peers.Fd())
		err = errors.Join(err, r.peers.Command("ip addr add 10.99.%d.2/24 dev e%d", n, n), r.peers.Command("ip link set e%d up", n))
	}
	if err != nil {
		return err
	}
	l, err := r.peers.Listen(ctx, "tcp", "0.0.0.0:80")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:errcheck // it ends with the listener
		_, _ = w.Write(make([]byte, 4000))
	}))
	for n := range interfaces {
		go traffic(ctx, n)
	}
	return nil
}

// traffic is connections over an interface.
func traffic(ctx context.Context, n int) {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	every := time.NewTicker(time.Second / perSecond)
	defer every.Stop()
	for ctx.Err() == nil {
		if answer, err := c.Get(fmt.Sprintf("http://10.99.%d.2/", n)); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		<-every.C
	}
}

// agent is one that runs.
type agent struct {
	cmd *exec.Cmd
	log bytes.Buffer
}

// start starts an agent; keys are more lines of its configuration.
func (r *rig) start(ctx context.Context, window time.Duration, keys ...string) (*agent, error) {
	path := filepath.Join(r.dir, "agent.yaml")
	text := strings.Join(append(keys, fmt.Sprintf("window: %v", window), "socket: "+filepath.Join(r.dir, "agent.sock"), "instances:",
		"  - {name: page, interfaces: [\"xdpmon-p*\"], each: true, algorithms: {fridge: {match: tcp-handshake}, lean: {}}}"), "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	a := &agent{cmd: exec.Command(r.bin, "agent", "--config", path)}
	a.cmd.Stdout, a.cmd.Stderr = &a.log, &a.log
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *agent) stop() error {
	if a == nil || a.cmd.ProcessState != nil {
		return nil
	}
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	if err := a.cmd.Wait(); err != nil {
		return fmt.Errorf("agent: %w: %s", err, a.log.Bytes())
	}
	return nil
}

// measured starts an agent and waits until it measures everything. The caller stops it.
func (r *rig) measured(ctx context.Context, window time.Duration, keys ...string) (a *agent, all api.Instances, err error) {
	if a, err = r.start(ctx, window, keys...); err != nil {
		return nil, all, err
	}
	if all, err = r.measuring(ctx); err != nil {
		return nil, all, errors.Join(fmt.Errorf("%w\n%s", err, a.log.Bytes()), a.stop())
	}
	return a, all, nil
}

// measuring waits until all interfaces have had a window of each algorithm, and asks the agent's socket, as there may be no listener.
func (r *rig) measuring(ctx context.Context) (all api.Instances, err error) {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(r.dir, "agent.sock"))
	}}}
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		all = api.Instances{}
		if err = askBy(&c, "http://agent"+api.Prefix+"/instances", &all); err != nil || len(all.Instances) < interfaces {
			continue
		}
		n := 0
		for _, i := range all.Instances {
			n += len(i.Algorithms)
		}
		if n == 2*interfaces {
			return all, nil
		}
	}
	return all, errors.Join(fmt.Errorf("%d of %d instances measure", len(all.Instances), interfaces), err, ctx.Err())
}

func ask(url string, to any) error { return askBy(http.DefaultClient, url, to) }

func askBy(c *http.Client, url string, to any) error {
	answer, err := c.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("%s: %s: %.200s", url, answer.Status, text)
	}
	return json.NewDecoder(answer.Body).Decode(to)
}

// busy is the time that a process has had of the processors.
func (a *agent) busy() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.cmd.Process.Pid))
	if err != nil {
		log.Print(err)
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / tick
}

// memory is what a process has of its own, in bytes.
func (a *agent) memory() (bytes int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	if err != nil {
		log.Print(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			bytes, _ = strconv.ParseInt(f[1], 10, 64)
			bytes <<= 10
		}
	}
	return bytes
}
