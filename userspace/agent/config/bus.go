package config

import (
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/bus"
	file "github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/config/parts"
	"github.com/xdpmon/xdpmon/userspace/keys"
)

// Bus configures an agent's link to coordinators.
type Bus struct {
	Servers []string
	Name    string // of this host; "": its host name
	Keys    *keys.Files
	Buffer  int64
	Plan    string // file with the coordinator's plan, for a start without a coordinator
}

// DefaultPlan is the default of Plan.
const DefaultPlan = "/var/lib/xdpmon/plan"

// DefaultBuffer holds some minutes of windows, bytes.
const DefaultBuffer = 16 << 20

// HostName is the name of a host on the bus if the configuration sets none.
func HostName() string {
	name, err := os.Hostname()
	if err != nil || bus.CheckName(name) != nil {
		return "unnamed"
	}
	return name
}

func busKind() kind {
	return object[Bus]{What: "bus", Defaults: func() Bus { return Bus{Name: HostName(), Buffer: DefaultBuffer, Plan: DefaultPlan} }, Fields: []field[Bus]{
		file.Entry("servers", "addresses of coordinators: tls://HOST:4222, or nats://127.0.0.1:4222 on this host", parts.Servers("servers"),
			true, to(func(b *Bus) *[]string { return &b.Servers })),
		file.Entry("name", "name of this host, as in its certificate (the host's name)", parts.HostName, false, to(func(b *Bus) *string { return &b.Name })),
		file.Entry("keys", "certificates, as `xdpmon-coordinator keys` makes them", parts.KeyFiles(), false, func(b *Bus, v any) { f := v.(keys.Files); b.Keys = &f }),
		file.Entry("buffer", "bytes of windows that are buffered while no coordinator answers; the oldest are dropped (16MiB)", size{What: "buffer", Min: 1 << 20, Max: 1 << 32}, false,
			to(func(b *Bus) *int64 { return &b.Buffer })),
		file.Entry("plan", "file that stores the coordinator's plan, for a start without a coordinator; mode 0600 ("+DefaultPlan+")", file.Path("plan"), false,
			to(func(b *Bus) *string { return &b.Plan })),
	}, Check: checkBus}
}

func checkBus(p *parser, at func(string) *yaml.Node, b *Bus) {
	parts.CheckServers(p, at("servers"), b.Servers, b.Keys)
}
