// Package known holds the names of an address, a network or a port in a report: text for people, fields for programs.
package known

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Kinds of guests.
const (
	GuestDomain    = "domain"    // a virtual machine of libvirt, by its name
	GuestPod       = "pod"       // by its UID
	GuestContainer = "container" // by the twelve digits of its ID that engines show
	GuestLXC       = "lxc"       // by its name
	GuestNamespace = "namespace" // a network namespace with a name (ip netns)
)

// Guest is the virtual machine or container that an interface or an address belongs to.
type Guest struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// String is the guest in one word or two: "web-3", "pod 6a1f...", "" for none.
func (g Guest) String() string {
	switch g.Kind {
	case GuestPod, GuestContainer, GuestLXC:
		return g.Kind + " " + g.Name
	}
	return g.Name
}

// Name holds the names of one address, network or port.
type Name struct {
	Column  string `json:"column,omitempty"` // of the table; "" in a finding
	Of      string `json:"of"`               // the text that it names: "10.0.0.1", "443"
	Service string `json:"service,omitempty"`
	DNS     string `json:"dns,omitempty"` // what a DNS answer resolved to the address
	Guest   Guest  `json:"guest,omitzero"`
	AS      uint32 `json:"as,omitempty"`
	ASName  string `json:"as_name,omitempty"`
	Country string `json:"country,omitempty"` // ISO 3166
}

// Known reports whether it names anything.
func (n Name) Known() bool {
	return n != Name{Column: n.Column, Of: n.Of}
}

// String lists all names, for people: "web-3", "www.example.com, AS64500 Example, DE", "https".
func (n Name) String() string {
	system := n.ASName
	if n.AS != 0 {
		system = strings.TrimSpace("AS" + strconv.FormatUint(uint64(n.AS), 10) + " " + n.ASName)
	}
	return join(", ", n.Service, n.Guest.String(), n.DNS, system, n.Country)
}

// host is the most specific name of an address's host.
func (n Name) host() string {
	n.Service = ""
	return cmp.Or(n.Guest.String(), n.DNS, n.String())
}

// Row is a row's names in a few words: "web-3 > www.example.org (https)".
func Row(names []Name) string {
	var hosts, services []string
	for _, n := range names {
		hosts, services = append(hosts, n.host()), append(services, n.Service)
	}
	text, ports := join(" > ", hosts...), join(", ", services...)
	if text == "" || ports == "" {
		return text + ports
	}
	return text + " (" + ports + ")"
}

// join omits empty parts, and makes the others safe for a terminal.
func join(between string, parts ...string) string {
	var list []string
	for _, part := range parts {
		if part != "" {
			list = append(list, typeset.Printable(part))
		}
	}
	return strings.Join(list, between)
}

// Sanitized makes foreign text safe: valid UTF-8 without control characters, of at most most bytes.
func Sanitized(text string, most int) string {
	if len(text) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}
