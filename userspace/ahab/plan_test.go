package ahab

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

func planned(t *testing.T, memory int64, set map[string]string) ([][]any, error) {
	t.Helper()
	v, err := algo.NewValues(Name, params, set)
	if err != nil {
		t.Fatal(err)
	}
	b, err := descriptor().Plan(v, algo.PlanArgs{RatePerSecond: 1e5, MemoryBytes: memory})
	if err != nil {
		return nil, err
	}
	return b.Tables[0].Rows, nil
}

// What a plan takes is what the arrays take.
func TestPlanTakesWhatArraysTake(t *testing.T) {
	for _, form := range []string{"exact", "table"} {
		t.Run(form, func(t *testing.T) { planTakes(t, form) })
	}
}

func planTakes(t *testing.T, form string) {
	const slices = `{"room":100,"slices":[{"name":"a"}]}`
	rows, err := planned(t, 104_000, map[string]string{"config": slices, "form": form})
	if err != nil || len(rows) == 0 {
		t.Fatal(rows, err)
	}
	v, err := algo.NewValues(Name, params, map[string]string{"config": slices, "form": form, "columns": "2048"})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0][0] != "columns=2048" {
		t.Fatalf("%v", rows)
	}
	d := descriptor()
	spec, err := d.Spec()
	if err != nil {
		t.Fatal(err)
	}
	i, err := descriptor().New(v, algo.Env{Setup: algo.Setup{Replay: true}})
	if err == nil {
		err = i.Configure(spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := arrays(spec); got != rows[0][1] {
		t.Errorf("%d bytes of arrays, the plan has %v", got, rows[0][1])
	}
}

// arrays of an object: bytes of its registers and tallies, both banks.
func arrays(spec *ebpf.CollectionSpec) (n int64) {
	for _, m := range spec.Maps {
		for _, tag := range m.Tags {
			if tag == maps.TagRegister || tag == maps.TagTally {
				n += int64(m.MaxEntries) * int64(m.ValueSize)
				break
			}
		}
	}
	return n
}

func TestPlanRefuses(t *testing.T) {
	if _, err := planned(t, 1000, nil); !errors.Is(err, errPlan) {
		t.Errorf("1000 bytes: %v", err)
	}
}
