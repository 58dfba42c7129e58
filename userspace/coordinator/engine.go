package coordinator

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/coordinator/config"
	"github.com/xdpmon/xdpmon/userspace/gathered"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
	"github.com/xdpmon/xdpmon/userspace/suspect"
)

// engine merges windows. Messages and times are passed to it: it uses neither network nor clock. Its lock guards all fields.
type engine struct {
	log      *slog.Logger
	refusals *refusals
	limits   config.Limits
	paths    *suspect.Paths // nil: none are configured
	emit     func(report.Line)
	found    *gathered.Gatherer

	mu         sync.Mutex
	run        uint64
	began      time.Time
	plan       *bus.Plan
	planned    map[string]*planned
	agents     map[string]*agent
	streams    map[stream]*flow
	parts      map[stream]*part
	refused    map[string]uint64      // by reason, of senders that are not known agents
	dirty      bool                   // state that survives a restart has changed
	partsDirty bool                   // state of algorithms' parts has changed, which is saved at most once a second
	term       uint64                 // of the last saved state
	losses     map[stream][]algo.Loss // of the latest windows, if paths are configured
}

// planned is a measurement with the values that its windows must have.
type planned struct {
	config.Measurement
	mark   uint64
	params map[string]map[string]string // by algorithm
	length map[string]int64             // of windows, ns, by algorithm
}

// flow is the running state of a stream.
type flow struct {
	closed   int64 // the last window that was answered
	number   int
	open     map[int64]*period
	members  map[string]int64 // hosts, with the last window that each has contributed to
	late     uint64
	reported uint64
	last     time.Time
}

const (
	silentAfter = 15 * time.Second       // an agent without a hello for this long is silent
	forgotten   = time.Hour              // ... and for this long is no longer expected
	acks        = 32                     // batches after which an answer is sent at once
	unhurried   = 250 * time.Millisecond // delay of an answer to fewer batches: an answer costs as much as a batch
)

// seeds of the measurements' hashes, by name: the configuration's, or drawn.
func newEngine(cfg *config.Config, seeds map[string]uint64, log *slog.Logger, emit func(report.Line)) (*engine, error) {
	e := &engine{log: log, refusals: newRefusals(log), limits: cfg.Limits, emit: emit, agents: map[string]*agent{}, streams: map[stream]*flow{}, parts: map[stream]*part{},
		refused: map[string]uint64{}, found: gathered.New(), losses: map[stream][]algo.Loss{}}
	e.found.Links = e.suspectLinks
	return e, e.follow(cfg, seeds)
}

// follow applies a configuration.
func (e *engine) follow(cfg *config.Config, seeds map[string]uint64) error {
	plan, all := &bus.Plan{}, map[string]*planned{}
	parts := map[stream]*part{}
	for _, m := range cfg.Measurements {
		p := &planned{Measurement: m, params: map[string]map[string]string{}, length: map[string]int64{}}
		p.Seed = cmp.Or(m.Seed, seeds[m.Name])
		p.mark = snapshot.HashMark(p.Seed)
		out := bus.Measurement{Name: m.Name, WindowNS: int64(m.Window), Seed: p.Seed, CRC: m.CRC, Decap: m.Decap}
		env := algo.Env{Setup: algo.Setup{Hash: algo.HashOf(m.CRC)}, Seed: p.Seed, Epoch: func() uint64 { return 0 },
			Notice: func(format string, args ...any) { e.log.Warn(fmt.Sprintf(format, args...), "measurement", m.Name) }}
		for _, s := range m.Algorithms {
			env := env
			env.WindowNS = session.LengthOf(s, m.Window)
			s, err := s.For(env.Setup)
			if err != nil {
				return fmt.Errorf("measurement %s: %w", m.Name, err)
			}
			head := s.Head(p.Seed)
			p.params[s.Descriptor.Name] = head.Params
			p.length[s.Descriptor.Name] = env.WindowNS
			out.Algorithms = append(out.Algorithms, bus.Chosen{Name: s.Descriptor.Name, Params: head.Params, WindowNS: s.Window})
			c, ok := s.Config.(algo.CoordinatorProvider)
			if !ok {
				continue
			}
			if _, err := c.Coordinate(env); err != nil {
				return fmt.Errorf("measurement %s: %w", m.Name, err)
			}
			parts[stream{measurement: m.Name, algorithm: s.Descriptor.Name}] = &part{make: func() (algo.Coordinator, error) { return c.Coordinate(env) }}
		}
		mark, err := markOf(out)
		if err != nil {
			return err
		}
		for at, one := range parts {
			if at.measurement == m.Name {
				one.mark = mark
			}
		}
		all[m.Name] = p
		plan.Measurements = append(plan.Measurements, out)
	}
	data, err := bus.EncodePlan(plan)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	plan.Revision = binary.LittleEndian.Uint64(sum[:]) // equal on coordinators with the same plan
	e.mu.Lock()
	defer e.mu.Unlock()
	for at, one := range parts {
		if before := e.parts[at]; before != nil && before.mark == one.mark {
			parts[at] = before // unchanged: it keeps its state
		} else if err := one.begin(nil); err != nil {
			return fmt.Errorf("measurement %s: %w", at.measurement, err)
		}
	}
	e.plan, e.planned, e.parts, e.limits = plan, all, parts, cfg.Limits
	return nil
}

// lead starts a term of leadership with the saved state.
func (e *engine) lead(run uint64, now time.Time, s state) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.run, e.began = run, now
	e.found.Forget()
	e.agents, e.streams, e.term = map[string]*agent{}, map[stream]*flow{}, s.Term
	e.leadParts(s.Parts)
	for name, k := range s.Agents {
		a := newAgent(name, now)
		a.incarnation, a.incarnations, a.received, a.used, a.saved, a.lost = k.Incarnation, k.Incarnations, k.Used, k.Used, k.Used, k.Lost
		a.oldest = k.Used + 1
		a.missed, a.midway = k.Missed, k.Midway
		for _, w := range k.Messengers {
			a.numbers[source{w.Instance, w.Algorithm}] = w.Number
		}
		a.hello = time.Unix(0, k.Hello)
		e.agents[name] = a
	}
	for _, k := range s.Streams {
		e.streams[k.of()] = &flow{closed: k.Closed, number: k.Number, open: map[int64]*period{}, members: maps.Clone(k.Members), last: now}
	}
}

// state is the part of the engine that survives a restart.
func (e *engine) state() state {
	s := state{Agents: map[string]agentState{}, Parts: e.checkpoints(), Term: e.term + 1}
	for name, a := range e.agents {
		k := agentState{Incarnation: a.incarnation, Incarnations: slices.Clone(a.incarnations), Used: a.used, Lost: a.lost, Hello: a.hello.UnixNano(), Missed: a.missed, Midway: a.midway}
		for who, n := range a.numbers {
			k.Messengers = append(k.Messengers, numberState{who.instance, who.algorithm, n})
		}
		s.Agents[name] = k
	}
	for at, f := range e.streams {
		s.Streams = append(s.Streams, streamState{at.measurement, at.set, at.algorithm, f.closed, f.number, maps.Clone(f.members)})
	}
	slices.SortFunc(s.Streams, func(a, b streamState) int { return a.of().compare(b.of()) })
	return s
}

// receive handles an agent's message and returns the answer, if one is due.
func (e *engine) receive(name string, m message, now time.Time) *bus.Answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m.kind == bus.HelloKind {
		return e.hello(name, m.data, now)
	}
	a := e.agents[name]
	if a == nil {
		e.refuseUnknown(name, stranger, errNoHello)
		return nil // the agent repeats its hello
	}
	if m.kind == bus.FindingsKind {
		e.findings(a, m.data, now)
		return nil
	}
	e.data(a, m.data, now)
	if a.due || a.received-a.answered >= acks {
		return e.answer(a, now)
	}
	return nil
}

func (e *engine) answer(a *agent, now time.Time) *bus.Answer {
	a.answered, a.due, a.replied = a.received, false, now
	reason, messages := a.reason, a.next(int(e.limits.Message)/2)
	a.reason = ""
	return &bus.Answer{Version: bus.Version, Run: e.run, Incarnation: a.incarnation, Time: now.UnixNano(), Received: a.received, Used: a.saved, Complaint: reason,
		Messages: messages, Sent: a.sent}
}

func (e *engine) hello(name string, data []byte, now time.Time) *bus.Answer {
	h, err := bus.DecodeHello(data)
	a := e.agents[name]
	if err != nil {
		if a == nil {
			e.refuseUnknown(name, malformed, err)
		} else {
			e.refuse(a, malformed, err)
		}
		return nil
	}
	if a == nil {
		if len(e.agents) >= e.limits.Agents {
			e.refuseUnknown(name, stranger, errAgents)
			return nil
		}
		a = newAgent(name, now)
		e.agents[name] = a
		e.log.Info("agent connected", "agent", name, "version", h.Software)
	}
	if a.ended(h.Incarnation) {
		e.refuse(a, replayed, errors.New("hello of an earlier incarnation"))
		return nil
	}
	if a.incarnation != h.Incarnation {
		a.begin(h.Incarnation)
		a.midway = h.Oldest > 1
		a.received, a.used, a.saved = h.Oldest-1, h.Oldest-1, h.Oldest-1 // older batches were used, or the agent reports them as lost
		e.dirty = true
	}
	if a.silent {
		e.log.Info("agent reconnected", "agent", name)
	}
	a.hello, a.silent, a.software, a.plan, a.clock, a.own, a.declined = now, false, h.Software, h.Revision, h.Clock, h.Lost, h.Refused
	a.latest = max(a.latest, h.Number)
	if h.Clock.Known {
		a.ahead = h.Wall - h.Clock.Offset
	}
	a.skip(h.Oldest)
	out := e.answer(a, now)
	out.Asked = h.Time
	if h.Revision != e.plan.Revision {
		out.Plan = e.plan
	}
	return out
}

// skip counts batches as lost that the agent no longer has.
func (a *agent) skip(oldest uint64) {
	a.oldest = max(a.oldest, oldest)
	if a.oldest > a.received+1 {
		a.lost += a.oldest - a.received - 1
		a.received = a.oldest - 1
		a.open = append(a.open, &batch{number: a.received})
		a.settle()
	}
}

// data accepts a batch, if it is the next one.
func (e *engine) data(a *agent, data []byte, now time.Time) {
	b, err := bus.DecodeBatch(data)
	if err != nil {
		e.refuse(a, malformed, err)
		return
	}
	if b.Incarnation != a.incarnation {
		if a.ended(b.Incarnation) {
			e.refuse(a, replayed, errors.New("batch of an earlier incarnation"))
		} else {
			e.refuse(a, stranger, errors.New("batch of an incarnation that has not sent its hello"))
		}
		return
	}
	if b.Number <= a.received {
		a.again++
		a.due = true
		return
	}
	a.latest = max(a.latest, b.Number)
	a.skip(b.Oldest)
	if b.Number != a.received+1 {
		a.due = true // a batch is missing: the agent repeats all from there
		return
	}
	a.received = b.Number
	one := &batch{number: b.Number}
	a.open = append(a.open, one)
	for _, i := range b.Items {
		e.item(a, one, b.Clock, i, now)
	}
	a.settle()
}

func (e *engine) item(a *agent, b *batch, clock bus.Clock, i bus.Item, now time.Time) {
	p := e.planned[i.Measurement]
	if p == nil || p.params[i.Algorithm] == nil || i.Instance != i.Measurement && !strings.HasPrefix(i.Instance, i.Measurement+"/") {
		e.refuse(a, foreign, fmt.Errorf("%.80s of %.80s is in no measurement of the plan", i.Algorithm, i.Instance))
		return
	}
	if i.Message != nil || i.Begins {
		e.deliver(a, clock, i, now)
		return
	}
	s, err := snapshot.Decode(i.Snapshot)
	if err != nil {
		e.refuse(a, malformed, err)
		return
	}
	if err := p.fits(s, i.Algorithm); err != nil {
		e.refuse(a, foreign, err)
		return
	}
	if clock.Known {
		s.Offset = clock.Offset
	}
	e.window(a, b, clock.Known, p, i, s.Wall(), now)
}

// fits refuses a snapshot whose seeds or parameters differ from the plan's.
func (p *planned) fits(s *snapshot.Snapshot, algorithm string) error {
	switch {
	case s.Algorithm != algorithm || s.Parts != 1 || s.Replay:
		return fmt.Errorf("a snapshot of %.80q, of %d windows", s.Algorithm, s.Parts)
	case s.Hashes != p.mark || s.CRC != p.CRC:
		return errors.New("its hash seeds are not the plan's")
	case s.WindowNS != p.length[algorithm]:
		return fmt.Errorf("its windows have %d ns, the plan's %d", s.WindowNS, p.length[algorithm])
	case !maps.Equal(s.Params, p.params[algorithm]):
		return errors.New("its parameters are not the plan's")
	}
	return nil
}

// window adds one window of a host, with times in ns since 1970 on the coordinator's clock.
func (e *engine) window(a *agent, b *batch, known bool, p *planned, i bus.Item, s *snapshot.Snapshot, now time.Time) {
	length, start, end := p.length[i.Algorithm], s.Window.Start, s.Window.End
	longest := 3 * length / 2
	if s.Window.Stretched { // the agent was restarted or its machine was busy: what it counted meanwhile is in no other window
		longest = max(longest, int64(forgotten))
	}
	if end-start > longest || start > now.UnixNano()+length || end > now.UnixNano()+5*length/2 || end < now.Add(-forgotten).UnixNano() {
		e.refuse(a, untimely, fmt.Errorf("a window from %s to %s", report.UTC(start), report.UTC(end)))
		return
	}
	result, err := reported(s)
	if err != nil {
		e.refuse(a, malformed, err)
		return
	}
	sets := p.Of(a.name)
	if len(sets) == 0 {
		e.refuse(a, foreign, fmt.Errorf("host is in no set of measurement %s", p.Name))
		return
	}
	index := (start + (end-start)/2) / length
	if s.Window.Stretched {
		index = max(index, (end-length/2)/length) // of its end: earlier periods may be closed
	}
	off := max(start-index*length, index*length-start, end-(index+1)*length, (index+1)*length-end) > length/100
	a.windows++
	if off && !s.Window.Cut && !s.Window.Last {
		a.skewed++
	}
	for _, set := range sets {
		f := e.flow(stream{p.Name, set, i.Algorithm})
		if index <= f.closed {
			f.late++
			a.late++
			continue
		}
		one := f.open[index]
		if one == nil {
			one = newPeriod()
			f.open[index] = one
		}
		if one.overlaps(a.name, i.Instance, start, end) {
			e.refuse(a, replayed, fmt.Errorf("window of %s was received before", i.Instance))
			continue
		}
		if err := one.add(s); err != nil {
			one.unfit++
			e.refuse(a, malformed, err)
			continue
		}
		one.count(a.name, i.Instance, start, end)
		one.flows.see(a.name, result.Body)
		one.open = append(one.open, opened{a, b, a.incarnation})
		b.parts++
		switch {
		case s.Window.Cut || s.Window.Last:
			one.cut++
		case !known:
			one.unknown++
		case off:
			one.skewed++
		}
		f.members[a.name] = max(f.members[a.name], index)
	}
}

// flow returns the state of a stream. A new one accepts windows of any age: a window that an agent still holds has not been
// answered by an earlier coordinator.
func (e *engine) flow(at stream) *flow {
	f := e.streams[at]
	if f == nil {
		f = &flow{closed: -1, open: map[int64]*period{}, members: map[string]int64{}, last: e.began}
		e.streams[at] = f
	}
	return f
}

// tick closes the periods that are due and updates the agents' states. It returns the answers to send, by agent.
func (e *engine) tick(now time.Time) map[string]*bus.Answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.agents {
		if !a.silent && now.Sub(a.hello) > silentAfter {
			a.silent = true
			e.log.Warn("agent silent", "agent", a.name)
		}
		if now.Sub(a.hello) > forgotten {
			e.forget(a)
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(e.streams), stream.compare) {
		p := e.planned[at.measurement]
		if p == nil || p.params[at.algorithm] == nil {
			delete(e.streams, at) // the plan has changed
			delete(e.losses, at)
			continue
		}
		f := e.streams[at]
		for _, index := range slices.Sorted(maps.Keys(f.open)) {
			if !e.due(p, p.length[at.algorithm], f, index, now) {
				break
			}
			e.close(at, p, f, index, now)
		}
	}
	e.collect(now)
	answers := map[string]*bus.Answer{}
	for name, a := range e.agents {
		if a.due || len(a.waiting) > 0 || a.received != a.answered && now.Sub(a.replied) >= unhurried {
			answers[name] = e.answer(a, now)
		}
	}
	return answers
}

func (e *engine) forget(a *agent) {
	delete(e.agents, a.name)
	for reason, n := range a.refused { // counters never fall
		e.refused[reason] += n
	}
	for _, f := range e.streams {
		delete(f.members, a.name)
	}
	e.leave(a)
	e.log.Info("agent forgotten", "agent", a.name)
	e.dirty = true
}

// due reports whether all expected hosts have sent the window, or its waiting time is over.
func (e *engine) due(p *planned, length int64, f *flow, index int64, now time.Time) bool {
	end := (index + 1) * length
	if now.UnixNano() < end {
		return false
	}
	if now.UnixNano() >= end+int64(p.Wait) {
		return true
	}
	one := f.open[index]
	for host, last := range f.members {
		a := e.agents[host]
		if a == nil || a.silent {
			continue
		}
		if h := one.hosts[host]; last >= index-1 && (h == nil || h.until < end-length/100) {
			return false
		}
	}
	return f.number > 0 // in the first window the set of hosts is not yet known
}

// close reports one window.
func (e *engine) close(at stream, p *planned, f *flow, index int64, now time.Time) {
	one := f.open[index]
	delete(f.open, index)
	f.closed, f.last = index, now
	e.dirty = true
	for _, o := range one.open {
		if o.agent.incarnation == o.incarnation {
			o.batch.parts--
			o.agent.settle()
		}
	}
	if err := e.report(at, p, f, one, index); err != nil {
		e.log.Error("window not answered", "measurement", at.name(), "algorithm", at.algorithm, "error", err)
	}
	f.number++
}

func (e *engine) report(at stream, p *planned, f *flow, one *period, index int64) error {
	whole, err := one.whole()
	if err != nil {
		return err
	}
	if whole == nil {
		return nil
	}
	result, err := reported(whole)
	if err != nil {
		return err
	}
	line := report.Line{Algorithm: at.algorithm, Identity: report.Identity{Instance: at.measurement, Vantage: at.set}, Window: report.Window{Start: index * p.length[at.algorithm], End: (index + 1) * p.length[at.algorithm],
		Number: f.number}, Packets: whole.Packets, Lost: result.Lost, Report: result.Body, Hosts: e.hosts(p, f, one, index)}
	line.Packets.Used, line.Packets.UsedSegments = result.Used, result.Segments
	if part := e.parts[stream{measurement: at.measurement, algorithm: at.algorithm}]; part != nil {
		if err := addPart(&line, part); err != nil {
			return err
		}
	}
	if err := e.suspects(at, &line, whole); err != nil {
		e.log.Error("search for suspect links failed", "error", err)
	}
	if line.Lost == nil {
		line.Lost = map[string]uint64{}
	}
	line.Lost["hosts_missing"] = uint64(line.Hosts.Missing)
	line.Lost["windows_late"] = f.late - f.reported
	line.Lost["windows_unfit"] = uint64(one.unfit)
	f.reported = f.late
	if line.Snapshot, err = whole.Encode(); err != nil {
		e.log.Warn("merged snapshot too large to store", "error", err)
	}
	e.emit(line)
	return nil
}

// addPart appends the report of the algorithm's coordinator part.
func addPart(line *report.Line, part algo.Coordinator) error {
	more, err := part.Report(line.Window)
	if err != nil {
		return err
	}
	line.Report.Values = append(line.Report.Values, more.Body.Values...)
	line.Report.Distributions = append(line.Report.Distributions, more.Body.Distributions...)
	line.Report.Tables = append(line.Report.Tables, more.Body.Tables...)
	line.Report.Notes = append(line.Report.Notes, more.Body.Notes...)
	for what, n := range more.Lost {
		if line.Lost == nil {
			line.Lost = map[string]uint64{}
		}
		line.Lost[what] += n
	}
	return nil
}

// suspects adds the links that flows with losses have in common.
func (e *engine) suspects(at stream, line *report.Line, s *snapshot.Snapshot) error {
	if e.paths == nil {
		return nil
	}
	of, err := algo.SelectedFor(s)
	if err != nil {
		return err
	}
	reporter, ok := of.Config.(algo.LossReporter)
	if !ok {
		return nil
	}
	losses, err := reporter.Losses(s)
	if err != nil {
		return err
	}
	e.losses[at] = losses
	body := e.paths.Rank(losses).Body()
	line.Report.Values = append(line.Report.Values, body.Values...)
	line.Report.Tables = append(line.Report.Tables, body.Tables...)
	return nil
}

// mostMissing bounds the names of hosts in a line.
const mostMissing = 16

// hosts describes which hosts contributed to a window.
func (e *engine) hosts(p *planned, f *flow, one *period, index int64) *report.Hosts {
	h := &report.Hosts{Merged: len(one.hosts), Windows: one.parts, Skewed: one.skewed, Cut: one.cut, Unmeasured: one.unknown, Vantage: "declared once"}
	if len(p.Vantage) > 0 {
		h.Vantage = "declared sets"
	}
	for _, host := range slices.Sorted(maps.Keys(f.members)) {
		if one.hosts[host] == nil && f.members[host] < index {
			h.Missing++
			if len(h.MissingNames) < mostMissing {
				h.MissingNames = append(h.MissingNames, host)
			}
		}
	}
	h.Known = len(one.hosts) + h.Missing
	var twice []string
	h.FlowsShared, h.FlowsTwice, twice = one.flows.twice()
	if h.FlowsTwice > 0 {
		h.TwiceNames = twice[:min(len(twice), mostMissing)]
	}
	return h
}

// changed returns the state to save, if it has changed since the last call. age is the time since then.
func (e *engine) changed(age time.Duration) (state, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.dirty && (!e.partsDirty || age < time.Second) {
		return state{}, false
	}
	e.dirty, e.partsDirty = false, false
	return e.state(), true
}

// stored records whether a state was saved. If so, agents are allowed to drop the batches that it marks as used.
func (e *engine) stored(s state, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !ok {
		e.dirty = true
		return
	}
	e.term = s.Term
	for name, k := range s.Agents {
		if a := e.agents[name]; a != nil && a.incarnation == k.Incarnation && a.saved < k.Used {
			a.saved, a.due = k.Used, true
		}
	}
}

func (e *engine) setPaths(p *suspect.Paths) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.paths = p
}
