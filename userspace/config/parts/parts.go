// Package parts holds the common parts of the configurations of agents and coordinators: algorithms, names, servers and keys.
package parts

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/keys"
)

// Window is the length of a window.
var Window = config.Duration{What: "window", Min: 100 * time.Millisecond, Max: 24 * time.Hour}

// RuleName is the name of an agent's rule or a coordinator's measurement.
var RuleName = config.Word{What: "name", Pattern: ruleName.String(), Check: func(text string) error {
	if !ruleName.MatchString(text) {
		return fmt.Errorf("name %q: 1 to 32 letters, digits, dots, - and _", text)
	}
	return nil
}}

var ruleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$`)

// Patterns match names of interfaces or hosts.
var Patterns = config.List[string]{What: "a list of patterns", Of: config.Word{What: "a pattern", Check: func(text string) error {
	if _, err := path.Match(text, ""); err != nil || strings.ContainsAny(text, "/ ") {
		return fmt.Errorf("pattern %q: give a name with * ? and [a-z], without / and blanks", text)
	}
	return nil
}}, Min: 1}

// NameNode is the node of the value of `name` of the i-th rule.
func NameNode(list *yaml.Node, i int) *yaml.Node {
	if list.Kind != yaml.SequenceNode || i >= len(list.Content) {
		return list
	}
	r := list.Content[i]
	for k := 0; k+1 < len(r.Content); k += 2 {
		if r.Content[k].Value == "name" {
			return r.Content[k+1]
		}
	}
	return r
}

// HostName is the name of an agent or coordinator.
var HostName = config.Word{What: "name", Pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", Check: bus.CheckName}

// KeyFiles are certificates.
func KeyFiles() config.Kind {
	return config.Object[keys.Files]{What: "keys", Defaults: func() keys.Files { return keys.Files{} }, Fields: []config.Field[keys.Files]{
		config.Entry("ca", "the authority's certificate", config.Path("ca"), true, config.To(func(f *keys.Files) *string { return &f.CA })),
		config.Entry("certificate", "one's own", config.Path("certificate"), true, config.To(func(f *keys.Files) *string { return &f.Certificate })),
		config.Entry("key", "of it; 0600", config.Path("key"), true, config.To(func(f *keys.Files) *string { return &f.Key })),
		config.Entry("revoked", "list of revoked certificates", config.Path("revoked"), false, config.To(func(f *keys.Files) *string { return &f.Revoked })),
	}}
}

// schemes of server URLs, and whether they are encrypted.
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

// Loopback reports whether an address stays on this host.
func Loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Address is HOST:PORT.
func Address(what string) config.Kind {
	return config.Word{What: what, Check: func(text string) error {
		host, port, err := net.SplitHostPort(text)
		if err != nil || host == "" {
			return fmt.Errorf("%s %q: HOST:PORT", what, text)
		}
		if _, err := net.LookupPort("tcp", port); err != nil {
			return fmt.Errorf("%s %q: %q is not a TCP port", what, text, port)
		}
		return nil
	}}
}

// Servers is a list of coordinators' addresses.
func Servers(what string) config.Kind {
	return config.List[string]{What: what, Of: config.Word{What: "a server", Check: checkServer}, Min: 1}
}

// CheckServers records an error for each server on another host without keys; n is the node of the list.
func CheckServers(p *config.Parser, n *yaml.Node, servers []string, files *keys.Files) {
	for _, s := range servers {
		u, err := url.Parse(s)
		if err != nil {
			continue
		}
		switch encrypted := schemes[u.Scheme]; {
		case encrypted && files == nil:
			p.Errorf(n, "%s needs keys: make them with `xdpmon-coordinator keys`", s)
		case !encrypted && (files != nil || !Loopback(u.Hostname())):
			p.Errorf(n, "%s is on another host, or keys are set: use tls://%s", s, u.Host)
		}
	}
}
