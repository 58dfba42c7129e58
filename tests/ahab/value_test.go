package ahab

import (
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/ahab/link"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// window ends one of a second.
func window(t *testing.T, l *link.Link) algo.Result {
	t.Helper()
	r, err := l.End(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func value(t *testing.T, r algo.Result, name string) uint64 {
	t.Helper()
	for _, v := range r.Body.Values {
		if v.Name == name {
			return v.Value.(uint64)
		}
	}
	t.Fatalf("the report has no %s", name)
	return 0
}
