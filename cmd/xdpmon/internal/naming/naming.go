// Package naming has the flags of names for addresses and ports.
package naming

import (
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/userspace/agent"
	"github.com/xdpmon/xdpmon/userspace/names"
)

// Options are the values of the flags.
type Options struct {
	sources []string
	files   []string
}

// all are the values of --names.
var all = []string{"services", "guests", "dns", "none"}

// Add adds the flags to a verb, which has names of these sources by default.
func Add(cmd *cobra.Command, sources ...string) *Options {
	o := &Options{}
	cmd.Flags().StringSliceVar(&o.sources, "names", sources, "`SOURCE,...` of names for addresses and ports: services (of ports), guests (of this host, as they are at the start; not of captures), dns (learned from DNS answers that arrive), none")
	cmd.Flags().StringSliceVar(&o.files, "names-file", nil, "database of autonomous systems or countries in MaxMind's format, `FILE.mmdb`; repeatable")
	return o
}

// Open reads the requested databases; live, it opens the socket that DNS answers are learned from, which needs a privilege that is dropped later.
func (o *Options) Open(live bool, notice func(string, ...any)) (*names.Names, *names.Listener, error) {
	for _, s := range o.sources {
		if !slices.Contains(all, s) {
			return nil, nil, cli.UsageError("--names %q: allowed are %s", s, strings.Join(all, ", "))
		}
	}
	if slices.Contains(o.sources, "none") && len(o.sources) > 1 {
		return nil, nil, cli.UsageError("--names %s: none excludes the others", strings.Join(o.sources, ","))
	}
	dns := slices.Contains(o.sources, "dns")
	n, err := names.New(names.Options{Services: slices.Contains(o.sources, "services"), DNS: dns, Files: o.files, Warn: notice})
	if err == nil && live && slices.Contains(o.sources, "guests") {
		guests, err := agent.Guests()
		if err != nil {
			notice("guests have no names: %v", err)
		}
		n.SetGuests(guests)
	}
	if err != nil || !dns || !live {
		return n, nil, err
	}
	l, err := names.Listen(n)
	return n, l, err
}

// ListenOn learns from answers that arrive on interfaces, by their present numbers.
func ListenOn(l *names.Listener, ifaces []string) {
	var indexes []int
	for _, name := range ifaces {
		if i, err := net.InterfaceByName(name); err == nil {
			indexes = append(indexes, i.Index)
		}
	}
	l.On(indexes...)
}
