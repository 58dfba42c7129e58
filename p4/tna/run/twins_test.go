package run

import (
	"testing"

	"github.com/xdpmon/xdpmon/p4"
)

// TestTwinsAreRead reads and checks every twin in every form, for both targets.
func TestTwinsAreRead(t *testing.T) {
	folders, err := p4.Sources.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range folders {
		if _, err := p4.Sources.Open(d.Name() + "/top.p4"); err != nil {
			continue
		}
		for _, form := range append(p4.Forms(d.Name()), nil) {
			for _, target := range []Target{Tofino1, Tofino2} {
				program, err := Read(p4.Sources, d.Name()+"/top.p4", target, form)
				if err == nil {
					_, err = New(program, target)
				}
				if err != nil {
					t.Errorf("%s %v, Tofino %d: %v", d.Name(), form, target, err)
				}
			}
		}
	}
}
