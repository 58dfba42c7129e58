package main

import (
	"os/exec"
	"testing"
	"time"
)

// A command is ended after as many ticks as its limit has, and not by a clock that goes on while nothing runs.
func TestWatched(t *testing.T) {
	ticks := make(chan time.Time)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if out, late, stopped, err := watched(exec.Command("sleep", "1000"), 2*tick, ticks); len(out) > 0 || !late || stopped || err == nil {
			t.Errorf("%q, late %v, stopped %v, %v", out, late, stopped, err)
		}
	}()
	for range 2 {
		ticks <- time.Time{}
	}
	select {
	case <-done:
		t.Error("ended within its limit")
	case ticks <- time.Time{}:
		<-done
	}
	if out, late, stopped, err := watched(exec.Command("echo", "ended"), 0, nil); string(out) != "ended\n" || late || stopped || err != nil {
		t.Errorf("%q, late %v, stopped %v, %v", out, late, stopped, err)
	}
}
