package prom

import (
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// TestMain also checks that nothing is left open or running.
func TestMain(m *testing.M) { testutil.Main(m) }
