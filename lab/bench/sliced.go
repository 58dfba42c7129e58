package bench

import (
	"fmt"
	"os"
	"strings"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// sliced are ahab's memberships by a file of slices: of an interface, which is compared, and of 512 slices by the prefix of the source.
func sliced() (list []Subject, err error) {
	var prefixes strings.Builder
	for n := range 511 {
		fmt.Fprintf(&prefixes, "  - {name: s%d, match: {sources: [10.%d.%d.0/24]}}\n", n, n>>8, n&255)
	}
	prefixes.WriteString("  - {name: servers, match: {sources: [198.51.100.0/24, '2001:db8::/32']}}\n")
	for _, c := range []struct{ name, what, slices string }{
		{"ahab_interface", "ahab, slices by interface", "capacity: 100Gbit\nslices:\n  - {name: all, match: {interfaces: [lo]}}\n"},
		{"ahab_prefixes", "ahab, 512 slices by prefix of the source", "capacity: 1Tbit\nslices:\n" + prefixes.String()},
	} {
		s, err := filed(c.slices)
		if err != nil {
			return nil, err
		}
		s.Name, s.object, s.What = c.name, "ahab", c.what
		list = append(list, s)
	}
	return list, nil
}

// filed is ahab with these slices, which are to be large enough that nobody is above a limit.
func filed(slices string) (Subject, error) {
	s, err := Configured("ahab", nil)
	if err != nil {
		return s, err
	}
	s.prepare = func() (loader.Object, algo.Instance, error) {
		file, err := os.CreateTemp("", "xdpmon-bench-")
		if err != nil {
			return loader.Object{}, nil, err
		}
		defer os.Remove(file.Name())
		if _, err = file.WriteString(slices); err != nil {
			return loader.Object{}, nil, err
		}
		if err = file.Close(); err != nil {
			return loader.Object{}, nil, err
		}
		c, err := Configured("ahab", map[string]string{"config": file.Name()})
		if err != nil {
			return loader.Object{}, nil, err
		}
		return c.prepare()
	}
	return s, nil
}
