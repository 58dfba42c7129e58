package main

import (
	"encoding/json"
	"os"
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
