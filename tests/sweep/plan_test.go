package sweep

import (
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// TestPlansWithoutFlags: `xdpmon plan NAME` without flags has an answer, and no error about flags.
func TestPlansWithoutFlags(t *testing.T) {
	planned := 0
	for _, d := range algo.All() {
		if !algo.Implements[algo.Planner](d) {
			continue
		}
		planned++
		args := d.PlanDefaults()
		v, err := algo.NewValues(d.Name, d.Params, nil)
		if err != nil {
			t.Fatal(err)
		}
		args.Extra = map[string]string{}
		if body, err := d.Plan(v, args); err != nil || len(body.Values)+len(body.Tables) == 0 {
			t.Errorf("plan %s: %+v, %v", d.Name, body, err)
		}
	}
	if planned < 5 {
		t.Errorf("%d algorithms have a plan", planned)
	}
}
