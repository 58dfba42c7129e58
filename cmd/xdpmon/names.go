package main

import (
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/userspace/names"
)

// nameOptions are the flags of what stands beside addresses and ports.
type nameOptions struct {
	sources []string
	files   []string
}

// nameSources are what --names takes.
var nameSources = []string{"services", "dns", "none"}

func addNames(cmd *cobra.Command) *nameOptions {
	o := &nameOptions{}
	cmd.Flags().StringSliceVar(&o.sources, "names", []string{"services"}, "`SOURCE,...` of names beside addresses and ports: services (of ports), dns (learned from DNS answers that arrive), none")
	cmd.Flags().StringSliceVar(&o.files, "names-file", nil, "database of autonomous systems or countries in MaxMind's format, `FILE.mmdb`; repeatable")
	return o
}

// open reads what was asked for; live, the socket that DNS answers are learned from is opened, which takes a privilege that is given up later.
func (o *nameOptions) open(live bool, notice func(string, ...any)) (*names.Names, *names.Listener, error) {
	for _, s := range o.sources {
		if !slices.Contains(nameSources, s) {
			return nil, nil, cli.UsageError("--names %q: allowed are %s", s, strings.Join(nameSources, ", "))
		}
	}
	if slices.Contains(o.sources, "none") && len(o.sources) > 1 {
		return nil, nil, cli.UsageError("--names %s: none excludes the others", strings.Join(o.sources, ","))
	}
	dns := slices.Contains(o.sources, "dns")
	n, err := names.New(names.Options{Services: slices.Contains(o.sources, "services"), DNS: dns, Files: o.files, Warn: notice})
	if err != nil || !dns || !live {
		return n, nil, err
	}
	l, err := names.Listen(n)
	return n, l, err
}

// listenOn learns from answers that arrive on interfaces, by their present numbers.
func listenOn(l *names.Listener, ifaces []string) {
	var indexes []int
	for _, name := range ifaces {
		if i, err := net.InterfaceByName(name); err == nil {
			indexes = append(indexes, i.Index)
		}
	}
	l.On(indexes...)
}
