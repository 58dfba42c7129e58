package report

import "testing"

// Hosts are counted, and those that something is wrong with are named; what is 0 is not written for people, and is for programs.
func TestHosts(t *testing.T) {
	all := Hosts{Known: 5, Merged: 3, Missing: 2, MissingNames: []string{"a", "b\x1b"}, Windows: 9, Skewed: 1, Cut: 2, Unmeasured: 3, Vantage: "declared once", FlowsShared: 4, FlowsTwice: 6, TwiceNames: []string{"c", "d"}}
	for want, h := range map[string]Hosts{
		"3 of 5": {Known: 5, Merged: 3}, "3 of 5; missing a, b": {Known: 5, Merged: 3, Missing: 2, MissingNames: []string{"a", "b"}}, "1 of 1; 2 windows cut": {Known: 1, Merged: 1, Cut: 2},
		`3 of 5; missing a, b\x1b; 1 windows off in time; 2 windows cut; 3 windows with unmeasured clocks; 6 flows may be counted twice: similar counts at c, d`: all,
	} {
		if got := h.text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, h := range map[string]Hosts{
		`{"known":5,"merged":3,"missing":2,"missing_names":["a","b\u001b"],"windows":9,"windows_skewed":1,"windows_cut":2,"windows_unmeasured":3,"vantage":"declared once","flows_shared":4,"flows_twice":6,"twice_names":["c","d"]}`: all,
		`{"known":0,"merged":0,"missing":0,"missing_names":[],"windows":0,"windows_skewed":0,"windows_cut":0,"windows_unmeasured":0,"vantage":"","flows_shared":0,"flows_twice":0,"twice_names":[]}`:                                  {},
	} {
		if got, err := h.object().MarshalJSON(); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
