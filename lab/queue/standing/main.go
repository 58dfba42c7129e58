// Command standing draws standing queues and asks ConQuest, without a parameter, who fills them: HTB with a pfifo, one TCP flow beside UDP. `make conquest-standing` writes
// docs/eval/conquest-standing.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/lab/queue/dctcp"
	"github.com/xdpmon/xdpmon/userspace/conquest"
)

var (
	cells   = flag.Int("cells", 40, "queues that are drawn")
	first   = flag.Int("first", 0, "number of the first one")
	seconds = flag.Duration("seconds", 4*time.Second, "of traffic in each")
	seed    = flag.Uint64("seed", 1, "of what is drawn")
	kind    = flag.String("queue", "pfifo", "queueing discipline: pfifo, or fq_codel or sfq below the same HTB class, or cake with a rate of its own")
	slowest = flag.Float64("slowest", 5, "Mbit/s that are drawn at least")
	fastest = flag.Float64("fastest", 500, "Mbit/s that are drawn at most")
	action  = flag.String("action", "mark", "what is done to culprits: mark (nothing looks at it), drop, ecn")
	folder  = flag.String("keep", "", "folder to record in what was seen")
	again   = flag.String("again", "", "judge what was recorded in that folder, instead of sending anything")
	out     = flag.String("out", "", "write the document here")
)

const pfifo = "pfifo"

// cell is a queue and its traffic.
type cell struct {
	rate       float64 // bits a second
	kind       string
	limit      int // packets, or aggregates, of a pfifo
	congestion string
	udp        float64 // of the rate
	segments   int     // that TCP puts into one aggregate at most; 0: as the kernel does
}

func (c cell) String() string {
	size := "aggregates"
	if c.segments == 1 {
		size = "packets"
	}
	limit := ""
	if c.kind == pfifo {
		limit = fmt.Sprint(c.limit, " ")
	}
	return fmt.Sprintf("%.1f Mbit/s, %s %s, %s, UDP %.1f %%", c.rate/1e6, c.kind, limit+size, strings.TrimPrefix(c.congestion, "xdpmon_"), 100*c.udp)
}

// draw is the same for the same seed and number, whatever else is drawn.
func draw(seed uint64, n int) cell {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, r.Float64()) }
	c := cell{rate: between(1e6**slowest, 1e6**fastest), kind: *kind, limit: int(between(50, 2000)), udp: between(.003, .4)}
	c.congestion = []string{"cubic", "reno", "bbr", dctcpName}[n%4]
	if r.IntN(2) == 0 {
		c.segments = 1
	}
	return c
}

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("standing: ")
	flag.Parse()
	if err := all(); err != nil {
		log.Fatal(err)
	}
}

// dctcpName is the lab's own DCTCP, or the kernel's where links of a congestion control of BPF are missing.
var dctcpName = dctcp.Name

func all() (err error) {
	end, err := dctcp.Register()
	switch {
	case err == nil:
		defer func() { err = errors.Join(err, end()) }()
	case dctcp.Missing(err):
		dctcpName = "dctcp"
	default:
		return err
	}
	t := &figure.Table{Columns: []string{"queue", "wait, median and longest", "others' wait, median", "longest time that nothing left though something waited", "largest flow, Mbit/s", "reports", "outside of their interval", "bursts over 20 ms", "the largest flow named", "another", "unknown", "below alpha", "share outside of its interval", "packets acted upon", "of flows below alpha", "dropped by the queue", "of these, datagrams of flows below alpha"}}
	var sum verdict
	for n := *first; n < *first+*cells; n++ {
		c := draw(*seed, n)
		v, err := c.judged(n)
		if err != nil {
			return fmt.Errorf("queue %d (%v): %w", n, c, err)
		}
		log.Printf("%d: %v: %+v", n, c, v)
		row := append([]string{c.String()}, v.cells()...)
		t.Add(row...)
		sum.add(v)
	}
	t.Add(append([]string{"together", "", "", "", ""}, sum.cells()[4:]...)...)
	return write(t, sum)
}

// judged is what becomes of a queue, now or as it was recorded.
func (c cell) judged(n int) (v verdict, err error) {
	var s seen
	if *again != "" {
		s, err = kept(*again, n)
	} else {
		s, err = c.run(*seconds)
	}
	if err == nil && *folder != "" {
		err = s.keep(*folder, n)
	}
	if err != nil {
		return v, err
	}
	_, values, err := values()
	if err != nil {
		return v, err
	}
	log, err := conquest.NewLog(values)
	if err != nil {
		return v, err
	}
	if n := len(s.Condemned); uint64(n) != s.Fate.Dropped {
		return v, fmt.Errorf("%d packets were reported as dropped, of %d", n, s.Fate.Dropped)
	}
	return judge(s.Events, log, s.Left, s.Condemned, s.Fate), nil
}

const introduction = `# Standing queues: who is named without a parameter

Queues that are drawn (seed %d): %s of %.0f to %.0f Mbit/s, one TCP flow (cubic, reno, bbr and DCTCP by turns) beside UDP of .3 to 40 %% of the rate, all
three uniform in the logarithm, and a datagram of 100 bytes every 20 ms, of 100 flows by turns. A host forwards it (lab/queue/scene), windows of TCP go up to 3 MB; DCTCP is used at both ends, and with conquest.action=ecn all of TCP but bbr understands marks; %v of each, conquest.action=%s (mark changes nothing in the queue), all else the default (source qdisc, alpha 1/16, tau 1 ms, hold 10 ms).

The truth is from a program in the same chain that reports every departure with its bytes and the time it was handed over. A report's interval is compared with the share of the bytes that left while
its packet waited. Of a burst the largest flow is the one of which most bytes left from the arrival of the first packet that waited tau to the departure of the last one; *below alpha* counts bursts whose first name had less than alpha of these.
A packet is marked or dropped rightly if one of its flow left at most conquest.hold before it was handed over, while the flow had alpha; a program after ConQuest in the chain reports each that it drops. What the queue itself dropped is what its counter has; datagrams
of flows below alpha are those that were sent, were not dropped by ConQuest and did not arrive, of flows that never had alpha while one of their packets waited.

`

func write(t *figure.Table, sum verdict) error {
	queues := "HTB and a pfifo of 50 to 2,000 packets or aggregates,"
	switch *kind {
	case pfifo:
	case "cake":
		queues = "cake"
	default:
		queues = "HTB and " + *kind
	}
	text := fmt.Sprintf(introduction, *seed, queues, *slowest, *fastest, *seconds, *action) + t.String() + "\n" + sum.say()
	load, _ := os.ReadFile("/proc/loadavg")
	text += fmt.Sprintf("\n*%s; load %s at the end.*\n", eval.Provenance(context.Background(), fmt.Sprintf("lab/run queue/standing -cells %d -first %d -seconds %v -seed %d -action %s -queue %s -slowest %g -fastest %g", *cells, *first, *seconds, *seed, *action, *kind, *slowest, *fastest)), strings.Fields(string(load))[0])
	fmt.Print(text)
	if *out == "" {
		return nil
	}
	return os.WriteFile(*out, []byte(text), 0o644)
}
