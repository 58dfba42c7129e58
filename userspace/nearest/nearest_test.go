package nearest

import "testing"

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "bc", 1}, {"bc", "abc", 1}, {"abc", "axc", 1}, {"abc", "acb", 2},
		{"kitten", "sitting", 3}, {"fridge", "frigde", 2}, {"ab", "ba", 2},
	} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q in %d steps, want %d", c.a, c.b, got, c.want)
		}
	}
}

// The nearest is at most two steps away, and not everything about it is new; the beginning of a name is near it.
func TestOf(t *testing.T) {
	names := []string{"fridge", "lean", "precision", "hhh", "go"}
	for typed, want := range map[string]string{"frdge": "fridge", "FRIDGE": "fridge", "prec": "precision", "p": "", "fridgexx": "fridge", "fridgexxx": "",
		"hhg": "hhh", "l": "", "xy": "", "leen": "lean", "gx": "go", "f": ""} {
		if got := Of(typed, names); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
	if got := Hint("leen", names); got != "; did you mean lean?" {
		t.Errorf("hint %q", got)
	}
	if got := Hint("nothing", names); got != "" {
		t.Errorf("hint %q", got)
	}
}
