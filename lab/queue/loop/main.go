// Command loop closes ConQuest's loop: real TCP through an HTB class of 100 Mb/s, web flows beside bulk flows, with marks on culprits alone or on everybody. `make
// conquest-loop` writes docs/eval/conquest-loop.md.
package main

import (
	"flag"
	"log"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/lab/queue/dctcp"
)

var (
	binary       = flag.String("xdpmon", "bin/xdpmon", "the binary")
	pairs        = flag.Int("pairs", 20, "pairs of each setting")
	seconds      = flag.Duration("seconds", 4*time.Second, "that are measured of a run; those before are not counted")
	congestions  = flag.String("congestion", everything, "congestion controls")
	hold         = flag.Duration("hold", 2*time.Millisecond, "conquest.hold")
	alpha        = flag.String("alpha", "1/4", "conquest.alpha")
	interval     = flag.Duration("interval", 4125*time.Microsecond, "conquest.interval")
	snapshots    = flag.Int("snapshots", 8, "conquest.snapshots")
	chance       = flag.String("chance", "threshold", "conquest.chance")
	weight       = flag.Int("weight", 0, "conquest.weight, bytes")
	without      = flag.Bool("without", false, "")
	first        = flag.Int("first", 0, "pair to begin with")
	taus         = flag.String("tau", "500us,1ms,2ms,4ms,8ms", "thresholds of the sweep for culprits")
	everyoneTaus = flag.String("tau-everyone", "2ms,3ms,4ms,6ms,8ms", "... for everyone")
	journal      = flag.String("journal", "out/conquest-loop.jsonl", "results are stored here, one a line: what is there is not measured again")
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
	for _, congestion := range strings.Split(*congestions, ",") {
		if err := sweep(kept, congestion); err != nil {
			return err
		}
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
			if kept.has(s) {
				continue
			}
			r, err := s.measure(*seconds)
			if err != nil {
				return err
			}
			log.Printf("%s %s %v %s, pair %d: %s", s.Congestion, s.Whom, s.Tau, s.Alpha, s.Pair, r)
			if err := kept.add(s, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// settings of a pair: each policy has a sweep of its own, so that the goodputs of both overlap.
func settings(congestion string, pair int) (list []setting) {
	culprits, everyone := thresholds(*taus), thresholds(*everyoneTaus)
	for n := range max(len(culprits), len(everyone)) {
		if n < len(culprits) {
			list = append(list, setting{congestion, "culprits", culprits[n], *alpha, *hold, *interval, *snapshots, *weight, *chance, pair})
		}
		if n < len(everyone) && everyone[n] > 0 {
			list = append(list, setting{congestion, "everyone", everyone[n], *alpha, *hold, *interval, *snapshots, *weight, *chance, pair})
		}
	}
	if pair%4 == 0 && !*without {
		list = append(list, setting{Congestion: congestion, Pair: pair})
	}
	return list
}

func thresholds(text string) (list []time.Duration) {
	for _, one := range strings.Split(text, ",") {
		tau, err := time.ParseDuration(one)
		if err != nil {
			log.Fatal(err)
		}
		list = append(list, tau)
	}
	return list
}
