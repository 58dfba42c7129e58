// Command findings plays quiet traffic through the rules, tests and diagnosis of xdpmon, weeks of it in virtual time, and counts what is found: each
// of it is false.
package main

import (
	"flag"
	"fmt"
	"os"
	"sync"

	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/finding"
)

func main() {
	days := flag.Int("days", 30, "virtual days of each seed")
	seeds := flag.Int("seeds", 10, "seeds")
	first := flag.Uint64("first", 1, "first seed")
	show := flag.Bool("show", false, "print every finding")
	flag.Parse()
	results := make([]result, *seeds)
	var running sync.WaitGroup
	for i := range results {
		running.Add(1)
		go func() { defer running.Done(); results[i] = quiet(*first+uint64(i), *days, *show) }()
	}
	running.Wait()
	sum, most, kinds := 0, 0, map[finding.Kind]int{}
	for i, r := range results {
		fmt.Printf("seed %d: %d findings in %d days, at most %d in one day\n", *first+uint64(i), r.found, *days, r.most)
		sum, most = sum+r.found, max(most, r.most)
		for k, n := range r.kinds {
			kinds[k] += n
		}
	}
	fmt.Printf("all: %d findings in %d days (%.3f a day), at most %d in one day; by kind %v\n", sum, *days**seeds, float64(sum)/float64(*days**seeds), most, kinds)
	if most > 1 {
		os.Exit(1)
	}
}

type result struct {
	found, most int
	kinds       map[finding.Kind]int
}

// quiet is the findings of one host.
func quiet(seed uint64, days int, show bool) result {
	h, e := newHost(seed), diagnose.New()
	r, today := result{kinds: map[finding.Kind]int{}}, 0
	for n := range days * int(day/windowNS) {
		if n%int(day/windowNS) == 0 {
			today = 0
			if show {
				fmt.Printf("seed %d: %d days, %d findings\n", seed, n/int(day/windowNS), r.found)
			}
		}
		for _, l := range h.window() {
			for _, f := range e.Line(l) {
				if f.State != finding.Begins {
					continue
				}
				r.found++
				r.kinds[f.Kind]++
				today++
				r.most = max(r.most, today)
				if show {
					fmt.Printf("seed %d: %s\n", seed, f.Sentence())
				}
			}
		}
	}
	return r
}
