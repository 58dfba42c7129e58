package attach

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// ErrBusy is wrapped when another owner's program occupies a hook that cannot be shared.
var ErrBusy = errors.New("occupied by another program")

// Occupant is a program on an interface, of any owner.
type Occupant struct {
	Hook      Hook           `json:"hook"`
	Direction Direction      `json:"direction"`
	Via       string         `json:"via"` // "xdp", "tcx", or "clsact"
	Mode      Mode           `json:"mode,omitempty"`
	Program   ebpf.ProgramID `json:"program_id,omitempty"`
	Link      link.ID        `json:"link_id,omitempty"` // 0: not attached through a BPF link
	Name      string         `json:"name,omitempty"`    // of the program; where a filter is not a program, the filter's kind
	Tag       string         `json:"tag,omitempty"`
	LoadedAgo time.Duration  `json:"loaded_ago_ns,omitempty"`
	Ours      bool           `json:"ours"`
	PIDs      []int          `json:"pids,omitempty"` // processes that hold the program or link

	filter *netlink.BpfFilter // when Via is "clsact"
}

// String describes the occupant with everything that the kernel reports.
func (o Occupant) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s program", o.Via, o.Direction)
	if o.Program != 0 {
		fmt.Fprintf(&b, " id %d", o.Program)
	}
	if o.Name != "" {
		fmt.Fprintf(&b, " %q", o.Name)
	}
	if o.Tag != "" {
		fmt.Fprintf(&b, " tag %s", o.Tag)
	}
	if o.Mode != "" {
		fmt.Fprintf(&b, " (%s)", o.Mode)
	}
	if len(o.PIDs) > 0 {
		fmt.Fprintf(&b, ", held by %s", DescribePIDs(o.PIDs))
	}
	return b.String()
}

// Occupants lists the programs on an interface: XDP, then TCX and clsact in the order in which they run.
func Occupants(d *Device) []Occupant {
	found := xdpOccupants(d)
	for _, dir := range []Direction{Ingress, Egress} {
		found = append(found, tcxOccupants(d.Index, dir)...)
		found = append(found, filterOccupants(d.Index, dir)...)
	}
	for i := range found {
		found[i].Identify()
	}
	return found
}

func xdpOccupants(d *Device) []Occupant {
	if d.XDPMode == "" {
		return nil
	}
	return []Occupant{{Hook: HookXDP, Direction: Ingress, Via: "xdp", Mode: d.XDPMode, Program: ebpf.ProgramID(d.XDPProg)}}
}

func tcxOccupants(ifindex int, dir Direction) []Occupant {
	result, err := link.QueryPrograms(link.QueryOptions{Target: ifindex, Attach: tcxType(dir)})
	if err != nil {
		return nil // below 6.6, or without the privilege to query
	}
	var found []Occupant
	for _, p := range result.Programs {
		id, _ := p.LinkID()
		found = append(found, Occupant{Hook: HookTC, Direction: dir, Via: "tcx", Program: p.ID, Link: id})
	}
	return found
}

func filterOccupants(ifindex int, dir Direction) []Occupant {
	filters, err := filtersOf(ifindex, dir)
	if err != nil {
		return nil
	}
	var found []Occupant
	for _, f := range filters {
		o := Occupant{Hook: HookTC, Direction: dir, Via: "clsact", Name: f.Type()}
		if b, ok := f.(*netlink.BpfFilter); ok {
			o.Name, o.Program, o.filter = b.Name, ebpf.ProgramID(b.Id), b
		}
		found = append(found, o)
	}
	return found
}

// Identify adds the kernel's information about the program; it needs CAP_SYS_ADMIN.
func (o *Occupant) Identify() {
	o.Ours = o.filter != nil && isOurFilter(o.filter)
	if o.Program == 0 {
		return
	}
	prog, err := ebpf.NewProgramFromID(o.Program)
	if err != nil {
		return
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return
	}
	o.Name, o.Tag = info.Name, info.Tag
	o.LoadedAgo = sinceBoot(info)
	o.Ours = IsOurs(info)
}

func sinceBoot(info *ebpf.ProgramInfo) time.Duration {
	loaded, ok := info.LoadTime()
	if !ok {
		return 0
	}
	return bootTime() - loaded
}

// others returns the occupants of other owners, with the processes that hold them.
func others(d *Device) []Occupant {
	var found []Occupant
	for _, o := range Occupants(d) {
		if !o.Ours {
			found = append(found, o)
		}
	}
	return WithHolders(found)
}

func WithHolders(found []Occupant) []Occupant {
	if len(found) == 0 {
		return nil
	}
	held := ScanHolders()
	for i := range found {
		found[i].PIDs = held.Of(found[i].Program, found[i].Link)
	}
	return found
}

// DescribeXDP names the XDP program of an interface for an error.
func DescribeXDP(d *Device) string {
	found := xdpOccupants(d)
	if len(found) == 0 {
		return "an XDP program"
	}
	found[0].Identify()
	o := WithHolders(found)[0]
	if o.Ours {
		return o.String() + ", which is xdpmon's own (`xdpmon status` shows it)"
	}
	return o.String()
}

func tcxType(dir Direction) ebpf.AttachType {
	if dir == Egress {
		return ebpf.AttachTCXEgress
	}
	return ebpf.AttachTCXIngress
}
