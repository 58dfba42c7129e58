// Package status lists the programs of xdpmon on the interfaces of this host, of any process.
package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/bpf/trace"
	"github.com/xdpmon/xdpmon/bpf/verdict"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/pin"
	"github.com/xdpmon/xdpmon/loader/privilege"
)

// Attachment is one program of xdpmon on this host, or a pin whose program is on no interface any more.
type Attachment struct {
	Interface string `json:"interface"` // empty: in another network namespace
	Index     int    `json:"index"`
	attach.Occupant
	Instance ebpf.MapID `json:"instance"` // attachments with the same number share their registers
	// Part is the number, from 1 on, of an instance among those that share its programs and maps; 0 where it shares none.
	Part       int      `json:"part,omitempty"`
	Algorithms []string `json:"algorithms"`
	Pin        string   `json:"pin,omitempty"`
	// Packets seen by the instance since its window began, all interfaces together; the run that adopts a pin
	// reports them.
	Packets uint64 `json:"window_packets"`
	// Verdicts count the instance's actions on packets since its window began; nil if it only measures.
	Verdicts *Verdicts `json:"window_verdicts,omitempty"`
	Problem  string    `json:"problem,omitempty"`
}

// List lists everything of xdpmon on this host, whichever process or pin holds it. It needs CAP_SYS_ADMIN
// to look at programs; without it the error wraps ErrMissing.
func List() ([]Attachment, error) {
	return Under(pin.Root)
}

func Under(root string) ([]Attachment, error) {
	links, err := ourLinks(root)
	if err != nil {
		return nil, fmt.Errorf("list attachments: %w", privilege.ExplainLook(err))
	}
	found := hereAttached(links)
	found = append(found, elsewhere(links, found)...)
	found = append(found, watchers()...)
	found = append(found, idlePins(root, found)...)
	held, chains := attach.ScanHolders(), chainsByInstance()
	for i := range found {
		found[i].PIDs = held.Of(found[i].Program, found[i].Link)
		found[i].fromProgram(chains)
	}
	return found, nil
}

// Where names the interface, as far as it is known.
func (a Attachment) Where() string {
	if a.Interface != "" {
		return a.Interface
	}
	return fmt.Sprintf("interface %d of another network namespace", a.Index)
}

// ourLink is a BPF link with a program of ours.
type ourLink struct {
	id    link.ID
	prog  ebpf.ProgramID
	index int
	dir   attach.Direction
	via   string
	pin   string
}

func ourLinks(root string) ([]ourLink, error) {
	var found []ourLink
	pins := pin.ByLink(root)
	err := attach.EachLink(func(l link.Link, info *link.Info) bool {
		if o, ok := describeLink(l, info); ok {
			o.pin = pins[o.id]
			found = append(found, o)
		}
		return true
	})
	return found, err
}

func describeLink(l link.Link, info *link.Info) (ourLink, bool) {
	if info.XDP() == nil && info.TCX() == nil {
		return ourLink{}, false
	}
	o := ourLink{id: info.ID, prog: info.Program, dir: attach.LinkDirection(l), via: "tcx"}
	if info.XDP() != nil {
		o.via = "xdp"
	}
	o.index, _ = attach.LinkIfindex(l)
	prog, err := ebpf.NewProgramFromID(info.Program)
	if err != nil {
		return o, false
	}
	defer prog.Close()
	pi, err := prog.Info()
	return o, err == nil && attach.IsOurs(pi)
}

// hereAttached lists the attachments on the interfaces of this network namespace.
func hereAttached(links []ourLink) []Attachment {
	var found []Attachment
	all, _ := netlink.LinkList()
	for _, l := range all {
		d := attach.DeviceOf(l)
		for _, o := range attach.Occupants(d) {
			if o.Ours {
				found = append(found, newInfo(d, o, links))
			}
		}
	}
	return found
}

func newInfo(d *attach.Device, o attach.Occupant, links []ourLink) Attachment {
	info := Attachment{Interface: d.Name, Index: d.Index, Occupant: o}
	if owner := o.Owner(); owner != nil {
		info.Pin = owner.Pin
		if owner.Dead() {
			info.Problem = "left by a killed process; `xdpmon detach " + d.Name + "` removes it"
		}
	}
	i := slices.IndexFunc(links, func(l ourLink) bool { return l.prog == o.Program })
	if i >= 0 {
		info.Link, info.Pin = links[i].id, links[i].pin
	}
	return info
}

// elsewhere lists our links that are on no interface of this namespace.
func elsewhere(links []ourLink, here []Attachment) []Attachment {
	var found []Attachment
	for _, l := range links {
		if slices.ContainsFunc(here, func(a Attachment) bool { return a.Link == l.id }) {
			continue
		}
		info := Attachment{Index: l.index, Pin: l.pin, Problem: "on an interface of another network namespace"}
		if l.index == 0 {
			info.Problem = "on no interface any more: it was removed, or the program was detached"
		}
		info.Occupant = attach.Occupant{Hook: hookOf(l.via), Direction: l.dir, Via: l.via, Program: l.prog, Link: l.id}
		info.Identify()
		found = append(found, info)
	}
	return found
}

// watchers lists the programs at the start of transmission, once for each interface that they watch.
func watchers() []Attachment {
	var found []Attachment
	_ = attach.EachWatcher(func(o attach.Occupant, keys []trace.TraceTraceKey) {
		for _, key := range keys {
			a := Attachment{Index: int(key.Ifindex), Occupant: o, Problem: "on an interface of another network namespace"}
			if attach.Watches(key) {
				a.Problem = ""
				if l, err := netlink.LinkByIndex(a.Index); err == nil {
					a.Interface = l.Attrs().Name
				}
			}
			found = append(found, a)
		}
	})
	return found
}

// idlePins lists pinned instances without packets: their interfaces were removed.
func idlePins(root string, found []Attachment) []Attachment {
	var idle []Attachment
	for _, name := range pin.Names(root) {
		of := pin.Interfaces(root, name)
		if len(of) == 0 {
			continue
		}
		if slices.ContainsFunc(found, func(a Attachment) bool { return a.Pin == name }) {
			continue
		}
		info := Attachment{Interface: of[0], Pin: name}
		info.Ours = true
		info.Problem = "pinned, and on no interface any more; `xdpmon detach " + name + "` removes it"
		idle = append(idle, info)
	}
	return idle
}

func hookOf(via string) attach.Hook {
	if via == "xdp" {
		return attach.HookXDP
	}
	return attach.HookTC
}

// fromProgram adds the data in the program's maps: its instance, and the packets that this has seen.
func (a *Attachment) fromProgram(chains map[ebpf.MapID]*chainOf) {
	number := 0
	if text, shared := strings.CutPrefix(a.Name, loader.GateName); shared {
		if n, err := strconv.Atoi(text); err == nil {
			number, a.Part = n, n+1
		}
	}
	for name, id := range mapsOf(a.Program) {
		switch name {
		case "chain_control":
			a.Instance = id
			if c := chains[id]; c != nil {
				a.Algorithms, a.Verdicts = c.algorithms, windowVerdicts(c.verdicts)
			}
		case "chain_counters":
			a.Packets = windowPackets(id, number)
		}
	}
}

// mapsOf returns the maps of a program by name.
func mapsOf(id ebpf.ProgramID) map[string]ebpf.MapID {
	found := map[string]ebpf.MapID{}
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return found
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return found
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		found[attach.MapName(id)] = id
	}
	return found
}

// windowPackets adds up the packet counts of both banks and all CPUs, of the instance with a number.
func windowPackets(id ebpf.MapID, number int) uint64 {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return 0
	}
	defer m.Close()
	var sum uint64
	for bank := range uint32(2) {
		var perCPU []chain.ChainChainCountersT
		if m.Lookup(2*uint32(number)+bank, &perCPU) != nil {
			return sum
		}
		for _, c := range perCPU {
			sum += packetsIn(c)
		}
	}
	return sum
}

func packetsIn(c chain.ChainChainCountersT) (sum uint64) {
	for _, n := range c.C[:chain.ChainParseReasonPARSE_REASONS] {
		sum += n
	}
	return sum
}

// Verdicts count an instance's actions on packets.
type Verdicts struct {
	Dropped      uint64 `json:"dropped"`
	DroppedBytes uint64 `json:"dropped_bytes"`
	Marked       uint64 `json:"marked"`
	MarkedBefore uint64 `json:"marked_before"`
	Steered      uint64 `json:"steered"`
	Unmarkable   uint64 `json:"unmarkable"`
}

// windowVerdicts adds up both banks and all CPUs; nil when there is no such map.
func windowVerdicts(id ebpf.MapID) *Verdicts {
	if id == 0 {
		return nil
	}
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return nil
	}
	defer m.Close()
	var sum [verdict.VerdictVerdictCountVERDICT_COUNTS]uint64
	for bank := range uint32(2) {
		var perCPU []verdict.VerdictVerdictCountsT
		if m.Lookup(bank, &perCPU) != nil {
			return nil
		}
		for _, c := range perCPU {
			for i, n := range c.C {
				sum[i] += n
			}
		}
	}
	return &Verdicts{
		Dropped:      sum[verdict.VerdictVerdictCountVERDICT_COUNT_DROPPED],
		DroppedBytes: sum[verdict.VerdictVerdictCountVERDICT_COUNT_DROPPED_BYTES],
		Marked:       sum[verdict.VerdictVerdictCountVERDICT_COUNT_MARKED],
		MarkedBefore: sum[verdict.VerdictVerdictCountVERDICT_COUNT_MARKED_BEFORE],
		Steered:      sum[verdict.VerdictVerdictCountVERDICT_COUNT_STEERED],
		Unmarkable:   sum[verdict.VerdictVerdictCountVERDICT_COUNT_UNMARKABLE],
	}
}

// chainOf is the chain of an instance.
type chainOf struct {
	algorithms []string
	verdicts   ebpf.MapID // map of the verdict counters; 0: they only measure
}

// chainsByInstance finds the algorithms of each chain: their programs read the same control word's neighbours,
// so they are recognised by the maps they share with it.
func chainsByInstance() map[ebpf.MapID]*chainOf {
	scratch, control := map[ebpf.MapID]*chainOf{}, map[ebpf.MapID]ebpf.MapID{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if err != nil {
			break
		}
		id = next
		used := mapsOf(id)
		if c, ok := used["chain_control"]; ok {
			control[used["phv_scratch"]] = c
		} else if s, ok := used["phv_scratch"]; ok {
			if scratch[s] == nil {
				scratch[s] = &chainOf{}
			}
			scratch[s].add(id, used)
		}
	}
	found := map[ebpf.MapID]*chainOf{}
	for s, c := range scratch {
		slices.Sort(c.algorithms)
		found[control[s]] = c
	}
	return found
}

func (c *chainOf) add(id ebpf.ProgramID, used map[string]ebpf.MapID) {
	if counts, ok := used["verdict_counts"]; ok {
		c.verdicts = counts
		return
	}
	c.algorithms = appendName(c.algorithms, algorithmName(id))
}

func appendName(names []string, name string) []string {
	if name == "" || strings.HasPrefix(name, "chain_") || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// algorithmName turns the name of a program into that of its algorithm: fridge_xdp, fridge_tc.
func algorithmName(id ebpf.ProgramID) string {
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return ""
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return ""
	}
	name := info.Name
	for _, hook := range []string{"_xdp", "_tc", "_tp"} {
		name = strings.TrimSuffix(name, hook)
	}
	return name
}
