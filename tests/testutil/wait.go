package testutil

import (
	"testing"
	"time"
)

// Wait ends the test unless ok becomes true within 20 s: for what other goroutines and processes do.
func Wait(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("did not happen within 20 s: %s", what)
		}
	}
}
