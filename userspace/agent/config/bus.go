package config

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/keys"
)

// Bus says how an agent speaks with coordinators.
type Bus struct {
	Servers []string
	Name    string // of this host; "" for the host's own
	Keys    *keys.Files
	Buffer  int64
	Plan    string // where the coordinator's plan is kept for a start without it
}

// DefaultPlan is where that is.
const DefaultPlan = "/var/lib/xdpmon/plan"

// DefaultBuffer is some minutes of windows.
const DefaultBuffer = 16 << 20

// HostName is the name that a host has on the bus where the configuration gives none.
func HostName() string {
	name, err := os.Hostname()
	if err != nil || bus.CheckName(name) != nil {
		return "unnamed"
	}
	return name
}

func speak() kind {
	return object[Bus]{What: "bus", Defaults: func() Bus { return Bus{Name: HostName(), Buffer: DefaultBuffer, Plan: DefaultPlan} }, Fields: []field[Bus]{
		entry("servers", "where coordinators listen: tls://HOST:4222, or nats://127.0.0.1:4222 on this host", list[string]{What: "servers", Of: word{What: "a server", Check: checkServer}, Min: 1},
			true, to(func(b *Bus) *[]string { return &b.Servers })),
		entry("name", "of this host; its certificate bears it, too (the host's name)", nameKind, false, to(func(b *Bus) *string { return &b.Name })),
		entry("keys", "certificates, as `xdpmon keys` makes them", keyFiles(), false, func(b *Bus, v any) { f := v.(keys.Files); b.Keys = &f }),
		entry("buffer", "bytes that wait while no coordinator answers; the oldest windows go (16MiB)", size{What: "buffer", Min: 1 << 20, Max: 1 << 32}, false,
			to(func(b *Bus) *int64 { return &b.Buffer })),
		entry("plan", "a file that keeps the coordinator's plan for a start while it is away; 0600 ("+DefaultPlan+")", pathKind("plan"), false,
			to(func(b *Bus) *string { return &b.Plan })),
	}, Check: checkBus}
}

var nameKind = word{What: "name", Pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", Check: bus.CheckName}

func keyFiles() kind {
	return object[keys.Files]{What: "keys", Defaults: func() keys.Files { return keys.Files{} }, Fields: []field[keys.Files]{
		entry("ca", "the authority's certificate", pathKind("ca"), true, to(func(f *keys.Files) *string { return &f.CA })),
		entry("certificate", "one's own", pathKind("certificate"), true, to(func(f *keys.Files) *string { return &f.Certificate })),
		entry("key", "of it; 0600", pathKind("key"), true, to(func(f *keys.Files) *string { return &f.Key })),
		entry("revoked", "the list of what counts no more", pathKind("revoked"), false, to(func(f *keys.Files) *string { return &f.Revoked })),
	}}
}

// schemes that a server may have, and whether what is said is encrypted.
var schemes = map[string]bool{"tls": true, "nats": false}

func checkServer(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Path != "" || u.User != nil {
		return fmt.Errorf("server %q: tls://HOST:PORT, or nats://127.0.0.1:PORT on this host", text)
	}
	if _, known := schemes[u.Scheme]; !known {
		return fmt.Errorf("server %q: tls:// or nats://", text)
	}
	return nil
}

func checkBus(p *parser, at func(string) *yaml.Node, b *Bus) {
	for _, s := range b.Servers {
		u, err := url.Parse(s)
		if err != nil {
			continue
		}
		switch encrypted := schemes[u.Scheme]; {
		case encrypted && b.Keys == nil:
			p.Say(at("servers"), "%s needs keys: make them with `xdpmon keys`", s)
		case !encrypted && (b.Keys != nil || !loopback(u.Hostname())):
			p.Say(at("servers"), "%s leaves this host or has keys: tls://%s", s, u.Host)
		}
	}
}

// loopback reports whether an address stays on this host.
func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// entry is a key of a file.
func entry[T any](key, help string, k kind, required bool, set func(*T, any)) field[T] {
	return field[T]{Key: key, Help: help, Kind: k, Required: required, Set: set}
}
