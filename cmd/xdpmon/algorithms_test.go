package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// A paper is cited so that anybody can find it: authors, title, venue and year, and where in it.
func TestPapersCanBeFound(t *testing.T) {
	citation := regexp.MustCompile(`^\p{Lu}[\pL, ]+: ".+", .+20\d\d, (section|chapter)s? \d`)
	for _, d := range algo.All() {
		if !strings.HasPrefix(d.Name, "test-") && !citation.MatchString(d.Paper) {
			t.Errorf("%s cites %q", d.Name, d.Paper)
		}
	}
}
