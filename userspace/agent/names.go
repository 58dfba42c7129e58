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

// namer finds what interfaces serve. What it cannot read it does not name; nothing that measures depends on it.
type namer struct {
	cfg     config.Names
	log     *slog.Logger
	root    string // of the file system, for tests
	said    bool   // that libvirt's files cannot be read
	seen    map[int]report.Guest
	unknown map[int]int // how often a namespace was looked for in vain
}

func newNamer(cfg config.Names, log *slog.Logger) *namer {
	return &namer{cfg: cfg, log: log, root: "/", seen: map[int]report.Guest{}, unknown: map[int]int{}}
}

// name fills in whom links serve.
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

// domain is what is read of one of libvirt's run-time files: the description of a domain that runs.
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

// domains are libvirt's, by the interface on this side.
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
	if !n.said {
		n.log.Warn("libvirt's domains unavailable, interfaces without their names", "error", err)
	}
	n.said = true
}

// tries is how often the processes are looked through for a namespace that none of them was found in.
const tries = 5

// namespaces are names by the number that this namespace has for others. The processes are looked through only when there is one that
// was not seen before.
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
	for id := range n.seen { // the number may be given to another one day
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

// lookNamed finds namespaces that have a name of their own (ip netns).
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

// lookProcesses finds the containers that namespaces belong to by the control group of a process inside. The kernel tells everybody the
// number of a process' namespace, so that no privilege is needed.
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

// container names what a control group belongs to: a pod by its UID, a container by the twelve digits that engines show, an LXC container by
// its name; none for what is no guest.
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
