package loader

import (
	"errors"
	"strings"
	"testing"
)

// Two algorithms that steer are refused in one chain; the error names the settings that make them do so.
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
