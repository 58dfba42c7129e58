package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/plot/vg"

	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/lab/queue/scene"
)

// logged is a burst of a report.
type logged struct {
	Begin   int64 `json:"begin_ns"`
	Length  int64 `json:"length_ns"`
	Peak    int64 `json:"peak_ns"`
	Culprit string
	Queue   uint32
	Open    bool
}

// account of a queue, added up over windows.
type account struct{ Carried, Sent, Dropped, Missed, Queued, Foreign, Stale uint64 }

// reported is what one run of xdpmon has reported.
type reported struct {
	bursts                []logged
	account               account
	unmatched, departures uint64
}

// run is xdpmon attached.
type run struct {
	cmd    *exec.Cmd
	logged strings.Builder
	out    *bufio.Reader
	text   chan []byte
}

func start(s *scene.Scene, args ...string) (*run, error) {
	r := &run{cmd: exec.Command(*binary, append([]string{"attach"}, append(args, "--algo", "conquest", "--output", "json", "--window", "1s",
		"--set", "conquest.tau="+tau.String(), "--set", "conquest.longest=16ms", "--set", "conquest.snapshots=16", "--set", "conquest.alpha=1/4", "--set", "conquest.bursts=1000")...)...)}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	r.cmd.Stderr = &r.logged
	pipe, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.Device.Start(r.cmd); err != nil {
		return nil, err
	}
	r.out = bufio.NewReader(pipe)
	if _, err := r.out.ReadString('\n'); err != nil {
		return nil, fmt.Errorf("%w: %s", errors.Join(err, r.cmd.Wait()), r.logged.String())
	}
	r.text = make(chan []byte, 1)
	go func() {
		text, _ := io.ReadAll(r.out)
		r.text <- text
	}()
	return r, nil
}

// end returns what was reported.
func (r *run) end() (rep reported, err error) {
	if err := r.cmd.Process.Signal(unix.SIGINT); err != nil {
		return rep, err
	}
	text := <-r.text
	if err := r.cmd.Wait(); err != nil {
		return rep, fmt.Errorf("%w: %s", err, r.logged.String())
	}
	for line := range strings.Lines(string(text)) {
		var w struct {
			Packets struct{ Queue account }
			Lost    struct{ Unmatched uint64 }
			Report  struct {
				Departures uint64
				Log        []logged
			}
		}
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			return rep, err
		}
		rep.add(w.Report.Log)
		q, a := w.Packets.Queue, &rep.account
		a.Carried, a.Sent, a.Dropped, a.Missed = a.Carried+q.Carried, a.Sent+q.Sent, a.Dropped+q.Dropped, q.Missed // missed is of all windows
		a.Queued, a.Foreign, a.Stale = q.Queued, a.Foreign+q.Foreign, a.Stale+q.Stale
		rep.unmatched, rep.departures = rep.unmatched+w.Lost.Unmatched, rep.departures+w.Report.Departures
	}
	return rep, nil
}

// add a window's log, the last one first: an open burst is in the next one again.
func (r *reported) add(log []logged) {
	for _, b := range slices.Backward(log) {
		n := slices.IndexFunc(r.bursts, func(o logged) bool { return o.Open && o.Queue == b.Queue && o.Begin == b.Begin })
		if n < 0 {
			r.bursts = append(r.bursts, b)
			continue
		}
		if b.Culprit == "-" {
			b.Culprit = r.bursts[n].Culprit
		}
		b.Peak = max(b.Peak, r.bursts[n].Peak)
		r.bursts[n] = b
	}
}

// at is what is reported of a time.
func (r *reported) at(b burst) *logged {
	const slack = int64(100 * time.Microsecond)
	for n := range r.bursts {
		if o := &r.bursts[n]; o.Begin <= b.last+slack && o.Begin+o.Length >= b.begin-slack {
			return o
		}
	}
	return nil
}

// judged are the bursts of the truth that were found, and named.
type judged struct {
	bursts, found, named int
	silent               int       // not named, and none of the flow's packets waited tau: a flow is asked for by its own
	chance, seen         int       // those of the background alone, and how many of them were found
	off                  []float64 // |peak - true peak|, us
	missing              []missed
}

// missed is a burst of the truth whose flow was not named, and what was.
type missed struct {
	burst
	instead string
}

// judge: bursts that only just reach tau may fall below it by what lies between the places where times are taken.
func (r *reported) judge(truth []burst) (j judged) {
	const clear = int64(tau + 10*time.Microsecond)
	for _, b := range truth {
		if b.peak < clear {
			continue
		}
		o := r.at(b)
		if b.culprit() == 0 {
			if j.chance++; o != nil {
				j.seen++
			}
			continue
		}
		j.bursts++
		if o == nil {
			j.missing = append(j.missing, missed{b, "nothing"})
			continue
		}
		j.found++
		if strings.Contains(o.Culprit, fmt.Sprintf(":%d ", b.culprit())) {
			j.named++
		} else if b.waited[b.culprit()] == 0 {
			j.silent++
		} else {
			j.missing = append(j.missing, missed{b, o.Culprit})
		}
		j.off = append(j.off, float64(max(o.Peak-b.peak, b.peak-o.Peak))/1e3)
	}
	slices.Sort(j.off)
	return j
}

func (j judged) add(t *figure.Table, name string) {
	t.Add(name, fmt.Sprint(j.bursts), fmt.Sprint(j.found), fmt.Sprint(j.named), fmt.Sprint(j.silent), fmt.Sprintf("%d of %d", j.seen, j.chance), quantile(j.off, .5), quantile(j.off, .99), quantile(j.off, 1))
	for n, b := range j.missing {
		if n < 10 {
			log.Printf("%s: %q instead of %d: a burst of %d us, peak %d us, %d packets, %d of its own, of which %d waited tau", name, b.instead, b.culprit(), (b.last-b.begin)/1000, b.peak/1000, b.all(), b.packets[b.culprit()], b.waited[b.culprit()])
		}
	}
}

func quantile(list []float64, q float64) string {
	if len(list) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f us", list[min(len(list)-1, int(q*float64(len(list))))])
}

var head = []string{"source", "bursts above tau", "found", "culprit named", "not named, none of its packets waited tau", "found of the background's own", "peak off, median", "99 %", "largest"}

// bursts of one bottleneck, watched and tapped at the same time.
func bursts(p *page) (err error) {
	s, err := scene.New(scene.Options{Rate: rate, Limit: limit})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	truth, err := newWitness(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, truth.Close()) }()
	qdisc, err := start(s, scene.Out, "--set", "conquest.source=qdisc")
	if err != nil {
		return err
	}
	tap, err := start(s, scene.In, scene.Behind, "--hook", "tc", "--direction", "ingress", "--set", "conquest.source=tap", "--set", "conquest.egress="+scene.Behind)
	if err != nil {
		return err
	}
	if _, err := s.Send(traffic, *seconds); err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond)
	watched, err := qdisc.end()
	if err != nil {
		return err
	}
	tapped, err := tap.end()
	if err != nil {
		return err
	}
	seen, err := truth.Take()
	if err != nil {
		return err
	}
	all := ways(seen)
	true_ := trueBursts(all)
	t := &figure.Table{Columns: head}
	watched.judge(true_).add(t, "qdisc")
	tapped.judge(true_).add(t, "tap")
	p.table(t)
	same, both := agree(watched.bursts, tapped.bursts)
	a := watched.account
	p.say("Of %d bursts that both report, %d have the same culprit. Watched: handed over %d, sent %d, dropped %d, missed %d (%.3f %%), words of others %d. Tapped: %d departures, %d of them unmatched.",
		both, same, a.Carried, a.Sent, a.Dropped, a.Missed, 100*float64(a.Missed)/float64(max(1, a.Carried)), a.Foreign, tapped.departures, tapped.unmatched)
	return delaysDrawn(p, all, watched.bursts, tapped.bursts)
}

// delaysDrawn is figure 5.14: delays of the truth for some tenths of a second, and begin and peak of the bursts that were reported.
func delaysDrawn(p *page, truth []packet, watched, tapped []logged) error {
	if *out == "" || len(truth) == 0 {
		return nil
	}
	const length = 400 * time.Millisecond
	first := truth[len(truth)/2].start
	milliseconds := func(t int64) float64 { return float64(t-first) / 1e6 }
	line := figure.Series{Name: "trace points: enqueue to transmission"}
	for _, d := range truth {
		if d.start >= first && d.start < first+int64(length) {
			line.Points = append(line.Points, figure.Point{X: milliseconds(d.start), Y: float64(d.start-d.enqueue) / 1e6})
		}
	}
	peaks := func(name string, bursts []logged) figure.Series {
		dots := figure.Series{Name: name, Style: figure.Style{Dots: true}}
		for _, b := range bursts {
			if b.Begin >= first && b.Begin < first+int64(length) {
				dots.Points = append(dots.Points, figure.Point{X: milliseconds(b.Begin), Y: float64(b.Peak) / 1e6})
			}
		}
		return dots
	}
	f := figure.Figure{Width: 24 * vg.Centimeter, Panels: []figure.Panel{{X: figure.Axis{Label: "time (ms)"}, Y: figure.Axis{Label: "queueing delay (ms)"},
		Series: []figure.Series{line, peaks("reported by qdisc: begin and peak", watched), peaks("reported by tap", tapped)}, Legend: figure.TopRight}}}
	text, err := f.Save(filepath.Dir(*out), strings.TrimSuffix(filepath.Base(*out), ".md")+"-delays.svg", "figure 5.14: delays of the truth, and what is reported")
	if err != nil {
		return err
	}
	p.say("%s", text)
	return nil
}

// agree counts bursts that two sources name alike.
func agree(a, b []logged) (same, both int) {
	for _, x := range a {
		for _, y := range b {
			if x.Begin <= y.Begin+y.Length && y.Begin <= x.Begin+x.Length {
				both++
				if x.Culprit == y.Culprit {
					same++
				}
				break
			}
		}
	}
	return same, both
}

// queues: four transmit queues with a state each, and with two states that they share.
func queues(p *page) (err error) {
	t := &figure.Table{Columns: append([]string{"transmit queues", "conquest.queues"}, "bursts reported", "by queue", "missed", "words of others")}
	for _, states := range []int{4, 2} {
		r, err := queued(4, states)
		if err != nil {
			return err
		}
		by := make([]int, states)
		for _, b := range r.bursts {
			if int(b.Queue) >= states {
				return fmt.Errorf("a burst of queue %d, there are %d", b.Queue, states)
			}
			by[b.Queue]++
		}
		t.Add("4", fmt.Sprint(states), fmt.Sprint(len(r.bursts)), strings.Trim(fmt.Sprint(by), "[]"), fmt.Sprint(r.account.Missed), fmt.Sprint(r.account.Foreign))
	}
	p.table(t)
	return nil
}

func queued(queues, states int) (r reported, err error) {
	s, err := scene.New(scene.Options{Rate: rate, Limit: limit, Queues: queues})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	x, err := start(s, scene.Out, "--set", "conquest.source=qdisc", "--set", "conquest.columns=512", "--set", fmt.Sprintf("conquest.queues=%d", states))
	if err != nil {
		return r, err
	}
	if _, err := s.Send(traffic, *seconds/4); err != nil {
		return r, err
	}
	time.Sleep(200 * time.Millisecond)
	return x.end()
}
