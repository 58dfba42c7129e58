package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

// tally adds runs up: of one incident, and of all.
type tally struct {
	runs, absent                    int // absent: tshark, tc or ss do not see the incident, so that the run is not judged
	expected, found, inTime, wrong  int
	quiet                           int // runs in which nothing else was found
	shown                           int // runs in which nothing else was found but late windows that the harness' clock shows as well
	disordered, codes               int
	captures, capExpected, capFound int
	capWrong, capQuiet              int
	what                            []string // kinds that were found and should not have been
	printed                         string   // what the incident expects
}

func (t *tally) live(j judged) {
	t.expected, t.found, t.inTime, t.wrong = t.expected+j.expected, t.found+j.found, t.inTime+j.inTime, t.wrong+len(j.wrong)
	if len(j.wrong) == 0 {
		t.quiet++
	} else if len(j.wrong) == j.shown {
		t.shown++
	}
	if !j.order {
		t.disordered++
	}
	if !j.code {
		t.codes++
	}
	t.name(j)
}

func (t *tally) capture(j judged) {
	t.captures, t.capExpected, t.capFound, t.capWrong = t.captures+1, t.capExpected+j.expected, t.capFound+j.found, t.capWrong+len(j.wrong)
	if len(j.wrong) == 0 {
		t.capQuiet++
	}
}

func (t *tally) name(j judged) {
	for _, f := range j.wrong {
		if !slices.Contains(t.what, f.Kind) {
			t.what = append(t.what, f.Kind)
		}
	}
}

func (t *tally) add(u tally) {
	if u.printed != "" {
		t.printed = u.printed
	}
	for _, text := range u.what {
		if !slices.Contains(t.what, text) {
			t.what = append(t.what, text)
		}
	}
	t.runs, t.absent = t.runs+u.runs, t.absent+u.absent
	t.expected, t.found, t.inTime, t.wrong, t.quiet, t.shown = t.expected+u.expected, t.found+u.found, t.inTime+u.inTime, t.wrong+u.wrong, t.quiet+u.quiet, t.shown+u.shown
	t.disordered, t.codes = t.disordered+u.disordered, t.codes+u.codes
	t.captures, t.capExpected, t.capFound, t.capWrong, t.capQuiet = t.captures+u.captures, t.capExpected+u.capExpected, t.capFound+u.capFound, t.capWrong+u.capWrong, t.capQuiet+u.capQuiet
}

var columns = []string{"incident", "expected", "runs", "found within two windows", "found at all", "runs with nothing else", "runs with true late windows and nothing else", "what else", "in captures", "captures with nothing else"}

func (t *tally) row(name string) []string {
	of := func(n, all int) string { return fmt.Sprintf("%d of %d", n, all) }
	judgedRuns := t.runs - t.absent
	return []string{name, t.printed, fmt.Sprint(judgedRuns), of(t.inTime, t.expected), of(t.found, t.expected), of(t.quiet, judgedRuns), fmt.Sprint(t.shown), strings.Join(t.what, ", "),
		of(t.capFound, t.capExpected), of(t.capQuiet, t.captures)}
}

const introduction = `# Findings of staged incidents

Incidents are staged in network namespaces with real traffic (lab/incidents): clients, a host that forwards and on whose interface ` + "`xdpmon check`" + ` runs, and servers, with a link of
the harness on both sides that delays, loses and reorders, and HTB with a FIFO behind the interface. %d seeds draw addresses, delays, rates and who is hit. Before an incident there are %v of usual
traffic (50 connections a second of 24 hosts to 9 servers, 16 connections that stay, DNS and NTP); it lasts %v. Windows are %v.

An incident begins in the middle of a window. It is *found within two windows* if a finding of the right kind and subject is printed at the end of the second window after that one or
earlier. A run has *nothing else* if each finding of it is the incident or one of the consequences that lab/incidents lists with it. *True late windows* are findings of late windows that nobody staged, whose length the harness has measured by its own clock (it reads the bank that
xdpmon changes at the end of a window): such a run is not one with nothing else, and counted in a column of its own. *In captures*: ` + "`xdpmon check`" + ` on a capture that dumpcap wrote of the
same packets on the same interface; what a queue does cannot be seen there, since the capture begins behind it. Each run is judged only after tshark, tc and ss have shown that the incident is in
the traffic.

`

// write makes the page.
func write(path, command string, c *campaign) error {
	table := &figure.Table{Columns: columns}
	var all tally
	for n, r := range c.rows {
		table.Add(r.row(c.list[n].name)...)
		all.add(r)
	}
	all.printed, all.what = "", nil
	table.Add(all.row("together")...)
	text := fmt.Sprintf(introduction, *seeds, c.timing.calm, c.timing.lasting, c.timing.window) + table.String()
	text += fmt.Sprintf("\nTwo incidents at once that are listed in another order than that of harm: %d. Exit codes that do not state whether something was found: %d. Runs in which the incident was not in the traffic, and that are not judged: %d.\n",
		all.disordered, all.codes, all.absent)
	load, _ := os.ReadFile("/proc/loadavg")
	text += fmt.Sprintf("\n*%s; load %s at the end.*\n", eval.Provenance(context.Background(), command), strings.Fields(string(load) + " ?")[0])
	fmt.Print(text)
	if path == "" {
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// miss is a record of a run that was not right, for whoever mends rules: what was staged, expected and found.
type miss struct {
	Incident string   `json:"incident"`
	Seed     uint64   `json:"seed"`
	Where    string   `json:"where"` // live or capture
	Staged   string   `json:"staged"`
	Missed   []string `json:"missed,omitempty"`
	Late     []string `json:"late,omitempty"`
	Order    bool     `json:"in_order"`
	Code     int      `json:"exit_code"`
}

func (p *played) report(file, where string, j judged, a *answer) error {
	if j.clean() {
		return nil
	}
	m := miss{Incident: p.incident.name, Seed: p.seed, Where: where, Staged: p.staged.what, Order: j.order, Code: a.code}
	for _, w := range j.missed {
		m.Missed = append(m.Missed, w.String())
	}
	for _, w := range j.late {
		m.Late = append(m.Late, w.String())
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	lines := []string{string(text)}
	for _, f := range a.began {
		lines = append(lines, fmt.Sprintf("  found %+.1f s after the onset: %s", f.at.Sub(p.facts.onset).Seconds(), f.line))
	}
	for _, u := range a.unable {
		lines = append(lines, "  unable: "+u)
	}
	log.Printf("%s, seed %d, %s: missed %v, late %v, wrong %d", p.incident.name, p.seed, where, j.missed, j.late, len(j.wrong))
	if file == "" {
		return nil
	}
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = out.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, out.Close())
}
