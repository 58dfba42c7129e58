// Package netnstest is netns for tests: networks that are removed with their test. Package attachtest measures on them.
package netnstest

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// New makes a topology that is closed when the test ends, also when it fails or panics; without root the test is skipped, where CI=true it fails.
func New(tb testing.TB, opts netns.Options) *netns.Topology {
	tb.Helper()
	testutil.NeedRoot(tb)
	t, err := netns.New(opts)
	if errors.Is(err, unix.EPERM) { // root of a container
		tb.Fatalf("%v; %s", err, privilege.Remedy(append(slices.Clone(privilege.AttachNeeds), privilege.CapSysAdmin)))
	}
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
