package attach

import (
	"slices"
	"testing"
)

// released notes in which order holds are.
type released struct {
	Hold
	name  string
	order *[]string
}

func (r released) Release() error {
	*r.order = append(*r.order, r.name)
	return nil
}

// Whoever watches packets leave is there before they are handed over, and until they are handed over no more.
func TestClosesBackward(t *testing.T) {
	var order []string
	a := &Attachment{}
	for _, name := range []string{"the start of transmission", "TC egress"} {
		a.points = append(a.points, Point{Hold: released{name: name, order: &order}})
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"TC egress", "the start of transmission"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}
