package session

import (
	"errors"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// passes is an algorithm that recirculates.
type passes struct {
	algo.Instance
	share float64
	delay int
}

func (p passes) RecirculationShare() float64 { return p.share }
func (p passes) RecirculationDelay() int     { return p.delay }

// Second passes are held back for one algorithm that has any, and for no two.
func TestOneIsDelayed(t *testing.T) {
	for _, c := range []struct {
		list []algo.Instance
		want int
		err  error
	}{
		{nil, 0, nil},
		{[]algo.Instance{passes{share: 0.1}, passes{share: 0.1}}, 0, nil},
		{[]algo.Instance{passes{share: 0.1, delay: 7}}, 7, nil},
		{[]algo.Instance{passes{share: 0.1, delay: 7}, passes{share: 0}}, 7, nil},
		{[]algo.Instance{passes{share: 0.1, delay: 7}, passes{share: 0.1}}, 0, ErrDelay},
	} {
		if got, err := recirculationDelay(c.list); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%v: %d, %v; want %d, %v", c.list, got, err, c.want, c.err)
		}
	}
}
