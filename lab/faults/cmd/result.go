package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/lab/faults"
)

// row is how the runs with one call and one error ended.
type row struct {
	call  string
	errno unix.Errno
	runs  []faults.Outcome
}

// fill runs the scenario with the first to the last call failing, until there are no more of them.
func (r *row) fill(s faults.Scenario, fault faults.Fault, usual string, last, workers int) error {
	for first := 1; first <= last; first += workers {
		outcomes, errs := make([]faults.Outcome, min(workers, last+1-first)), make([]error, workers)
		var running sync.WaitGroup
		for i := range outcomes {
			running.Go(func() {
				fault := fault
				fault.K = first + i
				outcomes[i], errs[i] = s.Run(fault, usual)
			})
		}
		running.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for _, o := range outcomes {
			if o.Kind == faults.NotInjected {
				return nil
			}
			r.runs = append(r.runs, o)
		}
	}
	return nil
}

func (r row) count(kind faults.Kind) (n int) {
	for _, o := range r.runs {
		if o.Kind == kind {
			n++
		}
	}
	return n
}

func (r row) longest() (longest time.Duration) {
	for _, o := range r.runs {
		longest = max(longest, o.Took)
	}
	return longest
}

func (r row) text() string {
	cells := []string{r.call, unix.ErrnoName(r.errno), fmt.Sprint(len(r.runs))}
	for _, kind := range []faults.Kind{faults.Failed, faults.Reported, faults.Unaffected, faults.GoGaveUp, faults.Unclean} {
		cells = append(cells, fmt.Sprint(r.count(kind)))
	}
	return "| " + strings.Join(append(cells, fmt.Sprintf("%.1f s", r.longest().Seconds())), " | ") + " |"
}

// results are all of a sweep.
type results struct {
	last       int
	provenance string // of the binary: taken before the first run
	parts      []result
}

// result is one scenario.
type result struct {
	title     string
	arguments []string
	rows      []row
}

func (r result) sum() row {
	sum := row{call: "all"}
	for _, one := range r.rows {
		sum.runs = append(sum.runs, one.runs...)
	}
	return sum
}

const head = `# When system calls fail

Each run is an ` + "`xdpmon attach`" + ` in which one system call fails: the first one of its kind, the second, and so on to number %d or to the
last there is, counted over all threads, from the start of the process to its end. Ten handshakes pass while it measures, then it gets
SIGINT. A run is clean when it ends with exit code 1 or 3 and a message, or continues, counts all ten and reports what it lacks; in
both cases nothing is left attached. "Made no difference" is a run that counted everything and reported
word for word what it reports without a fault: the call was tried again, or no output depends on it.

A pinned run leaves its programs on purpose: it is clean when ` + "`detach PIN`" + ` then takes everything away, and a failed one when nothing is
left or the same command takes it away.

%s. The longest time is from the fault to the end, or from SIGINT where it continued; other work may have run beside it.
`

const tableHead = `
## %s

` + "`attach IFACE %s`" + `

| call | error | runs | failed with a message | continued and reported it | made no difference | Go runtime gave up | not clean | longest |
|---|---|---|---|---|---|---|---|---|
`

// document is the result as a page.
func (r results) document() string {
	var b strings.Builder
	fmt.Fprintf(&b, head, r.last, r.provenance)
	for _, part := range r.parts {
		b.WriteString(part.document())
	}
	return b.String()
}

func (r result) document() string {
	var b strings.Builder
	fmt.Fprintf(&b, tableHead, r.title, strings.Join(r.arguments, " "))
	for _, one := range r.rows {
		b.WriteString(one.text() + "\n")
	}
	total := r.sum()
	fmt.Fprintln(&b, strings.Replace(total.text(), unix.ErrnoName(0), "", 1))
	for _, kind := range []faults.Kind{faults.Reported, faults.GoGaveUp, faults.Unclean} {
		r.list(&b, kind)
	}
	return b.String()
}

// preface explains a kind of ends.
var preface = map[faults.Kind]string{faults.GoGaveUp: `epoll_ctl and fcntl here are the runtime's own, before and below the program. A capset or prctl that fails on the second thread and not
on the first is of the experiment's making: threads are compared before, and one that nobody will miss tries first.

`}

// list names the runs of one kind, those with the same message together.
func (r result) list(b *strings.Builder, kind faults.Kind) {
	var messages []string
	calls := map[string][]string{}
	for _, o := range r.sum().runs {
		if o.Kind != kind {
			continue
		}
		text := strings.TrimSpace(o.Problem + " " + o.Message())
		if calls[text] == nil {
			messages = append(messages, text)
		}
		calls[text] = append(calls[text], o.Fault.String())
	}
	if len(messages) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s%s\n\n%s", strings.ToUpper(kind.String()[:1]), kind.String()[1:], preface[kind])
	for _, m := range messages {
		fmt.Fprintf(b, "- %s: %s\n", strings.Join(calls[m], ", "), m)
	}
}
