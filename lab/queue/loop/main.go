// Command loop closes ConQuest's loop: real TCP through an HTB class of 100 Mb/s, web flows beside bulk flows, with marks on culprits alone or on everybody. `make
// conquest-loop` writes docs/eval/conquest-loop.md.
package main

import (
	"flag"
	"fmt"
	"log"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xdpmon/xdpmon/lab/queue/dctcp"
)

var (
	binary       = flag.String("xdpmon", "bin/xdpmon", "the binary")
	pairs        = flag.Int("pairs", 80, "pairs of each setting")
	first        = flag.Int("first", 0, "number of the first pair")
	seconds      = flag.Duration("seconds", 4*time.Second, "that are measured of a run; those before are not counted")
	congestions  = flag.String("congestion", everything, "congestion controls")
	beside       = flag.Int("beside", 2, "congestion controls that are measured at a time")
	hold         = flag.Duration("hold", 2*time.Millisecond, "conquest.hold")
	interval     = flag.Duration("interval", 524*time.Microsecond, "conquest.interval, of 16 snapshots")
	weight       = flag.Int("weight", 1500, "conquest.weight of culprits, bytes; 0: conquest.alpha decides")
	chance       = flag.String("chance", "linear", "conquest.chance of culprits")
	alpha        = flag.String("alpha", "1/4", "conquest.alpha")
	taus         = flag.String("tau", "1ms,2ms", "thresholds of the sweep for culprits; empty: none")
	everyoneTaus = flag.String("tau-everyone", "3ms,4ms,6ms", "... for everyone")
	without      = flag.Bool("none", true, "in one pair of four, measure with nothing marked, too")
	journal      = flag.String("journal", "out/conquest-loop.jsonl", "results are stored here, one a line: what is there is not measured again")
	render       = flag.Bool("render", false, "measure nothing: write the document from what the journal has")
	out          = flag.String("out", "", "write the document here, and figures beside it")
)

const everything = "cubic,reno,bbr,dctcp"

// command is how this was started, for the document.
func command() string {
	if *congestions == everything {
		return "make conquest-loop"
	}
	return "lab/run queue/loop -congestion " + *congestions
}

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("loop: ")
	flag.Parse()
	if err := all(); err != nil {
		log.Fatal(err)
	}
}

func all() error {
	kept, err := openJournal(*journal)
	if err != nil {
		return err
	}
	defer kept.Close()
	if *render {
		return document(kept.results)
	}
	var group errgroup.Group
	group.SetLimit(*beside)
	for _, congestion := range strings.Split(*congestions, ",") {
		group.Go(func() error { return sweep(kept, congestion) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return document(kept.results)
}

// sweep measures what is not in the journal yet. The settings of a pair are measured one after the other: a machine that slows down meanwhile does so for all.
func sweep(kept *kept, congestion string) error {
	name := congestion
	if congestion == "dctcp" {
		end, err := dctcp.Register()
		if dctcp.Missing(err) {
			log.Printf("SKIPPED dctcp: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
		defer end()
		name = dctcp.Name
	}
	for pair := *first; pair < *first+*pairs; pair++ {
		for _, s := range settings(name, pair) {
			if err := fill(kept, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// attempts at a setting: a machine that stood still spoils what was measured, and a busy one may not attach in time.
const attempts = 3

// fill measures a setting unless the journal has it.
func fill(kept *kept, s setting) error {
	for attempt := kept.spoiled(s); attempt < attempts; attempt++ {
		if kept.has(s) {
			return nil
		}
		r, err := s.measure(*seconds)
		if err != nil {
			log.Printf("%s, pair %d: again after %v", s, s.Pair, err)
			continue
		}
		log.Printf("%s, pair %d: %s", s, s.Pair, r)
		if err := kept.add(s, r); err != nil {
			return err
		}
	}
	if kept.spoiled(s) > 0 || kept.has(s) {
		return nil
	}
	return fmt.Errorf("%s, pair %d: not measured in %d attempts", s, s.Pair, attempts)
}

// settings of a pair: each policy has a sweep of its own, so that the goodputs of both overlap.
func settings(congestion string, pair int) (list []setting) {
	common := setting{Congestion: congestion, Alpha: *alpha, Hold: *hold, Interval: *interval, Chance: "threshold", Pair: pair}
	culprits, everyone := thresholds(*taus), thresholds(*everyoneTaus)
	for n := range max(len(culprits), len(everyone)) {
		if n < len(culprits) {
			s := common
			s.Whom, s.Tau, s.Weight, s.Chance = "culprits", culprits[n], *weight, *chance
			list = append(list, s)
		}
		if n < len(everyone) {
			s := common
			s.Whom, s.Tau = "everyone", everyone[n]
			list = append(list, s)
		}
	}
	if pair%4 == 0 && *without {
		list = append(list, setting{Congestion: congestion, Pair: pair})
	}
	return list
}

func thresholds(text string) (list []time.Duration) {
	for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		tau, err := time.ParseDuration(one)
		if err != nil {
			log.Fatal(err)
		}
		list = append(list, tau)
	}
	return list
}
