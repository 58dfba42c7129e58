package agent

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/bus/client"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// linked is the agent's side of the bus, with the coordinator's plan. The agent's lock guards it.
type linked struct {
	cfg     *config.Bus
	link    *client.Link
	holder  *keys.Holder
	plan    *bus.Plan
	refused map[string]string // measurements that cannot run here, with the reason
}

// connect opens the link of a configuration, unless the running one has the same settings.
func (a *Agent) connect(cfg *config.Bus) error {
	a.mu.Lock()
	before := a.bus
	a.mu.Unlock()
	if before != nil && cfg != nil && sameBus(before.cfg, cfg) {
		return nil
	}
	next := (*linked)(nil)
	if cfg != nil {
		var err error
		if next, err = a.openLink(cfg); err != nil {
			return err
		}
	}
	a.mu.Lock()
	a.bus = next
	a.mu.Unlock()
	if before != nil {
		before.link.Close()
	}
	a.renew() // the coordinator of another link has no state of them
	return nil
}

func sameBus(a, b *config.Bus) bool {
	return slices.Equal(a.Servers, b.Servers) && a.Name == b.Name && a.Buffer == b.Buffer && a.Plan == b.Plan && (a.Keys == nil) == (b.Keys == nil) &&
		(a.Keys == nil || *a.Keys == *b.Keys)
}

func (a *Agent) openLink(cfg *config.Bus) (*linked, error) {
	l := &linked{cfg: cfg, refused: map[string]string{}, plan: a.recall(cfg.Plan)}
	var secure *tls.Config
	if cfg.Keys != nil {
		var err error
		if l.holder, err = holdKeys(cfg); err != nil {
			return nil, err
		}
		secure = l.holder.Client()
		if text := l.holder.Trouble(time.Now()); text != "" {
			a.log.Warn(text, "certificate", cfg.Keys.Certificate)
		}
	}
	link, err := client.Open(client.Options{Name: cfg.Name, Servers: cfg.Servers, TLS: secure, Buffer: int(cfg.Buffer), Software: a.opts.Version, Log: a.log,
		Clock: hostclock.Now, Wall: func() int64 { return time.Now().UnixNano() },
		Plan:    func(p *bus.Plan) { a.take(l, p) },
		Refused: func() map[string]string { a.mu.Lock(); defer a.mu.Unlock(); return maps.Clone(l.refused) },
		Message: a.deliver, Renew: a.renew, Found: a.found,
	}, a.out.Hub(), a.shares)
	l.link = link
	return l, err
}

// found returns the active findings of this host, encoded for the coordinator.
func (a *Agent) found() (items [][]byte, more uint64, subjects []string) {
	for _, f := range a.out.Open() {
		text, err := json.Marshal(f)
		if err != nil || len(text) > bus.MaxFindingSize || len(items) == bus.MaxFindings {
			more++
			continue
		}
		items = append(items, text)
	}
	for _, name := range a.out.Subjects() {
		if len(name) <= bus.MaxSubjectSize && len(subjects) < bus.MaxSubjects {
			subjects = append(subjects, name)
		}
	}
	return items, more, subjects
}

// holdKeys reads the keys of this host.
func holdKeys(cfg *config.Bus) (*keys.Holder, error) {
	h, err := keys.Hold(*cfg.Keys)
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	if _, name := h.Until(); name != cfg.Name {
		return nil, fmt.Errorf("bus: %s is %s's certificate, and this host's name is %s: give bus.name", cfg.Keys.Certificate, name, cfg.Name)
	}
	return h, nil
}

// sendMessage sends a message of an algorithm to its coordinator. Queues are bounded, and it never blocks.
func (a *Agent) sendMessage(instance string, s session.Message) {
	a.mu.Lock()
	l := a.bus
	a.mu.Unlock()
	switch {
	case l == nil: // the coordinator was removed from the configuration: the instance is about to be changed
	case s.Begins:
		l.link.Begin(instance, s.Algorithm)
	default:
		l.link.Publish(instance, s.Algorithm, s.Time, s.Lost, s.Data)
	}
}

// deliver passes a coordinator's message to its algorithm. A message for an instance that does not run is dropped, because the instance requests the
// state when it starts.
func (a *Agent) deliver(m bus.Message) {
	a.mu.Lock()
	w := a.workers[m.Instance]
	a.mu.Unlock()
	if w != nil && a.shares(m.Instance) {
		if s := w.receiver.Load(); s != nil {
			s.Receive(m.Algorithm, m.Data)
		}
	}
}

// renew has all instances request the whole state from their coordinators, because updates may have been lost.
func (a *Agent) renew() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.workers {
		if s := w.receiver.Load(); s != nil {
			s.Renew()
		}
	}
}

// shares reports whether the windows of an instance are sent to the coordinator.
func (a *Agent) shares(instance string) bool {
	rule, _, _ := strings.Cut(instance, "/")
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.cfg.Find(rule)
	return ok && r.Shared
}

// take stores another plan, which the next reconciliation applies.
func (a *Agent) take(l *linked, p *bus.Plan) {
	a.mu.Lock()
	l.plan = p
	clear(l.refused)
	a.mu.Unlock()
	if err := a.remember(l.cfg.Plan, p); err != nil {
		a.log.Warn("the coordinator's plan not stored for a start without it", "error", err)
	}
	a.log.Info("the coordinator's plan", "revision", p.Revision, "measurements", len(p.Measurements))
	signal(a.links.changed)
}

// remember stores the plan, so that an agent which starts without a reachable coordinator continues with it. The file contains
// seeds, so its mode is 0600.
func (a *Agent) remember(path string, p *bus.Plan) error {
	data, err := bus.EncodePlan(p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// recall reads the plan of an earlier run; nil if there is none.
func (a *Agent) recall(path string) *bus.Plan {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	p, err := bus.DecodePlan(data)
	if err != nil {
		a.log.Warn("saved plan of the coordinator unreadable", "error", err)
		return nil
	}
	return p
}

// rules are the configuration's, with the shared ones completed by the coordinator's plan; a shared rule without a measurement in the
// plan is omitted. The caller holds the lock.
func (a *Agent) rules() []config.Instance {
	var list []config.Instance
	for _, r := range a.cfg.Instances {
		if !r.Shared {
			list = append(list, r)
			continue
		}
		if a.bus == nil || a.bus.plan == nil {
			continue
		}
		full, err := follow(r, a.bus.plan)
		if err != nil {
			if a.bus.refused[r.Name] != err.Error() {
				a.log.Error("the coordinator's measurement refused", "instance", r.Name, "error", err)
			}
			a.bus.refused[r.Name] = err.Error()
			continue
		}
		list = append(list, full)
	}
	return list
}

// follow completes a rule by the coordinator's plan. The plan is checked like a configuration, and algorithms that act on packets are
// refused.
func follow(r config.Instance, p *bus.Plan) (config.Instance, error) {
	m, known := p.Find(r.Name)
	if !known {
		return r, errors.New("the coordinator has no measurement of this name")
	}
	r.Window, r.Seed, r.Hash, r.Decap = time.Duration(m.WindowNS), m.Seed, algo.HashOf(m.CRC), m.Decap
	if r.Window < 100*time.Millisecond || r.Window > 24*time.Hour || r.Seed == 0 || len(m.Algorithms) == 0 {
		return r, fmt.Errorf("a window of %v with %d algorithms", r.Window, len(m.Algorithms))
	}
	setup, env := algo.Setup{Hash: r.Hash}, algo.Env{Seed: r.Seed, Epoch: func() uint64 { return 0 }}
	for _, c := range m.Algorithms {
		d, err := algo.Lookup(c.Name)
		if err != nil {
			return r, err
		}
		if d.Enforces {
			return r, fmt.Errorf("%s acts on packets: only this host's own configuration may set that", d.Name)
		}
		if setup.WindowNS = cmp.Or(c.WindowNS, m.WindowNS); c.WindowNS < 0 || setup.WindowNS > int64(24*time.Hour) {
			return r, fmt.Errorf("a window of %v for %s", time.Duration(setup.WindowNS), c.Name)
		}
		s, err := d.Select(c.Params, setup)
		if err != nil {
			return r, err
		}
		if check, ok := s.Config.(algo.MergeChecker); ok {
			if err := check.CheckMerge(); err != nil {
				return r, err
			}
		}
		s.Window = c.WindowNS
		if _, err := s.New(env); err != nil {
			return r, err
		}
		r.Algorithms = append(r.Algorithms, s)
	}
	return r, session.CheckWindows(r.Algorithms, r.Window)
}

// boundary is the next window end that all hosts share: a whole number of windows since 1970, by the coordinator's clock if its offset
// is known.
func (a *Agent) boundary(after, window int64) int64 {
	offset := a.ahead()
	return ((after+offset)/window+1)*window - offset
}

// epoch is the number of the window of an instance that begins now.
func (a *Agent) epoch(window int64) uint64 {
	now := hostclock.Now() + window/rounding
	return uint64((now + a.ahead()) / window)
}

// rounding: a window begins slightly after the end of the one before, or before it by a clock correction since; up to 1/rounding of
// a window is rounded.
const rounding = 20

func (a *Agent) ahead() int64 {
	a.mu.Lock()
	l := a.bus
	a.mu.Unlock()
	if l != nil {
		if c := l.link.Clock(); c.Known {
			return c.Offset
		}
	}
	return hostclock.Read().UnixOffsetNS
}

// BusHealth is the state of the link to the coordinator.
type BusHealth struct {
	client.Health
	Refused map[string]string `json:"refused_measurements,omitempty"`
	Expires string            `json:"certificate_expires,omitempty"`
}

func (h *Health) linked(a *Agent) {
	a.mu.Lock()
	l := a.bus
	if l == nil {
		a.mu.Unlock()
		return
	}
	b := &BusHealth{Refused: maps.Clone(l.refused)}
	planned := l.plan != nil
	a.mu.Unlock()
	b.Health = l.link.Health()
	h.Bus = b
	switch {
	case !b.Connected && b.Trouble != "":
		h.problem(degraded, "no coordinator is connected: %s", b.Trouble)
	case !b.Connected:
		h.problem(degraded, "no coordinator is connected")
	case b.Answered < 0 || b.Answered > silence.Seconds():
		h.problem(degraded, "no coordinator answers")
	case !planned:
		h.problem(degraded, "the coordinator has not sent what is to be measured")
	}
	for _, name := range slices.Sorted(maps.Keys(b.Refused)) {
		h.problem(degraded, "%s: %s", name, b.Refused[name])
	}
	if l.holder != nil {
		until, _ := l.holder.Until()
		b.Expires = until.UTC().Format(time.RFC3339)
		if text := l.holder.Trouble(time.Now()); text != "" {
			h.problem(degraded, "%s", text)
		}
	}
}

// silence is the time without a coordinator's message, several hellos long, that is reported as a problem.
const silence = 15 * time.Second
