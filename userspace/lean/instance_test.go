package lean

import (
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Who is added where others have been measuring begins in the bank that packets write to.
func TestBeginsInABank(t *testing.T) {
	v, err := algo.NewValues("lean", Descriptor().Params, nil)
	if err != nil {
		t.Fatal(err)
	}
	i, err := newInstance(v, algo.Env{})
	if err != nil {
		t.Fatal(err)
	}
	var told algo.Beginning = i.(*instance)
	for _, bank := range []int{1, 0} {
		if told.Begin(bank); i.(*instance).bank != bank {
			t.Errorf("begun in bank %d, looks at %d", bank, i.(*instance).bank)
		}
	}
}
