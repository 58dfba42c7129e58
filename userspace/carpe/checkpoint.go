package carpe

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// What a coordinator keeps over a restart: who observes which group, reports that are still within a span, and what it has counted since its
// last answer. It begins with a version; then come the names of hosts, flows with their windows, groups with what they were told and who
// observes them, and counts.
const keptVersion = 2

// Checkpoint implements algo.Checkpointer. What finds no room is the observers of groups, which are learned again, before flows, the smallest first; their
// reports count as lost.
func (c *coordinator) Checkpoint() ([]byte, error) {
	b := []byte{keptVersion}
	hosts, numbers := make([]string, 0, len(c.own)), map[string]uint64{}
	for h := range c.own {
		hosts = append(hosts, h)
	}
	slices.Sort(hosts)
	b = binary.AppendUvarint(b, uint64(len(hosts)))
	for n, h := range hosts {
		numbers[h] = uint64(n)
		b = append(binary.AppendUvarint(b, uint64(len(h))), h...)
	}
	b, dropped := c.keepFlows(b)
	for _, g := range sortedGroups(c.groups) {
		if len(b) > algo.MaxCheckpoint-1024-16*len(c.groups[g].hosts) {
			break
		}
		w := c.groups[g]
		b = appendGroup(append(b, recordUpdate), g)
		b = binary.AppendUvarint(b, uint64(w.told))
		b = binary.AppendVarint(b, w.since)
		b = binary.AppendUvarint(b, uint64(len(w.hosts)))
		for h, heard := range w.hosts {
			b = binary.AppendUvarint(b, numbers[h])
			b = binary.AppendVarint(b, heard-w.since)
		}
	}
	b = append(b, recordLost)
	for _, n := range c.since() {
		b = binary.AppendUvarint(b, *n)
	}
	return binary.AppendUvarint(b, dropped), nil
}

// since are the counts since the last answer, and which window that was.
func (c *coordinator) since() []*uint64 {
	n := &c.counts
	return []*uint64{&c.ledger.next, &c.ledger.late, &c.ledger.full, &n.hellos, &n.updates, &n.lost, &n.full, &n.messages}
}

// keepFlows takes two thirds of the room at most. dropped are the reports without an answer that find none.
func (c *coordinator) keepFlows(b []byte) (_ []byte, dropped uint64) {
	type one struct {
		flow
		account *account
	}
	var all []one
	for k, a := range c.ledger.flows {
		f := one{flow: flow{key: k}, account: a}
		for _, s := range a.steps {
			f.plus(s.sums)
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(x, y one) int { return cmp.Or(cmp.Compare(y.weight, x.weight), x.key.Compare(y.key)) })
	for _, f := range all {
		if len(b) > algo.MaxCheckpoint*2/3 {
			for _, s := range f.account.steps {
				if s.epoch >= c.ledger.next {
					dropped += s.reports
				}
			}
			continue
		}
		b = c.appendKey(append(b, recordReport, byte(flag(f.account.told))), f.key)
		b = binary.AppendUvarint(b, uint64(len(f.account.steps)))
		for _, s := range f.account.steps {
			b = binary.AppendUvarint(b, s.epoch)
			b = binary.AppendUvarint(b, s.reports)
			b = binary.AppendUvarint(b, uint64(s.observers))
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.weight))
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.variance))
		}
	}
	return b, dropped
}

// Restore implements algo.Checkpointer. What a coordinator with other parameters has kept is of no use, and left.
func (c *coordinator) Restore(data []byte) error {
	if len(data) == 0 || data[0] != keptVersion {
		return fmt.Errorf("%w: %d bytes of another version are kept", errMessage, len(data))
	}
	r := &reader{config: c.config, b: data[1:]}
	hosts := make([]string, 0, 16)
	for n := r.number(1 << 20); n > 0 && r.err == nil; n-- {
		hosts = append(hosts, string(r.bytes(int(r.number(256)))))
	}
	for r.more() {
		switch kind := r.byte(); kind {
		case recordReport:
			c.resumeFlow(r)
		case recordUpdate:
			c.resumeGroup(r, hosts)
		case recordLost:
			for _, n := range c.since() {
				*n += r.number(math.MaxInt64)
			}
			c.ledger.full += r.number(math.MaxInt64)
		default:
			r.fail(fmt.Sprintf("record %d", kind))
		}
	}
	return r.err
}

func (c *coordinator) resumeFlow(r *reader) {
	told := r.byte() == 1
	k := r.key()
	for n := r.number(math.MaxUint16); n > 0 && r.err == nil; n-- {
		epoch := r.number(math.MaxInt64)
		s := sums{reports: r.number(math.MaxInt64), observers: r.observers()}
		s.weight, s.variance = math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8))), math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8)))
		if !(s.weight >= 0) || !(s.variance >= 0) {
			r.fail("a weight that is none")
		}
		if r.err != nil {
			return
		}
		if a := c.ledger.add(k, epoch, s); a != nil {
			a.told = told
		}
	}
}

func (c *coordinator) resumeGroup(r *reader, hosts []string) {
	g, w := r.group(), &crowd{hosts: map[string]int64{}, told: min(uint32(max(1, r.number(1<<16))), c.most), since: r.signed()}
	for n := r.number(1 << 20); n > 0 && r.err == nil; n-- {
		host, heard := r.number(uint64(len(hosts))), r.signed()
		if r.err != nil || host >= uint64(len(hosts)) {
			r.fail("a host that is none")
			return
		}
		w.hosts[hosts[host]] = w.since + heard
	}
	if r.err != nil || c.groups[g] != nil || len(w.hosts) == 0 {
		return
	}
	c.groups[g] = w
	for h := range w.hosts {
		c.own[h]++
	}
}

func (r *reader) signed() int64 {
	n, length := binary.Varint(r.b)
	if length <= 0 {
		r.fail("a number that is none")
		r.b = nil
		return 0
	}
	r.b = r.b[length:]
	return n
}
