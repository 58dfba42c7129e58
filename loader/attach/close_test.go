package attach

import (
	"slices"
	"testing"
)

// released records the order in which holds are released.
type released struct {
	Hold
	name  string
	order *[]string
}

func (r released) Release() error {
	*r.order = append(*r.order, r.name)
	return nil
}

// The start of transmission is watched before TC egress is attached, and until it is detached.
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
