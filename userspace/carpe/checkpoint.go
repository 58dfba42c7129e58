package carpe

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// A checkpoint is the coordinator's state that survives a restart: the observers of each group, reports that are still within a span, and
// the counts since its last answer. Its layout: a version, the names of hosts, flows with their windows, groups with their advertised number
// and their observers, and counts.
const checkpointVersion = 2

// Checkpoint implements algo.Checkpointer. Beyond algo.MaxCheckpoint the observers of groups are dropped first, because they are learned again, then
// flows, the smallest first; their reports count as lost.
func (c *coordinator) Checkpoint() ([]byte, error) {
	b := []byte{checkpointVersion}
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
	b, dropped := c.appendFlows(b)
	for _, g := range sortedGroups(c.groups) {
		if len(b) > algo.MaxCheckpoint-1024-16*len(c.groups[g].hosts) {
			break
		}
		w := c.groups[g]
		b = appendGroup(append(b, recordUpdate), g)
		b = binary.AppendUvarint(b, uint64(w.advertised))
		b = binary.AppendVarint(b, w.since)
		b = binary.AppendUvarint(b, uint64(len(w.hosts)))
		for h, seen := range w.hosts {
			b = binary.AppendUvarint(b, numbers[h])
			b = binary.AppendVarint(b, seen-w.since)
		}
	}
	b = append(b, recordLost)
	for _, n := range c.since() {
		b = binary.AppendUvarint(b, *n)
	}
	return binary.AppendUvarint(b, dropped), nil
}

// since are the counts since the last answer, and the number of the next window to be answered.
func (c *coordinator) since() []*uint64 {
	n := &c.counts
	return []*uint64{&c.ledger.next, &c.ledger.late, &c.ledger.full, &n.hellos, &n.updates, &n.lost, &n.full, &n.messages}
}

// appendFlows uses at most two thirds of algo.MaxCheckpoint. dropped is the number of unanswered reports of the flows that do not
// fit.
func (c *coordinator) appendFlows(b []byte) (_ []byte, dropped uint64) {
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
		b = c.appendKey(append(b, recordReport, byte(flag(f.account.declared))), f.key)
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

// Restore implements algo.Checkpointer. A checkpoint of a coordinator with other parameters is refused.
func (c *coordinator) Restore(data []byte) error {
	if len(data) == 0 || data[0] != checkpointVersion {
		return fmt.Errorf("%w: checkpoint of %d bytes has another version", errMessage, len(data))
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
	declared := r.byte() == 1
	k := r.key()
	for n := r.number(math.MaxUint16); n > 0 && r.err == nil; n-- {
		epoch := r.number(math.MaxInt64)
		s := sums{reports: r.number(math.MaxInt64), observers: r.observers()}
		s.weight, s.variance = math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8))), math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8)))
		if !(s.weight >= 0) || !(s.variance >= 0) {
			r.fail("invalid weight")
		}
		if r.err != nil {
			return
		}
		if a := c.ledger.add(k, epoch, s); a != nil {
			a.declared = declared
		}
	}
}

func (c *coordinator) resumeGroup(r *reader, hosts []string) {
	g, w := r.group(), &observerSet{hosts: map[string]int64{}, advertised: min(uint32(max(1, r.number(1<<16))), c.most), since: r.signed()}
	for n := r.number(1 << 20); n > 0 && r.err == nil; n-- {
		host, seen := r.number(uint64(len(hosts))), r.signed()
		if r.err != nil || host >= uint64(len(hosts)) {
			r.fail("invalid host number")
			return
		}
		w.hosts[hosts[host]] = w.since + seen
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
		r.fail("invalid number")
		r.b = nil
		return 0
	}
	r.b = r.b[length:]
	return n
}
