package twins

import (
	"fmt"
	"slices"

	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// mostRemembered elements of an array; tests use the first ones of large arrays.
const mostRemembered = 64

// remembered reads the arrays of the host that headers are compared with as they are before the packet.
func (p *pair) remembered() (func(array string, i int) uint64, error) {
	if len(p.twin.Remember) == 0 {
		return nil, nil
	}
	if p.before == nil {
		before := map[string][]uint64{}
		for _, name := range p.twin.Remember {
			a, err := p.host.set.Array(name)
			if err != nil {
				return nil, err
			}
			if before[name], err = p.host.first(a, mostRemembered); err != nil {
				return nil, err
			}
		}
		p.before = before
	}
	before := p.before
	return func(array string, i int) uint64 { return before[array][i] }, nil
}

// wanted is the expected content of the twin's headers for this packet.
func (p *pair) wanted(in *arrival, f *packet.Frame, s *twin.Seen) (err error) {
	if len(p.twin.Emits) == 0 || in.side == hostOnly || in.side == neither {
		return nil
	}
	at := port(in.time, in.data)
	_, known := egress(at, in.data)
	s.Values, s.Arrived, s.Pipe, s.Unclaimed = p.values, in.time%stampTurn, uint64(at)>>7, !known
	s.Word, s.Read, s.Entry, s.Constant = p.host.read, p.host.get, p.host.entry, p.host.constant
	p.decoder.Decode(f, packet.DecodeOptions{}, &s.Packet)
	if s.Records, err = p.host.records(); err != nil {
		return err
	}
	p.records = append(p.records, s.Records...)
	if in.wanted, err = p.twin.Wanted(s); err != nil {
		return fmt.Errorf("expected headers: %w", err)
	}
	return nil
}

// recorded is the host's records of this window as the twin's words.
func (p *pair) recorded() (all [][]uint64, err error) {
	last, err := p.host.records()
	for _, r := range append(p.records, last...) {
		if words := p.twin.Reports.Host(r); words != nil {
			all = append(all, words)
		}
	}
	p.records = nil
	return all, err
}

// decide records which fields of digests the comparison uses: a changed one has to change the compared words.
func (p *pair) decide(time uint64) {
	if p.fields == nil {
		return
	}
	digests := p.result.Digests
	for i := range digests {
		d := digests[i]
		for n, field := range d.Fields {
			name := d.Name + "." + field
			if p.fields[name] {
				continue
			}
			before := p.twin.Reports.Twin(&p.result, time)
			digests[i].Values = slices.Clone(d.Values)
			digests[i].Values[n] ^= 1
			p.fields[name] = !slices.EqualFunc(before, p.twin.Reports.Twin(&p.result, time), slices.Equal)
			digests[i] = d
		}
	}
}

// undecided are fields of digests with any content.
func undecided(fields map[string]bool) (names []string) {
	for name, decides := range fields {
		if !decides {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
