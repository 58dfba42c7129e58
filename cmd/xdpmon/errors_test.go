package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// TestOutOfFilesNamesTheRemedy: once, whichever step fails.
func TestOutOfFilesNamesTheRemedy(t *testing.T) {
	for _, err := range []error{
		fmt.Errorf("look up interface eth0: %w", syscall.EMFILE),
		fmt.Errorf("%w: %w; %s", privilege.ErrDescriptors, syscall.EMFILE, privilege.DescriptorRemedy(0)),
	} {
		w := newWorld()
		w.engine.live = func(context.Context, session.LiveConfig) error { return err }
		if code := w.run("attach", "eth0", "--algo", "test-delay"); code != cli.ExitFailed {
			t.Errorf("exit code %d", code)
		}
		if n := strings.Count(w.err.String(), "ulimit -n"); n != 1 {
			t.Errorf("the remedy is named %d times: %s", n, w.err.String())
		}
	}
}
