package p4text

import (
	"strings"
	"testing"
)

// A table is valid P4, with its entries and the default action.
func TestTable(t *testing.T) {
	var text Text
	text.Table("which", []string{"a : exact", "b : ternary"}, []string{"yes", "NoAction"}, []string{"(1, 2) : yes()"}, "NoAction()")
	want := `    table which {
        key = {
            a : exact;
            b : ternary;
        }
        actions = {
            yes;
            NoAction;
        }
        const entries = {
            (1, 2) : yes();
        }
        const default_action = NoAction();
        size = 1;
    }

    apply {
        which.apply();
    }
}
`
	if got := text.out.String(); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}
