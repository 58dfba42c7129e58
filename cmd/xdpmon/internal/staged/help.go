package staged

import (
	"slices"
	"strings"
)

// Long is the help of demo.
const Long = `Without --listen: makes two hosts in network namespaces of their own with a link emulator between them, opens real TCP connections
from one to the other with delays that the emulator applies, attaches the algorithm in the middle, and shows
the estimate next to the exact values while they converge. The truth is measured by the emulator in user space, packet
by packet; the algorithm sees only what passes its hook.

The delays are log-normal with a long tail: 97 % around --median, 3 % from 200 to 800 ms. The fridge gets a table that is
far too small to store every slow handshake (256 entries unless --set changes that): watch it correct for that.

With --listen and no NAME, or with --incidents: three offices and two networks of servers with a router between them, on
which everything measures, and a timetable of incidents (a slow server, losses, a full queue, a scan, a flood, ...). Each
shows as a finding within two windows, in the output and on the page, and ends. It runs until Ctrl-C, and needs
iproute2 and 20 to 50 % of a core.

Your own network is not touched, and everything is removed at the end, after Ctrl-C and after failures too. It needs
root.`

// Example is how it is called.
const Example = `  sudo xdpmon demo
  sudo xdpmon demo --listen :9400                         staged incidents; the page is http://127.0.0.1:9400/
  sudo xdpmon demo --rate 1k/s --median 50ms --duration 2m
  sudo xdpmon demo --set fridge.fridges=64@1              even less memory
  sudo xdpmon demo fridge,rtt-array                       with a plain table of the same size`

// defaults are parameters that make handshakes worth watching.
var defaults = map[string][]string{
	"fridge":    {"fridge.fridges=256@1", "fridge.legs=false"},
	"rtt-array": {"rtt-array.entries=256"},
}

// Defaults adds the defaults of parameters that are not set (NAME.KEY=VALUE).
func Defaults(algorithms, set []string) []string {
	for _, name := range algorithms {
		for _, text := range defaults[name] {
			path, _, _ := strings.Cut(text, "=")
			if !slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, path+"=") }) {
				set = append(set, text)
			}
		}
	}
	return set
}
