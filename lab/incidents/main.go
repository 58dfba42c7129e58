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
	"time"
)

var (
	seeds   = flag.Int("seeds", 5, "runs of each incident, each with what its seed draws")
	first   = flag.Uint64("first", 1, "the first seed")
	only    = flag.String("only", "", "regular expression: play only incidents with such names")
	dry     = flag.Bool("dry", false, "play without xdpmon, and let tshark, tc and ss say whether the incident is in the traffic")
	dir     = flag.String("dir", "", "keep captures here; they are removed otherwise")
	window  = flag.Duration("window", 2*time.Second, "length of a window")
	calm    = flag.Duration("calm", 15*time.Second, "usual traffic before the incident")
	lasting = flag.Duration("lasting", 9*time.Second, "of the incident")
)

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("incidents: ")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	choose, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if *dir == "" {
		if *dir, err = os.MkdirTemp("", "xdpmon-incidents-"); err != nil {
			return err
		}
		defer os.RemoveAll(*dir)
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	var failed error
	for _, in := range incidents {
		for n := 0; n < *seeds && choose.MatchString(in.name); n++ {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			failed = errors.Join(failed, rehearse(ctx, in, *first+uint64(n)))
		}
	}
	return failed
}

// rehearse plays an incident without xdpmon and proves that it is in the traffic.
func rehearse(ctx context.Context, in incident, seed uint64) error {
	p, err := play(ctx, in, seed, timing{*window, *calm, *lasting}, *dir, nil)
	if err != nil {
		return err
	}
	err = p.prove(ctx)
	log.Printf("%s, seed %d: %s: %d packets, emulators late by %v, lost %d: %v", in.name, seed, p.staged.what, len(p.facts.rows), p.late, p.missed, verdict(err))
	return err
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
	{"promise", promise},
	{"windows-late", late},
	{"quiet", quiet},
	{"louder", louder},
	{"flood-hides-dns", together(synFlood, dnsSlow)},
	{"full-link-hides-loss", together(full, lossBefore)},
	{"loss-hides-slow", together(lossAfter, slowNear)},
}
