package loader

import (
	"fmt"
	"slices"

	"github.com/xdpmon/xdpmon/bpf/chain"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// Counts are the chain's own counters of one window.
type Counts struct {
	Seen       uint64
	Parsed     uint64
	Bytes      uint64            // on the wire
	Reasons    map[string]uint64 // packets that were not fully parsed, by reason; all reasons are present
	Aggregates uint64            // packets that carry several segments (GSO, GRO)
	Segments   uint64            // ... and the number of those segments
	Pulled     uint64            // packets whose headers had to be fetched into the linear part
	Verdicts   *Verdicts         // nil: the chain only measures
	Queue      *QueueCounts      // nil: no queue is watched
}

// Idle reports whether no program ran in the window: no packet arrived, and none of an earlier window left a queue.
func (c Counts) Idle() bool {
	q := c.Queue
	return c.Seen == 0 && (q == nil || q.Sent+q.Dropped+q.Bare+q.Foreign+q.Stale+q.Unparsed == 0)
}

// reasonNames are the JSON names of enum parse_reason.
var reasonNames = map[chain.ChainParseReason]string{
	chain.ChainParseReasonPARSE_TRUNCATED:       "truncated",
	chain.ChainParseReasonPARSE_NOT_IP:          "not_ip",
	chain.ChainParseReasonPARSE_BAD_IP:          "bad_ip",
	chain.ChainParseReasonPARSE_EXTENSION_CHAIN: "extension_chain",
	chain.ChainParseReasonPARSE_FRAGMENT:        "fragment",
	chain.ChainParseReasonPARSE_NO_TRANSPORT:    "no_transport",
	chain.ChainParseReasonPARSE_BAD_TRANSPORT:   "bad_transport",
}

// Counts reads a closed bank of the chain's counters and resets it.
func (i *Instance) Counts(bank int) (Counts, error) {
	c, err := i.counts(func(a *xmaps.Array) ([]uint64, error) { return a.ReadReset(bank, nil) }, i.handedSince)
	i.enforced = nil
	i.closeQueueWindow(c.Queue)
	return c, err
}

// CountsSoFar reads the open bank and does not reset it.
func (i *Instance) CountsSoFar() (Counts, error) {
	return i.counts(func(a *xmaps.Array) ([]uint64, error) { return a.Read(i.control.Bank(), nil) }, nil)
}

// SeenSoFar is the number of packets of each instance in both banks. A change between two calls shows that packets arrived. Instances that
// share maps are read in one call.
func SeenSoFar(instances []*Instance) ([]uint64, error) {
	seen, read := make([]uint64, len(instances)), map[*pool][]uint64{}
	for n, i := range instances {
		var words []uint64
		var err error
		switch {
		case i.pool == nil:
			words, err = seenIn(i.chainSet())
		case read[i.pool] == nil:
			words, err = seenIn(xmaps.NewSet(i.pool.counters, i.shared))
			read[i.pool] = words
		default:
			words = read[i.pool]
		}
		if err != nil {
			return nil, err
		}
		for bank := range 2 {
			seen[n] += words[2*i.number+bank]
		}
	}
	return seen, nil
}

// seenIn adds up the packet counters of each element of a set's chain_counters.
func seenIn(set *xmaps.Set) (seen []uint64, err error) {
	array, err := set.Array("chain_counters")
	if err != nil {
		return nil, err
	}
	for bank := range array.Banks {
		words, err := array.Read(bank, nil)
		if err != nil {
			return nil, fmt.Errorf("read counts: %w", err)
		}
		for one := range slices.Chunk(words, len(words)/array.Entries) {
			sum := one[chain.ChainParseReasonPARSED]
			for reason := range reasonNames {
				sum += one[reason]
			}
			seen = append(seen, sum)
		}
	}
	return seen, nil
}

// handedSince counts the packets handed to watched queues since the open bank was opened.
func (i *Instance) handedSince() (QueueCounts, error) {
	array, err := i.chainSet().Array("chain_counters")
	if err != nil {
		return QueueCounts{}, err
	}
	c, err := array.Read(i.control.Bank(), nil)
	if err != nil {
		return QueueCounts{}, fmt.Errorf("read counts: %w", err)
	}
	return handedOver(c), nil
}

// handedOver is the queues' part of the chain's counters.
func handedOver(c []uint64) QueueCounts {
	return QueueCounts{Carried: c[chain.ChainChainCountCOUNT_CARRIED], CarriedBytes: c[chain.ChainChainCountCOUNT_CARRIED_BYTES]}
}

// counts of a window; since counts the packets handed over after its end, for queueCounts.
func (i *Instance) counts(read func(*xmaps.Array) ([]uint64, error), since func() (QueueCounts, error)) (Counts, error) {
	array, err := i.chainSet().Array("chain_counters")
	if err != nil {
		return Counts{}, err
	}
	c, err := read(array)
	if err != nil {
		return Counts{}, fmt.Errorf("read counts: %w", err)
	}
	counts := Counts{
		Parsed:     c[chain.ChainParseReasonPARSED],
		Bytes:      c[chain.ChainChainCountCOUNT_BYTES],
		Aggregates: c[chain.ChainChainCountCOUNT_AGGREGATES],
		Segments:   c[chain.ChainChainCountCOUNT_SEGMENTS],
		Pulled:     c[chain.ChainChainCountCOUNT_PULLED],
		Reasons:    map[string]uint64{},
	}
	if counts.Verdicts, err = i.verdictsWith(read); err != nil {
		return Counts{}, err
	}
	counts.Queue, err = i.queueCounts(handedOver(c), read, since)
	if err != nil {
		return Counts{}, err
	}
	counts.Seen = counts.Parsed
	for reason, name := range reasonNames {
		counts.Reasons[name] = c[reason]
		counts.Seen += c[reason]
	}
	return counts, nil
}

// Plus returns the counts of both of two windows.
func (c Counts) Plus(d Counts) Counts {
	c.Seen += d.Seen
	c.Parsed += d.Parsed
	c.Bytes += d.Bytes
	c.Aggregates += d.Aggregates
	c.Segments += d.Segments
	c.Pulled += d.Pulled
	switch {
	case c.Verdicts == nil:
		c.Verdicts = d.Verdicts
	case d.Verdicts != nil:
		sum := c.Verdicts.plus(*d.Verdicts, 1)
		c.Verdicts = &sum
	}
	switch {
	case c.Queue == nil:
		c.Queue = d.Queue
	case d.Queue != nil:
		sum := c.Queue.plus(*d.Queue, 1)
		c.Queue = &sum
	}
	reasons := make(map[string]uint64, len(d.Reasons))
	for _, of := range []map[string]uint64{c.Reasons, d.Reasons} {
		for name, n := range of {
			reasons[name] += n
		}
	}
	c.Reasons = reasons
	return c
}

// Minus returns the counts since an earlier reading.
func (c Counts) Minus(before Counts) Counts {
	c.Seen -= before.Seen
	c.Parsed -= before.Parsed
	c.Bytes -= before.Bytes
	c.Aggregates -= before.Aggregates
	c.Segments -= before.Segments
	c.Pulled -= before.Pulled
	if c.Verdicts != nil && before.Verdicts != nil {
		rest := c.Verdicts.plus(*before.Verdicts, ^uint64(0))
		c.Verdicts = &rest
	}
	if c.Queue != nil && before.Queue != nil {
		rest := c.Queue.plus(*before.Queue, ^uint64(0))
		c.Queue = &rest
	}
	reasons := make(map[string]uint64, len(c.Reasons))
	for name, n := range c.Reasons {
		reasons[name] = n - before.Reasons[name]
	}
	c.Reasons = reasons
	return c
}
