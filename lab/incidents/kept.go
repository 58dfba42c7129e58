package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"
)

// moment is kept beside a capture (-dir): what the capture itself does not tell of an incident. All else is drawn again from its name and seed.
type moment struct {
	Incident string `json:"incident"`
	Seed     uint64 `json:"seed"`
	Onset    int64  `json:"onset"`            // ns since 1970
	Absent   string `json:"absent,omitempty"` // why tshark, tc and ss did not find it in the traffic
	Late     int64  `json:"late"`             // the longest time that a packet left an emulator after it was due, ns
}

func momentFile(capture string) string { return capture + ".json" }

// keep writes the moment beside the capture where captures are kept.
func (p *played) keep(proof error) error {
	if *dir == "" || temporary {
		return nil
	}
	m := moment{Incident: p.incident.name, Seed: p.seed, Onset: p.facts.onset.UnixNano(), Late: int64(p.late)}
	if proof != nil {
		m.Absent = proof.Error()
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(momentFile(p.capture), text, 0o644)
}

// recall plays nothing: it is the incident of a capture that was kept.
func recall(in incident, seed uint64, capture string) (p *played, m moment, err error) {
	text, err := os.ReadFile(momentFile(capture))
	if err != nil {
		return nil, m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, m, fmt.Errorf("read %s: %w", momentFile(capture), err)
	}
	w := newWorld(seed, in.name)
	return &played{incident: in, seed: seed, world: w, staged: in.draw(w), facts: &facts{onset: time.Unix(0, m.Onset)}, capture: capture}, m, nil
}

// again judges what xdpmon finds in a capture that was kept: by the packets' clock it is in time if the window with which it begins is the
// second one after that in which the incident begins, or an earlier one.
func (r *tally) again(ctx context.Context, in incident, seed uint64, t timing) error {
	capture := filepath.Join(*dir, captureName(in.name, seed))
	p, m, err := recall(in, seed, capture)
	if err != nil {
		return err
	}
	r.runs++
	r.printed = p.staged.expects()
	if m.Absent != "" || time.Duration(m.Late) > *punctual {
		r.absent++
		log.Printf("not judged: %s, seed %d: emulators late by %v; %s", in.name, seed, time.Duration(m.Late).Round(time.Millisecond), m.Absent)
		return nil
	}
	var a answer
	if a, err = checkCapture(ctx, *program, capture, t, p.staged); err != nil {
		return fmt.Errorf("%s, seed %d: %w", in.name, seed, err)
	}
	for i := range a.began {
		a.began[i].at = a.began[i].ended(t.window)
	}
	if p.staged.argued != nil {
		if p.facts.rows, err = dissect(ctx, capture); err != nil {
			return err
		}
	}
	j := judgeKept(p.staged, p.facts, &a, t.window)
	r.capture(j)
	r.inTime, r.expected, r.found = r.inTime+j.inTime, r.expected+j.expected, r.found+j.found
	if len(j.wrong) == 0 {
		r.quiet++
	}
	r.name(j)
	return p.report(*misses, "capture", j, &a)
}

// ended is about the end of the window with which a finding began: there is none between those that show it, or the test would not have begun anything.
func (f *found) ended(window time.Duration) time.Time {
	return time.Unix(0, f.Since).Add(time.Duration(f.Windows) * window)
}

// judgeKept judges a capture by the packets' clock.
func judgeKept(s *staged, f *facts, a *answer, window time.Duration) judged {
	deadline := f.onset.Add(3 * window)
	return judge(s.inCapture(), s.mayBeCaptured(f), a, func(n found) bool { return s.always || !n.at.After(deadline) })
}
