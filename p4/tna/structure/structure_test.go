package structure

import (
	"fmt"
	"testing"

	"github.com/xdpmon/xdpmon/loader/pisa"
	_ "github.com/xdpmon/xdpmon/p4/all"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	_ "github.com/xdpmon/xdpmon/userspace/all"
)

// TestTwins compares every twin in every form, for both chips, with its bytecode. Each difference is in the twin's structure.txt with its
// reason, and nothing else is. Forms of which others have all parts are compared in lab/twins.
func TestTwins(t *testing.T) {
	for _, tw := range twin.All() {
		t.Run(tw.Name, func(t *testing.T) {
			t.Parallel()
			list, err := ListOf(tw)
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range tw.FormsOf() {
				if form.Study {
					continue
				}
				host, err := OfHost(tw, form)
				if err != nil {
					t.Fatal(err)
				}
				for _, target := range []run.Target{run.Tofino1, run.Tofino2} {
					compareForm(t, list, host, tw, target, form)
				}
			}
			for _, line := range list.Unused() {
				t.Errorf("does not differ: %s", line)
			}
		})
	}
}

func compareForm(t *testing.T, list *List, host []pisa.Touch, tw *twin.Twin, target run.Target, form twin.Form) {
	t.Helper()
	touches, err := OfTwin(tw, target, form)
	if err != nil {
		t.Fatal(err)
	}
	if len(touches) == 0 {
		t.Errorf("%s %s: no register is reached", tw.Name, form.Name)
	}
	for _, d := range list.Unlisted(host, touches) {
		t.Errorf("not on the list: %s (%s)", d, fmt.Sprintf("%s, Tofino %d", form.Name, target))
	}
}
