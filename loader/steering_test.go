package loader

import (
	"errors"
	"strings"
	"testing"
)

// A packet is steered in one way: two algorithms that do it are refused by the settings that make them.
func TestOneSteers(t *testing.T) {
	pace, class, none := Object{Steering: Steering{By: "a.act=pace", Delays: true}}, Object{Steering: Steering{By: "b.action=class"}}, Object{}
	for _, fine := range [][]Object{nil, {none}, {pace}, {none, class}} {
		if err := oneSteers(fine); err != nil {
			t.Errorf("%v: %v", fine, err)
		}
	}
	err := oneSteers([]Object{pace, none, class})
	if !errors.Is(err, ErrSteering) || !strings.Contains(err.Error(), "a.act=pace and b.action=class") {
		t.Errorf("%v", err)
	}
}
