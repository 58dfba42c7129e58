// Package check measures with all algorithms that do not act on packets, on interfaces or in captures, and prints findings.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/names"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Options of a check: its parameters, and its interface to the calling program.
type Options struct {
	Names       []string // interfaces or captures
	Captures    bool
	Promises    []finding.Promise
	Connections bool          // that wait are named
	For, Window time.Duration // For 0: until the context ends
	Direction   attach.Direction
	Known       *names.Names // names in findings
	Host        string       // of the interfaces, for people
	JSON        bool
	Seeded      bool         // the seed was asked for
	Clock       report.Clock // of live windows
	Style       report.Style

	Config     func(algorithms, set []string, replay bool) (session.Config, error)
	Replay     func(context.Context, session.Config) error
	Live       func(context.Context, session.LiveConfig) error
	Settle     func() error // when all is attached
	After      func(time.Duration) <-chan time.Time
	PrintJSON  func(any) error
	PrintLines func(...string) error
	Notice     func(string)
}

// Run is a check; found reports whether it has findings.
func Run(ctx context.Context, o Options) (found bool, err error) {
	c := &checker{o: o, engine: diagnose.New(o.Promises...), gone: map[string]string{}, running: ctx}
	if o.Captures {
		err = c.captures(ctx)
	} else {
		err = c.live(ctx)
	}
	err = errors.Join(err, c.conclude(err))
	if err == nil && len(c.found) == 0 && len(c.gone) > 0 {
		err = fmt.Errorf("check: %s was removed and did not return: nothing was found until then", strings.Join(slices.Sorted(maps.Keys(c.gone)), ", "))
	}
	return len(c.found) > 0, err
}

// Pass is a session: an algorithm is in it once. Several of fridge see handshakes, data, whole connections, names and times at once.
type Pass struct {
	Name       string
	Algorithms []string
	Set        []string // NAME.KEY=VALUE
	Live       bool     // needs the kernel's own queue
}

// apply lets rules read a line. Several passes have the same algorithm on the same interface.
func (p Pass) apply(l report.Line) diagnose.Window {
	w := diagnose.Apply(l)
	w.Source += "\x00" + p.Name
	return w
}

// Sizes of a check: groups of networks and servers, and thresholds of scans and floods in ten seconds.
const (
	groupRows    = "128"
	checkQueries = "host-scan: count distinct dst by src > 200 in 10s if tcp.syn and not tcp.ack; " +
		"port-scan: count distinct dport by src+dst > 200 in 10s if tcp.syn and not tcp.ack; " +
		"ddos-victim: count distinct src by dst > 1000 in 10s; " +
		"syn-flood: count distinct src+sport by dst+dport > 1000 in 10s if tcp.syn and not tcp.ack"
)

// Passes are the sessions that findings need.
func Passes() []Pass {
	group := func(name, match, by string) Pass {
		return Pass{Name: name, Algorithms: []string{"fridge"}, Set: []string{"fridge.match=" + match, "fridge.group=" + by, "fridge.group6=56", "fridge.rows=" + groupRows}}
	}
	traffic := group("traffic", "tcp-handshake", "dst/24")
	traffic.Algorithms = []string{"fridge", "lean", "reorder", "precision", "hhh", "beaucoup"}
	traffic.Set = append(traffic.Set, "beaucoup.queries="+checkQueries)
	return []Pass{traffic, group("data", "tcp-data", "dst/24"), group("receivers", "tcp-data", "dst/32"), group("servers", "tcp-handshake", "dst/32"), group("connections", "tcp-duration", "dst/32"), group("names", "dns", "dst/32"), group("times", "ntp", "dst/32"),
		{Name: "queue", Algorithms: []string{"conquest"}, Live: true}}
}

// handshakes without groups have the percentiles that a promise may name.
func promisePass() Pass {
	return Pass{Name: "promise", Algorithms: []string{"fridge"}, Set: []string{"fridge.match=tcp-handshake"}}
}

// checker is one check.
type checker struct {
	o      Options
	engine *diagnose.Engine

	mu      sync.Mutex
	found   []finding.Finding // that began, in the order of their begin
	err     error             // of the output
	ended   bool              // nothing more is measured
	all     atomic.Bool       // all passes are attached
	running context.Context   // ends with the measuring
	gone    map[string]string // interfaces that are removed, and since when
}

func (c *checker) passes(live bool) []Pass {
	list := Passes()
	if len(c.o.Promises) > 0 {
		list = append(list, promisePass())
	}
	if c.o.Connections {
		list = append(list, Pass{Name: "waits", Algorithms: []string{"waits"}})
	}
	return slices.DeleteFunc(list, func(p Pass) bool { return p.Live && !live })
}

func (c *checker) config(p Pass, replay bool) (session.Config, error) {
	cfg, err := c.o.Config(p.Algorithms, p.Set, replay)
	if err != nil {
		return cfg, fmt.Errorf("check %s: %w", p.Name, err)
	}
	return cfg, nil
}

// live runs all passes concurrently.
func (c *checker) live(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.engine.SetClock(c.o.Clock)
	c.running = ctx
	list := c.passes(true)
	var attached sync.WaitGroup
	var ready atomic.Int64
	attached.Add(len(list))
	loaded := make(chan struct{})
	go c.progress(ctx, loaded, &ready, len(list), firstProgress, nextProgress)
	go func() {
		attached.Wait()
		close(loaded)
		if ctx.Err() == nil {
			_ = c.o.Settle()
			c.all.Store(true)
			c.notice("measuring %s in windows of %v", strings.Join(c.o.Names, ", "), c.o.Window)
			c.begin(cancel)
		}
	}()
	results := make(chan error, len(list))
	for i, p := range list {
		cfg, err := c.config(p, false)
		if err != nil {
			return err
		}
		cfg.Emit = func(l report.Line) error {
			if !c.all.Load() { // some passes do not measure yet, and findings would lack their explanations
				return nil
			}
			return c.take(p.apply(l))
		}
		live := session.LiveConfig{Config: cfg, Interfaces: c.o.Names, Each: len(c.o.Names) > 1, Hook: attach.HookAuto, Mode: attach.ModeAuto, Direction: c.o.Direction,
			Boundary: boundary}
		if i > 0 {
			live.Hook = attach.HookTC // XDP takes one program an interface
		}
		if i == 0 {
			live.Changed = c.changed
		}
		var once sync.Once
		started := func() { once.Do(func() { ready.Add(1); attached.Done() }) }
		live.Started = func([]*attach.Attachment) { started() }
		go func() {
			err := c.o.Live(ctx, live)
			started()
			if err != nil && p.Live && ctx.Err() == nil {
				c.notice("queue: the own queue cannot be watched: %v", err)
				err = nil
			}
			results <- err
		}()
	}
	var errs []error
	for range list {
		if err := <-results; err != nil && (len(errs) == 0 || !errors.Is(err, context.Canceled)) { // the first one cancels the others
			errs = append(errs, err)
			cancel()
		}
	}
	return errors.Join(errs...)
}

// progress reports how far loading is if it takes longer than wait: the kernel verifies some forty programs an interface.
func (c *checker) progress(ctx context.Context, loaded <-chan struct{}, ready *atomic.Int64, all int, wait, next time.Duration) {
	for ; ; wait = next {
		select {
		case <-ctx.Done():
			return
		case <-loaded:
			return
		case <-time.After(wait):
			c.notice("loading programs on %s: %d of %d groups are attached", strings.Join(c.o.Names, ", "), ready.Load(), all)
		}
	}
}

// When progress is reported.
const (
	firstProgress = 2 * time.Second
	nextProgress  = 10 * time.Second
)

// changed notes that an interface is removed, or that it is there again: what is not measured is not "nothing found".
func (c *checker) changed(iface string, attached bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, was := c.gone[iface]; {
	case attached && was:
		delete(c.gone, iface)
		c.notice("%s is attached again", iface)
	case !attached && c.all.Load() && c.running.Err() == nil:
		now := time.Now().UTC().Format(time.TimeOnly)
		c.gone[iface] = now
		c.notice("%s was removed at %s UTC; it is measured again when it returns", iface, now)
	}
}

// unable lists what could not be measured, and interfaces without data.
func (c *checker) unable() []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(c.gone)) {
		list = append(list, fmt.Sprintf("%s was removed at %s UTC: no data of it since then", name, c.gone[name]))
	}
	if c.empty() {
		list = append(list, "no packets in "+strings.Join(c.o.Names, ", ")+": nothing can be judged")
	}
	return append(list, c.engine.Unable()...)
}

// boundary ends the windows of all passes at the same time, whenever each was attached: a round waits for the latest of them.
func boundary(after, window int64) int64 { return (after/window + 1) * window }

// begin ends the run in time.
func (c *checker) begin(cancel func()) {
	if c.o.For > 0 {
		go func() { <-c.o.After(c.o.For); cancel() }()
	}
}

// captures are read once for each pass; then their windows are diagnosed in the order of time.
func (c *checker) captures(ctx context.Context) error {
	var windows []diagnose.Window
	var broken error
	for i, p := range c.passes(false) {
		read, err := c.read(ctx, p, i == 0)
		windows = append(windows, read...)
		switch {
		case errors.Is(err, capture.ErrTruncated) && len(windows) > 0:
			broken = err // what was read before is as good as ever
		case err != nil && !errors.Is(err, session.ErrNoPackets):
			return err
		}
	}
	slices.SortStableFunc(windows, func(a, b diagnose.Window) int { return int(a.Start/1e6 - b.Start/1e6) })
	for _, w := range windows {
		if err := c.take(w); err != nil {
			return err
		}
	}
	return broken
}

// Groups of a fridge that fall into one row take it from each other: a network that is hidden so in half of its windows has no past. Few groups have rows of their
// own with another seed. So have the coupons of a scan: whose addresses alone draw coupons of other queries loses its own to them, with one seed in a hundred or so.
const (
	otherSeeds = 3   // at most; the one that hides least is taken
	worthIt    = .01 // of all answers, and of all packets of beaucoup
	fewGroups  = 16  // of 128 rows: with more, each seed has some that share one
)

// read reads the captures for a pass.
func (c *checker) read(ctx context.Context, p Pass, first bool) (best []diagnose.Window, err error) {
	least := math.Inf(1)
	for n := range uint64(1 + otherSeeds) {
		cfg, err := c.config(p, true)
		if err != nil {
			return nil, err
		}
		if first && n == 0 {
			cfg.Frames = c.o.Known.Frames()
		}
		if n > 0 {
			cfg.Seed = max(cfg.Seed, 1) + n // 0 is 1 in a replay
		}
		var windows []diagnose.Window
		var h hidden
		cfg.Emit = func(l report.Line) error {
			h.add(l)
			windows = append(windows, c.replayed(p.apply(l)))
			return nil
		}
		err = c.o.Replay(ctx, cfg)
		share := h.share()
		if share < least {
			best, least = windows, share
		}
		if err != nil || share <= worthIt || c.o.Seeded {
			return best, err
		}
	}
	return best, nil
}

// hidden counts the answers of groups whose row another one had, and the packets of which coupons were lost.
type hidden struct {
	answers, all float64
	groups       int // in a window, at most
	lost, seen   float64
}

// share of what another seed may show.
func (h *hidden) share() float64 {
	share := h.lost / max(1, h.seen)
	if h.groups <= fewGroups {
		share += h.answers / max(1, h.all)
	}
	return share
}

func (h *hidden) add(l report.Line) {
	if l.Algorithm == "beaucoup" {
		h.lost += float64(l.Lost["ties"] + l.Lost["crowds"])
		h.seen += float64(l.Packets.Seen)
	}
	named := 0
	finding.Rows(l.Report, "groups", func(r finding.Row) {
		h.all += max(0, r.Num("matched"))
		if r.Text("group") == "others" {
			h.answers += max(0, r.Num("matched"))
		} else {
			named++
		}
	})
	h.groups = max(h.groups, named)
}

// replayed makes a window's findings name the captures instead of an interface.
func (c *checker) replayed(w diagnose.Window) diagnose.Window {
	command := "xdpmon replay " + strings.Join(c.o.Names, " ")
	for i := range w.Seen.Measures {
		m := &w.Seen.Measures[i]
		m.Command, m.Next = command, strings.Replace(m.Next, "xdpmon attach "+m.Instance+" ", command+" ", 1)
	}
	return w
}

// take diagnoses a window and prints what changed.
func (c *checker) take(w diagnose.Window) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.show(c.engine.Take(w))
}

func (c *checker) show(changed []finding.Finding) error {
	for _, f := range c.o.Known.Findings(changed) {
		at := slices.IndexFunc(c.found, func(g finding.Finding) bool { return g.ID == f.ID })
		if at < 0 {
			c.found = append(c.found, f)
		} else {
			c.found[at] = f
		}
		if c.o.JSON {
			c.err = errors.Join(c.err, c.o.PrintJSON(map[string]any{"finding": f}))
		} else if c.o.For == 0 {
			c.err = errors.Join(c.err, c.o.PrintLines(c.lines(f)...))
		}
	}
	return c.err
}

func (c *checker) notice(format string, args ...any) {
	c.o.Notice(fmt.Sprintf(format, args...))
}

func (c *checker) lines(f finding.Finding) []string {
	head := strings.ToUpper(f.Severity.String())
	if f.State == finding.Ends {
		head += ", over"
	}
	parts := f.Parts()
	lines := report.Wrap(head+": "+parts[0], c.o.Style)
	if c.ended && f.Until == 0 {
		parts[2] += ", and still so at the end"
	}
	parts[2] += fmt.Sprintf("; values are those of its worst window of %v", c.o.Window)
	if !c.o.Captures && c.o.Host != "" {
		parts = slices.Insert(parts, 3, "measured on "+f.Interface+" of "+c.o.Host)
	}
	for _, text := range parts[1:] {
		lines = append(lines, c.inset(text, "  ")...)
	}
	for _, step := range f.Steps() {
		lines = append(lines, c.inset(step, "  ", "     ")...)
	}
	return append(lines, "")
}

// inset wraps a text with an indent of its first line, and another one of those that follow.
func (c *checker) inset(text, first string, others ...string) []string {
	next := first
	if len(others) > 0 {
		next = others[0]
	}
	style := c.o.Style
	style.Width = cmp.Or(style.Width, 80) - len(next)
	lines := report.Wrap(text, style)
	for i := range lines {
		if i == 0 {
			lines[i] = first + lines[i]
		} else {
			lines[i] = next + lines[i]
		}
	}
	return lines
}

// conclude writes the findings, the gravest first, and the questions that could not be answered.
func (c *checker) conclude(failed error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.show(c.engine.Flush())
	c.ended = true
	for _, f := range c.o.Known.Findings(c.engine.Open()) { // in their present state
		for i := range c.found {
			if c.found[i].ID == f.ID {
				c.found[i] = f
			}
		}
	}
	slices.SortStableFunc(c.found, func(a, b finding.Finding) int { return finding.Worse(&a, &b) })
	if failed == nil || len(c.found) > 0 || errors.Is(failed, capture.ErrTruncated) {
		err = errors.Join(err, c.summary())
	}
	return err
}

// legend explains the numbers of findings.
const legend = "(a .. b): the 95 % confidence interval. Usually: the same value before, in this data, and up to what."

func (c *checker) summary() error {
	idle, busy := c.engine.Idle()
	if c.o.JSON {
		return c.o.PrintJSON(map[string]any{"summary": map[string]any{"found": orNo(c.found), "unable": orNo(c.unable()), "idle": orNo(idle), "busy": busy, "windows": c.engine.Rounds()}})
	}
	var lines []string
	for _, f := range c.found {
		lines = append(lines, c.lines(f)...)
	}
	if len(c.found) > 0 {
		lines = append(lines, report.Wrap(legend, c.o.Style)...)
	}
	if c.empty() {
		lines = append(lines, report.Wrap("No packets in "+strings.Join(c.o.Names, ", ")+": nothing can be judged.", c.o.Style)...)
		return c.o.PrintLines(lines...)
	}
	if len(c.found) == 0 {
		lines = append(lines, fmt.Sprintf("Nothing found on %s in %s of %v.", strings.Join(c.o.Names, ", "), windows(c.engine.Rounds()), c.o.Window))
	}
	if c.engine.Rounds() <= 6 {
		lines = append(lines, report.Wrap(c.tooFew(), c.o.Style)...)
	}
	if len(idle) > 0 {
		lines = append(lines, report.Wrap("Without traffic: "+strings.Join(idle, ", ")+".", c.o.Style)...)
	}
	for _, text := range c.unable() {
		lines = append(lines, report.Wrap("Unknown: "+text+".", c.o.Style)...)
	}
	return c.o.PrintLines(lines...)
}

// empty reports whether captures had no packet: that nothing was found in them is no answer.
func (c *checker) empty() bool { return c.o.Captures && c.engine.Rounds() == 0 && len(c.found) == 0 }

// tooFew names the flag that gives enough windows.
func (c *checker) tooFew() string {
	remedy := fmt.Sprintf("--for %v", 20*c.o.Window)
	if shorter := max(time.Second, (time.Duration(c.engine.Rounds()) * c.o.Window / 20).Truncate(time.Second)); c.o.Captures && shorter < c.o.Window {
		remedy = fmt.Sprintf("--window %v", shorter)
	} else if c.o.Captures {
		remedy = "a longer capture"
	}
	return fmt.Sprintf("Note: too few windows for a baseline (%s): only absolute bounds and promises were compared. Remedy: %s.", windows(c.engine.Rounds()), remedy)
}

func windows(n int) string {
	if n == 1 {
		return "1 window"
	}
	return fmt.Sprintf("%d windows", n)
}

func orNo[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
