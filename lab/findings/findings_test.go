package main

import "testing"

// A virtual day without an incident has one finding at most; `make findings-quiet` plays 30 days of ten seeds.
func TestQuiet(t *testing.T) {
	if r := quiet(1, 1, testing.Verbose()); r.most > 1 {
		t.Errorf("%d findings on a quiet day: %v", r.most, r.kinds)
	}
}
