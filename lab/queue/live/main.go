// Command live measures what ConQuest reports of a real queue: delays against the trace points of the queueing discipline, bursts and their culprits, the
// same bottleneck watched and tapped at once, and what watching costs. `make conquest-live` writes docs/eval/conquest-live.md; it wants a quiet machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/lab/queue/scene"
)

var (
	binary  = flag.String("xdpmon", "bin/xdpmon", "the binary")
	seconds = flag.Duration("seconds", 20*time.Second, "of each part")
	only    = flag.String("only", "delays,bursts,alphas,queues,cost", "parts that are run")
	out     = flag.String("out", "", "write the document here")
	seed    = flag.Uint64("seed", 1, "of the traffic")
)

// The bottleneck: 58 us a packet, and 17 ms of queue.
const (
	rate  = 200e6
	limit = 300
	tau   = 500 * time.Microsecond
)

var traffic = scene.Traffic{Background: 0.4, Every: 40 * time.Millisecond}

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("live: ")
	flag.Parse()
	if err := all(); err != nil {
		log.Fatal(err)
	}
}

var parts = []struct {
	name, title string
	run         func(*page) error
}{
	{"delays", "Delays against the queueing discipline's trace points", delays},
	{"bursts", "Bursts and culprits: watched (`qdisc`) and tapped (`tap`) at once", bursts},
	{"alphas", "Precision and recall by alpha (figure 5.15)", alphas},
	{"queues", "Several transmit queues", queues},
	{"cost", "Packets a second with and without", cost},
}

// page is the document so far.
type page struct{ strings.Builder }

func (p *page) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	log.Print(text)
	fmt.Fprintf(p, "%s\n\n", text)
}

func (p *page) table(t *figure.Table) { fmt.Fprintf(p, "%s\n", t) }

const introduction = `# conquest on real queues

A host that forwards: ten flows of datagrams (%.0f %% of the rate together), and every %v a burst of one of three more, of %v to %v on the link (uniform in the
logarithm), through an HTB class of %.0f Mb/s with a FIFO of %d packets. Frames have %d bytes. conquest.tau is %v. The truth is from a program of the tests at
qdisc_enqueue, qdisc_dequeue and net_dev_start_xmit, which knows each datagram by its port and a number in its payload. A burst is a bursty flow's where that had half or more
of what left in it.

`

func all() error {
	traffic.Seed = *seed
	p := &page{}
	fmt.Fprintf(p, introduction, 100*traffic.Background, traffic.Every, scene.ShortestBurst, scene.LongestBurst, rate/1e6, limit, scene.Size, tau)
	old := ""
	if text, err := os.ReadFile(*out); err == nil {
		old = string(text)
	}
	for _, part := range parts {
		fmt.Fprintf(p, "## %s\n\n", part.title)
		if !strings.Contains(*only, part.name) {
			p.WriteString(section(old, part.title))
			continue
		}
		if err := part.run(p); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		load, _ := os.ReadFile("/proc/loadavg")
		fmt.Fprintf(p, "*%s; load %s at the end.*\n\n", eval.Provenance(context.Background(), "make conquest-live"), strings.Fields(string(load))[0])
	}
	if *out == "" {
		return nil
	}
	return os.WriteFile(*out, []byte(strings.TrimRight(p.String(), "\n")+"\n"), 0o644)
}

// section is what stands under a title in an earlier document: parts that are not run again stay with their date.
func section(text, title string) string {
	_, text, found := strings.Cut(text, "\n## "+title+"\n\n")
	if !found {
		return "Not run.\n\n"
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return strings.TrimRight(text, "\n") + "\n\n"
}
