package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// moment is kept beside a capture (-dir): what the capture itself does not tell of an incident. All else is drawn again from its name and seed.
type moment struct {
	Incident string `json:"incident"`
	Seed     uint64 `json:"seed"`
	Onset    int64  `json:"onset"`            // ns since 1970
	Absent   string `json:"absent,omitempty"` // why tshark, tc and ss did not find it in the traffic
}

func momentFile(capture string) string { return capture + ".json" }

// keep writes the moment beside the capture where captures are kept.
func (p *played) keep(proof error) error {
	if *dir == "" || temporary {
		return nil
	}
	m := moment{Incident: p.incident.name, Seed: p.seed, Onset: p.facts.onset.UnixNano()}
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
func recall(in incident, seed uint64, capture string) (p *played, absent string, err error) {
	text, err := os.ReadFile(momentFile(capture))
	if err != nil {
		return nil, "", err
	}
	var m moment
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, "", fmt.Errorf("read %s: %w", momentFile(capture), err)
	}
	w := newWorld(seed, in.name)
	return &played{incident: in, seed: seed, world: w, staged: in.draw(w), facts: &facts{onset: time.Unix(0, m.Onset)}, capture: capture}, m.Absent, nil
}
