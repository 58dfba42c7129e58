// Command weight measures what an agent with six algorithms on each of many interfaces takes: attaching them, at rest, with traffic on all of them, and when they are
// gone. Interfaces are veth pairs in a namespace of its own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/agent"
)

var (
	program = flag.String("xdpmon", "bin/xdpmon", "the program")
	many    = flag.Int("interfaces", 200, "how many")
	appear  = flag.Bool("appear", false, "interfaces appear while the agent runs; else they are there before")
	settle  = flag.Duration("settle", 30*time.Second, "wait after attaching")
	rest    = flag.Duration("rest", 40*time.Second, "time without traffic")
	busy    = flag.Duration("busy", 60*time.Second, "time with traffic; 0s: none")
	rate    = flag.Int("rate", 100, "packets a second of each interface")
	patient = flag.Duration("patience", 3*time.Minute, "end if interfaces are not attached or released by then")
)

const name = "xdpmon-weight"

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("weight: ")
	flag.Parse()
	if err := measure(); err != nil {
		log.Fatal(err)
	}
}

func measure() (err error) {
	host, err := netns.NewNamespace(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// Without IPv6 an interface at rest has no traffic at all.
	quiet := func() error {
		return errors.Join(os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0), os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0))
	}
	if err := host.Run(quiet); err != nil {
		return err
	}
	if !*appear {
		if _, err := pairs(host, "add"); err != nil {
			return err
		}
	}
	a, err := start(host, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.stop()) }()
	return a.phases(host)
}

// pairs adds veth pairs or deletes them, and returns how long that took.
func pairs(host *netns.Namespace, verb string) (time.Duration, error) {
	var batch strings.Builder
	for n := range *many {
		if verb == "add" {
			fmt.Fprintf(&batch, "link add xdpmon-d%d type veth peer name xdpmon-e%d\nlink set xdpmon-d%d up\nlink set xdpmon-e%d up\n", n, n, n, n)
		} else {
			fmt.Fprintf(&batch, "link del xdpmon-d%d\n", n)
		}
	}
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(batch.String())
	began := time.Now()
	if err := host.Start(cmd); err != nil {
		return 0, err
	}
	err := cmd.Wait()
	return time.Since(began), err
}

// measured is the agent's process.
type measured struct {
	*process
	cmd    *exec.Cmd
	ended  chan error
	dir    string
	client *http.Client
	began  time.Time
}

const configuration = `socket: %[1]s/socket
store: {path: %[1]s/store/windows.db}
outputs: [{json: %[1]s/windows.jsonl}]
listen: 127.0.0.1:9435
` + agent.SixEach

func start(host *netns.Namespace, dir string) (*measured, error) {
	path := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, configuration, dir), 0o600); err != nil {
		return nil, err
	}
	printed, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer printed.Close()
	a := &measured{dir: dir, cmd: exec.Command(*program, "agent", "--config", path), began: time.Now()}
	a.cmd.Stdout, a.cmd.Stderr = printed, printed
	if err := host.Start(a.cmd); err != nil {
		return nil, err
	}
	a.process, a.ended = &process{a.cmd.Process.Pid}, make(chan error, 1)
	go func() { a.ended <- a.cmd.Wait() }()
	var d net.Dialer
	a.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", filepath.Join(dir, "socket"))
	}}}
	return a, nil
}

func (a *measured) stop() error {
	_ = a.cmd.Process.Signal(syscall.SIGTERM) // or it has ended
	if err := <-a.ended; err != nil {
		return fmt.Errorf("agent: %w: %s", err, a.log())
	}
	return nil
}

func (a *measured) log() []byte {
	text, _ := os.ReadFile(filepath.Join(a.dir, "log"))
	return text
}

// attached is how many interfaces are.
func (a *measured) attached() (n int, err error) {
	answer, err := a.client.Get("http://agent/healthz")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var health struct {
		Instances []struct {
			Interfaces []struct{ Attached bool }
		}
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 64<<20)).Decode(&health); err != nil {
		return 0, err
	}
	for _, i := range health.Instances {
		for _, at := range i.Interfaces {
			if at.Attached {
				n++
			}
		}
	}
	return n, nil
}

// await so many attached interfaces.
func (a *measured) await(want int) error {
	for end := time.Now().Add(*patient); ; {
		select {
		case err := <-a.ended:
			a.ended <- err
			return fmt.Errorf("the agent ended (%v)", err)
		case <-time.After(200 * time.Millisecond):
		}
		n, err := a.attached()
		if err == nil && n == want {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d interfaces are attached after %v (%v): %s", n, want, *patient, err, a.log())
		}
	}
}

func (a *measured) phases(host *netns.Namespace) error {
	began, before := a.began, usage{}
	if *appear {
		if err := a.await(0); err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		u, err := a.usage()
		if err != nil {
			return err
		}
		began, before = time.Now(), u
		took, err := pairs(host, "add")
		if err != nil {
			return err
		}
		fmt.Printf("%d interfaces appeared within %.1f s\n", *many, took.Seconds())
	}
	if err := a.await(*many); err != nil {
		return err
	}
	now, err := a.usage()
	if err != nil {
		return err
	}
	fmt.Printf("%d attached %.1f s after the first, %.2f s of CPU; %v; load %s\n", *many, time.Since(began).Seconds(), (now.cpu - before.cpu).Seconds(), now, load())
	time.Sleep(*settle)
	if err := a.during("at rest", *rest, nil); err != nil {
		return err
	}
	if *busy > 0 {
		if err := a.traffic(host); err != nil {
			return err
		}
	}
	if _, err := pairs(host, "del"); err != nil {
		return err
	}
	gone := time.Now()
	if err := a.await(0); err != nil {
		return err
	}
	detached := time.Since(gone)
	if now, err = a.still(); err != nil {
		return err
	}
	fmt.Printf("detached %.1f s after they were gone; %.1f s after that no descriptor was closed any more: %v; load %s\n", detached.Seconds(), (time.Since(gone) - detached - calm).Seconds(), now, load())
	return nil
}

// calm is how long the number of descriptors stays the same where nothing is released any more.
const calm = 5 * time.Second

// still waits for that.
func (a *measured) still() (now usage, err error) {
	for last, same := -1, time.Now(); time.Since(same) < calm; time.Sleep(200 * time.Millisecond) {
		if now, err = a.usage(); err != nil {
			return now, err
		}
		if now.descriptors != last {
			last, same = now.descriptors, time.Now()
		}
	}
	return now, nil
}

// during measures what a time takes, in which f runs.
func (a *measured) during(what string, span time.Duration, f func(end time.Time) error) error {
	before, err := a.usage()
	if err != nil {
		return err
	}
	began := time.Now()
	end := began.Add(span)
	if f != nil {
		if err := f(end); err != nil {
			return err
		}
	}
	time.Sleep(time.Until(end))
	now, err := a.usage()
	if err != nil {
		return err
	}
	fmt.Printf("%s, %.0f s: %.2f %% of a core; %v; load %s\n", what, time.Since(began).Seconds(), 100*float64(now.cpu-before.cpu)/float64(time.Since(began)), now, load())
	return nil
}

// traffic sends packets through all interfaces, and judges the windows that began and ended meanwhile.
func (a *measured) traffic(host *netns.Namespace) error {
	s, err := newSender(host, *many)
	if err != nil {
		return err
	}
	defer s.close()
	began := time.Now()
	what := fmt.Sprintf("%d packets a second each", *rate)
	if err := a.during(what, *busy, func(end time.Time) error { return s.send(*rate, end) }); err != nil {
		return err
	}
	ended := time.Now()
	time.Sleep(12 * time.Second) // the windows that began meanwhile are written
	text, err := os.ReadFile(filepath.Join(a.dir, "windows.jsonl"))
	if err != nil {
		return err
	}
	w, err := judge(text, began, ended)
	if err != nil {
		return err
	}
	fmt.Printf("%d packets sent, %d late by the sender's clock; %v\n", s.sent, s.late, w)
	return nil
}

// windows that were written of a time.
type windows struct {
	lines, late int
	longest     time.Duration
	packets     uint64 // of fridge's lines, whose interface is one of the agent's
	interfaces  int
}

func (w windows) String() string {
	return fmt.Sprintf("%d lines of windows of %d interfaces within that time, %d more than 5 %% longer than 10 s, the longest %.3f s; %d packets in them", w.lines, w.interfaces, w.late, w.longest.Seconds(), w.packets)
}

func judge(text []byte, from, to time.Time) (w windows, err error) {
	const length = 10 * time.Second
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var l struct {
			Algorithm, Interface string
			Window               *struct {
				StartTime time.Time `json:"start_time"`
				EndTime   time.Time `json:"end_time"`
			}
			Packets struct{ Seen uint64 }
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			return w, fmt.Errorf("read %q: %w", line, err)
		}
		if l.Window == nil || l.Window.StartTime.Before(from) || l.Window.EndTime.After(to) {
			continue
		}
		took := l.Window.EndTime.Sub(l.Window.StartTime)
		w.lines, w.longest = w.lines+1, max(w.longest, took)
		if took > length+length/20 {
			w.late++
		}
		if l.Algorithm == "fridge" {
			w.packets += l.Packets.Seen
			seen[l.Interface] = true
		}
	}
	w.interfaces = len(seen)
	return w, nil
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return slices.Concat(strings.Fields(string(text)), []string{"?"})[0]
}
