package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/xdpmon/xdpmon/lab/eval"
)

// document is docs/eval/ahab-matrix.md: a row a cell.
type document struct {
	rows            []string
	missed, counted int
}

const introduction = `# Ceilings with real TCP: cells that are drawn

%d of %d rows meet all bars. Flows of the kernel's own TCP (DCTCP is lab/queue/dctcp) share one slice of the rate, each a user; below a millisecond of round trip two namespaces with a veth between them, else a link emulator.
*Use* is what the receiving host's IP layer counted of the rate, *most* the highest of it in any second (or the shortest time longer than one between two of ten readings a second) from the first packet on, *off* the mean deviation of users' means
from an equal share. *Marked* (ECN) and *dropped* are segments. *Open* counts segments that passed above the limit because the control loop had been late, on a busy machine: no ceiling holds then. A row of a *policer* has a plain token bucket of the same rate and burst in the place of xdpmon, where packets arrive, to see how much of what is missed is TCP's.

Bars: in every second at most %.2f of the rate and one burst (ahab.burst: %.1f s of it); in the mean at most %.2f and what a burst adds to a run as short; use at least %.2f (%.2f below a millisecond); off at most %.0f %%. Of users who send datagrams alone %.2f of what they send or of the rate, of
guests none more than %.0f %% off.

| row | use | most | off | marked | dropped | open | misses |
|:---|---:|---:|---:|---:|---:|---:|:---|
`

func (d *document) add(c cell, r result) {
	misses := c.misses(r)
	if d.counted++; len(misses) > 0 {
		d.missed++
	}
	shares := ""
	if len(c.Guests) > 1 && len(c.Guests) < 5 {
		shares = fmt.Sprintf("; Mbit/s %.1f", r.shares)
	}
	d.rows = append(d.rows, fmt.Sprintf("| %v%s | %.2f | %.2f | %.1f %% | %.0f | %.0f | %.0f | %s |\n", c, shares, r.use, r.most, 100*r.off, r.marked, r.dropped, r.open, strings.Join(misses, ", ")))
}

func (d *document) write(path string) error {
	text := fmt.Sprintf(introduction, d.counted-d.missed, d.counted, mostSecond, burst, mostMean, leastUse, leastNear, 100*mostOff, leastUDP, 100*mostGuest) + strings.Join(d.rows, "")
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	command := fmt.Sprintf("make ahab-matrix; lab/run ahab/matrix -seed %d -first %d -cells %d -seconds %d", *seed, *first, *cells, *seconds)
	text += fmt.Sprintf("\n*%s; load %s at the end.*\n", eval.Provenance(context.Background(), command), strings.Fields(string(load))[0])
	return os.WriteFile(path, []byte(text), 0o644)
}
