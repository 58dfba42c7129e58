package twins

import (
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/p4"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// TestEveryTwinIsCompared: a folder with a program has a twin.go in the list of p4/all (go generate ./p4/all).
func TestEveryTwinIsCompared(t *testing.T) {
	folders, err := p4.Sources.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if _, err := p4.Sources.Open(f.Name() + "/top.p4"); err != nil {
			continue
		}
		known := slices.ContainsFunc(twin.All(), func(tw *twin.Twin) bool { return tw.Name == f.Name() })
		if !known {
			t.Errorf("p4/%s is not registered: a twin that is never run drifts", f.Name())
		}
	}
}
