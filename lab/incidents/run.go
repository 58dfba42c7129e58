package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/demo/stage"
)

// timing of an incident.
type timing struct {
	window, calm, lasting time.Duration
}

// played is what became of an incident.
type played struct {
	incident incident
	seed     uint64
	staged   *staged
	world    *world
	facts    *facts
	capture  string // file
	missed   uint64 // packets that the emulators lost themselves
	late     time.Duration
}

func captureName(incident string, seed uint64) string {
	return fmt.Sprintf("%s-%d.pcap", incident, seed)
}

// warm is how long the usual traffic runs before anybody looks: connections that stay open are opened, neighbours are known.
const warm = 1500 * time.Millisecond

// watcher watches an incident to its end and calls started when it has begun to.
type watcher func(ctx context.Context, w *world, s *staged, started func()) error

// play stages an incident, with a capture of it in dir and, unless it is nil, watch beside it.
func play(ctx context.Context, in incident, seed uint64, t timing, dir string, watch watcher) (p *played, err error) {
	w := newWorld(seed, in.name)
	p = &played{incident: in, seed: seed, world: w, staged: in.draw(w), facts: &facts{}, capture: filepath.Join(dir, captureName(in.name, seed))}
	traffic, end := context.WithCancel(ctx)
	defer func() {
		end()
		err = errors.Join(err, w.close())
	}()
	if err := w.open(traffic); err != nil {
		return nil, err
	}
	if err := p.perform(ctx, traffic, t, watch); err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", in.name, seed, err)
	}
	p.missed, p.late = w.stage.Missed(), time.Duration(w.stage.Late())
	select {
	case err := <-w.errs:
		return nil, fmt.Errorf("%s, seed %d: %w", in.name, seed, err)
	default:
		return p, nil
	}
}

func (p *played) perform(ctx, traffic context.Context, t timing, watch watcher) (err error) {
	time.Sleep(warm)
	if watch == nil {
		watch = func(_ context.Context, _ *world, _ *staged, started func()) error {
			started()
			time.Sleep(t.calm + t.lasting)
			return nil
		}
	}
	begun, watched := make(chan struct{}), make(chan error, 1)
	go func() { watched <- watch(ctx, p.world, p.staged, sync.OnceFunc(func() { close(begun) })) }()
	select {
	case <-begun:
	case err := <-watched:
		return fmt.Errorf("xdpmon ended before the incident: %w", err)
	}
	end, err := record(p.world.stage.Device, p.capture)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	time.Sleep(t.calm)
	if p.facts.calm, _, err = readQueue(ctx, p.world.stage.Device); err != nil {
		return err
	}
	p.facts.onset = time.Now()
	p.staged.start(traffic)
	time.Sleep(t.lasting - t.window)
	if err := p.look(ctx); err != nil {
		return err
	}
	return <-watched
}

// look asks tc and ss while the incident goes on.
func (p *played) look(ctx context.Context) (err error) {
	if p.facts.after, p.facts.queue, err = readQueue(ctx, p.world.stage.Device); err != nil {
		return err
	}
	for _, side := range []struct {
		at *netns.Namespace
		to *string
	}{{p.world.stage.Clients, &p.facts.sockets}, {p.world.stage.Servers, &p.facts.served}} {
		out, err := side.at.Output(ctx, "ss", "-tinH")
		if err != nil {
			return err
		}
		*side.to = string(out)
	}
	return nil
}

// snap is what is kept of a packet: headers, and all of a DNS or NTP message.
const snap = "200"

// record captures what passes the interface, in a process of its own, until end is called.
func record(at *netns.Namespace, path string) (end func() error, err error) {
	cmd := exec.Command("dumpcap", "-q", "-P", "-i", stage.Out, "-s", snap, "-B", "32", "-a", "duration:600", "-w", path) // 600 s: it does not outlive a harness that is killed
	printed, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := at.Start(cmd); err != nil {
		return nil, fmt.Errorf("start dumpcap: %w", err)
	}
	lines := bufio.NewScanner(printed)
	var text strings.Builder
	for lines.Scan() {
		text.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "File:") {
			go func() {
				for lines.Scan() { // the rest, so that it does not block
				}
			}()
			return func() error { return errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()) }, nil
		}
	}
	return nil, fmt.Errorf("dumpcap: %w: %s", cmd.Wait(), text.String())
}
