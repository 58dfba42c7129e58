package main

import (
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/tests/queue/departures"
)

// seen is all that was recorded of a queue: what is judged once can be judged again, by other bounds.
type seen struct {
	Events    []bpf.ConquestConquestEvent
	Left      []departures.Departure
	Condemned []departures.Departure // dropped by the chain
	Fate      fate
}

// fate of what was sent and did not leave.
type fate struct {
	Lost     map[uint16]int // datagrams that did not arrive, by source port
	Dropped  uint64         // by the chain
	Overflow uint64         // by the queue, which was full
}

func keptAs(folder string, n int) string { return filepath.Join(folder, fmt.Sprintf("%d.gob.gz", n)) }

// keep writes what was seen of a queue.
func (s seen) keep(folder string, n int) (err error) {
	f, err := os.Create(keptAs(folder, n))
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	return errors.Join(gob.NewEncoder(z).Encode(s), z.Close(), f.Close())
}

// kept reads it again.
func kept(folder string, n int) (s seen, err error) {
	f, err := os.Open(keptAs(folder, n))
	if err != nil {
		return s, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return s, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return s, gob.NewDecoder(z).Decode(&s)
}
