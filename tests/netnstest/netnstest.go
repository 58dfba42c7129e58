// Package netnstest is netns for tests.
package netnstest

import (
	"testing"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// New makes a topology that is closed when the test ends; without root the test is skipped.
func New(tb testing.TB, opts netns.Options) *netns.Topology {
	tb.Helper()
	testutil.NeedRoot(tb)
	t, err := netns.New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := t.Close(); err != nil {
			tb.Error(err)
		}
	})
	return t
}
