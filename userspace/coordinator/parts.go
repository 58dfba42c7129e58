package coordinator

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/bus"
)

// part is an algorithm's own code at the coordinator (algo.Coordinator), one for a measurement and all of its sets.
type part struct {
	algo.Coordinator
	mark uint64 // hash of the measurement's parameters
	make func() (algo.Coordinator, error)
}

// markOf is a hash of a measurement, which changes with its parameters.
func markOf(m bus.Measurement) (uint64, error) {
	data, err := bus.EncodePlan(&bus.Plan{Measurements: []bus.Measurement{m}})
	sum := sha256.Sum256(data)
	return binary.LittleEndian.Uint64(sum[:]), err
}

// begin creates the part and restores its saved state.
func (p *part) begin(saved []byte) (err error) {
	if p.Coordinator, err = p.make(); err != nil || saved == nil {
		return err
	}
	checkpointer, ok := p.Coordinator.(algo.Checkpointer)
	if !ok {
		return nil
	}
	if err := resumed(checkpointer, saved); err != nil {
		fresh, again := p.make()
		p.Coordinator = fresh
		return errors.Join(fmt.Errorf("restarting: %w", err), again)
	}
	return nil
}

func resumed(l algo.Checkpointer, saved []byte) (err error) {
	defer caught(&err)
	return l.Restore(saved)
}

// leadParts creates all parts for a term of leadership.
func (e *engine) leadParts(list []partState) {
	for at, p := range e.parts {
		var saved []byte
		for _, k := range list {
			if k.Measurement == at.measurement && k.Algorithm == at.algorithm && k.Mark == p.mark {
				saved = k.data
			}
		}
		if err := p.begin(saved); err != nil {
			e.log.Error("saved state of an algorithm unusable, starting fresh", "measurement", at.measurement, "algorithm", at.algorithm, "error", err)
		}
	}
}

// checkpoints are the saved states of all parts.
func (e *engine) checkpoints() (list []partState) {
	for _, at := range slices.SortedFunc(maps.Keys(e.parts), stream.compare) {
		p := e.parts[at]
		checkpointer, ok := p.Coordinator.(algo.Checkpointer)
		if !ok {
			continue
		}
		data, err := checkpointer.Checkpoint()
		if err == nil && len(data) > algo.MaxCheckpoint {
			err = fmt.Errorf("%d bytes are more than %d", len(data), algo.MaxCheckpoint)
		}
		if err != nil {
			e.log.Error("state of an algorithm not saved", "measurement", at.measurement, "algorithm", at.algorithm, "error", err)
			continue
		}
		list = append(list, partState{Measurement: at.measurement, Algorithm: at.algorithm, Mark: p.mark, data: data})
	}
	return list
}

// hostOf is the name under which an algorithm's part knows an instance.
func hostOf(agent, instance string) string {
	if _, iface, each := strings.Cut(instance, "/"); each {
		return agent + "/" + iface
	}
	return agent
}

// deliver passes an instance's message to its algorithm's part.
func (e *engine) deliver(a *agent, clock bus.Clock, i bus.Item, now time.Time) {
	p := e.parts[stream{measurement: i.Measurement, algorithm: i.Algorithm}]
	if p == nil {
		e.blame(a, foreign, fmt.Errorf("%s of %s has no part at the coordinator", i.Algorithm, i.Measurement))
		return
	}
	who, host := source{i.Instance, i.Algorithm}, hostOf(a.name, i.Instance)
	last, known := a.numbers[who]
	if !known && len(a.numbers) >= maxSources {
		e.blame(a, flood, fmt.Errorf("more than %d instances send messages", maxSources))
		return
	}
	e.partsDirty = true
	if i.Begins {
		a.numbers[who] = last
		p.Joined(host)
		return
	}
	if i.Number <= last {
		e.blame(a, replayed, fmt.Errorf("message %d of %s, after %d", i.Number, i.Instance, last))
		return
	}
	m := algo.Incoming{Host: host, Time: now.UnixNano(), Now: now.UnixNano(), Missed: i.Number - last - 1, Data: i.Message}
	if last == 0 && a.midway {
		m.Missed = 0
	}
	if clock.Known {
		m.Time = i.Time + clock.Offset
	}
	if m.Time > now.Add(ahead).UnixNano() || m.Time < now.Add(-forgotten).UnixNano() {
		a.numbers[who] = last // the part learns of the loss with the next message
		e.blame(a, untimely, fmt.Errorf("a message of %s", time.Unix(0, m.Time).UTC().Format(time.RFC3339)))
		return
	}
	a.numbers[who] = i.Number
	a.missed += m.Missed
	if err := receive(p, m); errors.Is(err, algo.ErrUntimely) {
		e.blame(a, untimely, err)
	} else if err != nil {
		e.blame(a, malformed, err)
	}
}

const (
	maxSources  = 4096        // instances of an agent that send messages
	ahead       = time.Second // of the coordinator's clock: more exceeds the error of a measured clock
	mostWaiting = 8192        // messages queued for an agent; more are dropped, and the agent is informed
)

// receive converts a panic to an error: messages are from other machines.
func receive(c algo.Coordinator, m algo.Incoming) (err error) {
	defer caught(&err)
	return c.Receive(m)
}

// collect queues the messages of algorithms' parts to agents.
func (e *engine) collect(now time.Time) {
	for _, at := range slices.SortedFunc(maps.Keys(e.parts), stream.compare) {
		for _, t := range e.parts[at].Send(now.UnixNano()) {
			name, iface, each := strings.Cut(t.Host, "/")
			a, instance := e.agents[name], at.measurement
			if each {
				instance += "/" + iface
			}
			if a == nil {
				continue
			}
			if len(a.waiting) >= mostWaiting {
				a.waiting, a.sent = a.waiting[1:], a.sent+1
			}
			a.waiting = append(a.waiting, bus.Message{Instance: instance, Algorithm: at.algorithm, Data: t.Data})
		}
	}
}

// next takes the messages that fit into one answer.
func (a *agent) next(bytes int) (list []bus.Message) {
	n := 0
	for ; n < len(a.waiting) && n < bus.MaxItems; n++ {
		bytes -= len(a.waiting[n].Data) + len(a.waiting[n].Instance) + len(a.waiting[n].Algorithm) + 64
		if n > 0 && bytes < 0 {
			break
		}
	}
	list, a.waiting = a.waiting[:n:n], a.waiting[n:]
	a.sent += uint64(n)
	return list
}

// leave reports to the algorithms' parts that an agent is no longer expected.
func (e *engine) leave(a *agent) {
	for _, who := range slices.SortedFunc(maps.Keys(a.numbers), func(x, y source) int {
		return cmp.Or(strings.Compare(x.instance, y.instance), strings.Compare(x.algorithm, y.algorithm))
	}) {
		measurement, _, _ := strings.Cut(who.instance, "/")
		if p := e.parts[stream{measurement: measurement, algorithm: who.algorithm}]; p != nil {
			p.Left(hostOf(a.name, who.instance))
		}
	}
}
