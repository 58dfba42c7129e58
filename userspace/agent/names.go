package agent

import (
	"encoding/xml"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

// namer finds the guests that interfaces belong to. It leaves an interface unnamed if a source is unreadable; no measurement
// depends on it.
type namer struct {
	cfg     config.Names
	log     *slog.Logger
	root    string // root of the file system, for tests
	warned  bool   // that libvirt's files cannot be read
	seen    map[int]report.Guest
	unknown map[int]int // failed searches for a namespace
}

func newNamer(cfg config.Names, log *slog.Logger) *namer {
	return &namer{cfg: cfg, log: log, root: "/", seen: map[int]report.Guest{}, unknown: map[int]int{}}
}

// name fills in the guests of links.
func (n *namer) name(links []Link) {
	domains := n.domains()
	spaces := n.namespaces(links)
	for i := range links {
		if name := domains[links[i].Name]; name != "" {
			links[i].Guest = report.Guest{Kind: known.GuestDomain, Name: name}
		} else if links[i].Kind == "veth" && links[i].Namespace >= 0 {
			links[i].Guest = spaces[links[i].Namespace]
		}
	}
}

// domain is the part that is read of one of libvirt's run-time files, which describe a running domain.
type domain struct {
	Name       string `xml:"domain>name"`
	Interfaces []struct {
		Target struct {
			Dev string `xml:"dev,attr"`
		} `xml:"target"`
	} `xml:"domain>devices>interface"`
}

// maxXML bounds a file: a description of a domain is some kilobytes.
const maxXML = 4 << 20

// domains are libvirt's domains, by the host's side of their interfaces.
func (n *namer) domains() map[string]string {
	if !n.cfg.Libvirt {
		return nil
	}
	found := map[string]string{}
	for _, dir := range []string{"run/libvirt/qemu", "var/run/libvirt/qemu", "run/libvirt/lxc"} {
		paths, _ := filepath.Glob(filepath.Join(n.root, dir, "*.xml"))
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil || info.Size() > maxXML {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				n.complain(err)
				continue
			}
			var d domain
			if xml.Unmarshal(text, &d) != nil {
				continue // it is being written
			}
			for _, i := range d.Interfaces {
				found[i.Target.Dev] = d.Name
			}
		}
	}
	return found
}

func (n *namer) complain(err error) {
	if !n.warned {
		n.log.Warn("libvirt's domains unavailable, interfaces without their names", "error", err)
	}
	n.warned = true
}

// tries is how often all processes are searched for a namespace that none was found in.
const tries = 5

// namespaces are guests by the ID of their network namespace. Processes are searched only when there is an unknown ID.
func (n *namer) namespaces(links []Link) map[int]report.Guest {
	if !n.cfg.Namespaces {
		return nil
	}
	there, look := map[int]bool{}, false
	for _, l := range links {
		if l.Kind == "veth" && l.Namespace >= 0 {
			there[l.Namespace] = true
			if _, known := n.seen[l.Namespace]; !known && n.unknown[l.Namespace] < tries {
				n.unknown[l.Namespace]++
				look = true
			}
		}
	}
	for id := range n.seen { // the ID may be reused
		if !there[id] {
			delete(n.seen, id)
		}
	}
	for id := range n.unknown {
		if !there[id] {
			delete(n.unknown, id)
		}
	}
	if look {
		n.lookNamed(there)
		n.lookProcesses(there)
	}
	return n.seen
}

// lookNamed finds named namespaces (ip netns).
func (n *namer) lookNamed(there map[int]bool) {
	entries, _ := os.ReadDir(filepath.Join(n.root, "run/netns"))
	for _, e := range entries {
		f, err := os.Open(filepath.Join(n.root, "run/netns", e.Name()))
		if err != nil {
			continue
		}
		if id, err := netlink.GetNetNsIdByFd(int(f.Fd())); err == nil && there[id] {
			n.seen[id] = report.Guest{Kind: known.GuestNamespace, Name: e.Name()}
		}
		f.Close()
	}
}

// lookProcesses finds the container of a namespace by the control group of a process in it. The inode of a process' namespace is
// readable without a privilege.
func (n *namer) lookProcesses(there map[int]bool) {
	entries, _ := os.ReadDir(filepath.Join(n.root, "proc"))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		group, err := os.ReadFile(filepath.Join(n.root, "proc", e.Name(), "cgroup"))
		if err != nil {
			continue
		}
		guest := container(string(group))
		if guest.Name == "" {
			continue
		}
		id, err := netlink.GetNetNsIdByPid(pid)
		if err != nil || !there[id] {
			continue
		}
		if _, known := n.seen[id]; !known {
			n.seen[id] = guest
		}
	}
}

var (
	podUID      = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})`)
	containerID = regexp.MustCompile(`(?:^|[-/:])([0-9a-f]{64})(?:\.scope)?(?:/|$)`)
	machine     = regexp.MustCompile(`/(?:machine-(?:qemu|lxc)[^/]*|lxc\.payload\.([^/]+)|lxc/([^/]+))`)
)

// container is the guest of a control group: a pod by its UID, a container by the twelve digits of its ID that engines show, an LXC
// container by its name; empty if the group is not a guest's.
func container(group string) report.Guest {
	for line := range strings.Lines(group) {
		line = strings.TrimSpace(line)
		if m := podUID.FindStringSubmatch(line); m != nil {
			return report.Guest{Kind: known.GuestPod, Name: strings.ReplaceAll(m[1], "_", "-")}
		}
		if m := containerID.FindStringSubmatch(line); m != nil {
			return report.Guest{Kind: known.GuestContainer, Name: m[1][:12]}
		}
		if m := machine.FindStringSubmatch(line); m != nil {
			if i := slices.IndexFunc(m[1:], func(s string) bool { return s != "" }); i >= 0 {
				return report.Guest{Kind: known.GuestLXC, Name: m[i+1]}
			}
		}
	}
	return report.Guest{}
}
