package run

import (
	"fmt"
	"testing"

	"github.com/xdpmon/xdpmon/p4"
)

// forms of the twins that -D chooses.
func forms(twin string) []map[string]string {
	all := []map[string]string{nil}
	switch twin {
	case "reorder":
		for method := range 3 {
			for definition := 1; definition <= 3; definition++ {
				all = append(all, map[string]string{"REORDER_METHOD": fmt.Sprint(method), "REORDER_DEFINITION": fmt.Sprint(definition)})
			}
		}
	case "lean":
		for mask := 1; mask <= 15; mask++ {
			all = append(all, map[string]string{"LEAN_STATS": fmt.Sprint(mask)})
		}
	}
	return all
}

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
		for _, form := range forms(d.Name()) {
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
