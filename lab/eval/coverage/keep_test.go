package coverage

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/xdpmon/xdpmon/tests/outcome"
)

// What an interrupted study has is not run again, unless other seeds, other traffic or another build ask for it.
func TestPieces(t *testing.T) {
	k, runs := keep(t.TempDir()), 0
	outcomes := []outcome.Outcome{{Quantity: "n", Value: 1, Low: 0.5, High: 2, Enclosed: true, Samples: math.Inf(1), Truth: 1.5, Judged: true}}
	ask := func(c Cell, first uint64) (got [][]outcome.Outcome) {
		t.Helper()
		err := k.run(c, first, 25, func(config int, list []outcome.Outcome) {
			if config != 3 {
				t.Errorf("configuration %d", config)
			}
			got = append(got, list)
		}, func(emit func(int, []outcome.Outcome)) error {
			runs++
			emit(3, outcomes)
			emit(3, outcomes)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	c := Cell{Name: "model", Configs: []Config{{Name: "small"}}}
	for range 2 {
		if got := ask(c, 1); !reflect.DeepEqual(got, [][]outcome.Outcome{outcomes, outcomes}) {
			t.Errorf("got %v", got)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs of one piece", runs)
	}
	ask(c, 26)
	c.Configs[0].Set = map[string]string{"p": "1/8"}
	ask(c, 1)
	k.build = func() ([]byte, error) { return []byte("another"), nil }
	ask(c, 1)
	if runs != 4 {
		t.Errorf("%d runs of four pieces", runs)
	}
	bad := errors.New("bad")
	if err := k.run(c, 99, 25, nil, func(func(int, []outcome.Outcome)) error { return bad }); !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
	ask(c, 99)
	if runs != 5 {
		t.Error("what failed was kept")
	}
}
