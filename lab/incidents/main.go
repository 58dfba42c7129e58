// Command incidents stages what goes wrong in networks, with real traffic in namespaces, and judges what `xdpmon check` finds, live and in a capture of the
// same: docs/eval/findings.md. `make incidents` plays all of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

var (
	seeds    = flag.Int("seeds", 5, "runs of each incident, each with what its seed draws")
	first    = flag.Uint64("first", 1, "the first seed")
	only     = flag.String("only", "", "regular expression: play only incidents with such names")
	dry      = flag.Bool("dry", false, "play without xdpmon, and let tshark, tc and ss show whether the incident is in the traffic")
	dir      = flag.String("dir", "", "keep captures here; they are removed otherwise")
	window   = flag.Duration("window", 2*time.Second, "length of a window")
	calm     = flag.Duration("calm", 15*time.Second, "usual traffic before the incident")
	lasting  = flag.Duration("lasting", 9*time.Second, "of the incident")
	program  = flag.String("xdpmon", "bin/xdpmon", "the program to judge")
	out      = flag.String("out", "", "write the document here")
	workers  = flag.Int("workers", 2, "incidents that are played at the same time, each in a network of its own")
	reads    = flag.Int("captures", 5, "seeds of each incident whose capture xdpmon reads, too")
	kept     = flag.Bool("again", false, "play nothing: let xdpmon read the captures in -dir again")
	punctual = flag.Duration("punctual", 250*time.Millisecond, "a run whose emulators sent a packet so much too late was not what was staged: it is not judged")
	misses   = flag.String("misses", "", "append what was staged and found to this file where the findings were not right")
)

// mostMemory is what this process has before its garbage is collected, bytes.
const mostMemory = 3 << 30

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("incidents: ")
	flag.Parse()
	// The collector stops the emulators' threads, and has no real-time priority as they have to let them go on.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(mostMemory)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// remove is what becomes of a capture that was judged: kept, where -dir is given.
var remove = func(string) error { return nil }

// temporary: captures are not kept.
var temporary bool

// chosen are the incidents of -only, and a folder for captures with what removes it.
func chosen() (list []incident, done func(), err error) {
	choose, err := regexp.Compile(*only)
	if err != nil {
		return nil, nil, err
	}
	for _, in := range incidents {
		if choose.MatchString(in.name) {
			list = append(list, in)
		}
	}
	if *dir != "" {
		return list, func() {}, os.MkdirAll(*dir, 0o755)
	}
	*dir, err = os.MkdirTemp("", "xdpmon-incidents-")
	remove, temporary = os.Remove, true
	return list, func() { os.RemoveAll(*dir) }, err
}

func run(ctx context.Context) error {
	list, done, err := chosen()
	if err != nil {
		return err
	}
	defer done()
	c := &campaign{list: list, rows: make([]tally, len(list)), timing: timing{*window, *calm, *lasting}}
	if err := c.play(ctx); err != nil || *dry {
		return err
	}
	command := fmt.Sprintf("lab/run incidents -seeds %d -first %d -only '%s'", *seeds, *first, *only)
	return write(*out, command, c)
}

// campaign is all runs, a few at the same time.
type campaign struct {
	list   []incident
	timing timing

	mu   sync.Mutex
	rows []tally // of the list
}

// play plays all seeds of the first incident, then those of the next; it goes on after an incident that is not in the traffic, and ends at an error.
func (c *campaign) play(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan int)
	var all sync.WaitGroup
	for range max(1, *workers) {
		all.Go(func() {
			for n := range next {
				if err := c.one(ctx, n / *seeds, *first+uint64(n%*seeds)); err != nil {
					stop(err)
				}
			}
		})
	}
	for n := 0; n < len(c.list)**seeds && ctx.Err() == nil; n++ {
		select {
		case next <- n:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}

// one plays an incident with one seed.
func (c *campaign) one(ctx context.Context, k int, seed uint64) error {
	if *dry {
		return rehearse(ctx, c.list[k], seed)
	}
	var t tally
	judge := t.judge
	if *kept {
		judge = t.again
	}
	err := judge(ctx, c.list[k], seed, c.timing)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows[k].add(t)
	return err
}

// judge plays an incident with xdpmon beside it, and lets xdpmon read the capture of it.
func (r *tally) judge(ctx context.Context, in incident, seed uint64, t timing) error {
	var live answer
	p, err := play(ctx, in, seed, t, *dir, checkLive(*program, t, &live))
	if err != nil {
		return err
	}
	r.runs++
	r.printed = p.staged.expects()
	err = p.prove(ctx)
	if err := p.keep(err); err != nil {
		return err
	}
	if err != nil {
		r.absent++
		log.Printf("not judged: %v", err)
		return nil
	}
	j := judgeLive(p.staged, &live, p.facts.onset, t.window)
	r.live(j)
	log.Printf("%s, seed %d: %d of %d within two windows, %d wrong, of them %d windows that were late by our clock, too; emulators late by %v", in.name, seed, j.inTime, j.expected, len(j.wrong), j.shown,
		p.late.Round(time.Millisecond))
	if err := p.report(*misses, "live", j, &live); err != nil || seed-*first >= uint64(*reads) {
		return errors.Join(err, remove(p.capture))
	}
	read, err := checkCapture(ctx, *program, p.capture, t, p.staged)
	if err != nil {
		return fmt.Errorf("%s, seed %d: %w", in.name, seed, err)
	}
	j = judgeCapture(p.staged, p.facts, &read)
	r.capture(j)
	return errors.Join(p.report(*misses, "capture", j, &read), remove(p.capture))
}

// expects names the kinds.
func (s *staged) expects() string {
	var kinds []string
	for _, w := range s.expect {
		kinds = append(kinds, w.kind)
	}
	if kinds == nil {
		return "nothing"
	}
	return strings.Join(kinds, ", ")
}

// rehearse plays an incident without xdpmon and proves that it is in the traffic.
func rehearse(ctx context.Context, in incident, seed uint64) error {
	p, err := play(ctx, in, seed, timing{*window, *calm, *lasting}, *dir, nil)
	if err != nil {
		return err
	}
	err = p.prove(ctx)
	if err := errors.Join(p.keep(err), remove(p.capture)); err != nil {
		return err
	}
	log.Printf("%s, seed %d: %s: %d packets, emulators late by %v, lost %d: %v", in.name, seed, p.staged.what, len(p.facts.rows), p.late, p.missed, verdict(err))
	return nil
}

func verdict(err error) string {
	if err != nil {
		return "NOT IN THE TRAFFIC: " + err.Error()
	}
	return "in the traffic"
}

// prove asks tshark.
func (p *played) prove(ctx context.Context) (err error) {
	if p.facts.rows, err = dissect(ctx, p.capture); err != nil {
		return err
	}
	if p.staged.proof == nil {
		return nil
	}
	if err := p.staged.proof(p.facts); err != nil {
		return fmt.Errorf("%s, seed %d: %w", p.incident.name, p.seed, err)
	}
	return nil
}

// incidents are all that are staged.
var incidents = []incident{
	{"network-slow-clients", slowNear},
	{"network-slow-servers", slowFar},
	{"server-slow", slowToAnswer},
	{"server-slow-accept", slowToAccept},
	{"receiver-window", slowReader},
	{"receiver-acks", lateAcks},
	{"loss-before", lossBefore},
	{"loss-own-queue", lossHere},
	{"loss-after", lossAfter},
	{"reordering", reordered},
	{"unfair-user", unfair},
	{"full-link", full},
	{"standing-queue", standing},
	{"microburst", microburst},
	{"port-scan", portScan},
	{"super-spreader", spreader},
	{"syn-flood", synFlood},
	{"many-sources", manySources},
	{"dns-slow", dnsSlow},
	{"dns-silent", dnsSilent},
	{"ntp-slow", ntpSlow},
	{"ntp-silent", ntpSilent},
	{"heavy-network", heavyNetwork},
	{"server-dead", deadServer},
	{"retransmissions", storm},
	{"one-direction", oneWay},
	{"tunnels", tunnels},
	{"table-too-small", tooSmall},
	{"promise-p99", promise("p99")},
	{"promise-p50", promise("p50")},
	{"windows-late", late},
	{"quiet", quiet},
	{"louder", louder},
	{"flood-hides-dns", together(synFlood, dnsSlow)},
	{"full-link-hides-loss", fullAndLossy},
	{"loss-hides-slow", together(lossAfter, slowNear)},
}
