package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

const checkLong = `Measures with everything that only measures, and prints what is wrong: findings, and nothing else. Nothing is dropped,
marked or left behind.

A finding compares what is measured with what was promised (--promise), else with the windows before it: the first five windows of a run
teach what is usual, so that only scans, floods and missing answers are found in them. docs/findings.md names all kinds, and what each needs.

Exit codes: 0 nothing was found, 4 something was; 1 to 3 as everywhere.`

const checkExample = `  sudo xdpmon check eth0                                  a minute of eth0
  sudo xdpmon check eth0 eth1 --for 10m --window 10s
  sudo xdpmon check eth0 --promise '10.2.0.0/16 p50 < 50ms' --promise 'eth0 loss < 0.1 %'
  xdpmon check capture.pcap                               the same from a file
  xdpmon check capture.pcap --output json | jq -r 'select(.finding) | .finding.text'`

// checkOptions are the flags of check.
type checkOptions struct {
	output    *enum
	promises  []string
	parsed    []finding.Promise
	took      time.Duration
	window    time.Duration
	seed      uint64
	decap     bool
	direction *enum
}

func newCheck(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check IFACE...|CAPTURE...", Short: "Say what is wrong on interfaces or in captures", Long: checkLong, Example: checkExample,
		Args:              cli.NeedArgs(1, -1, "the interface or capture to check"),
		ValidArgsFunction: completeInterfaces,
	}
	o := &checkOptions{output: addOutput(cmd)}
	f := cmd.Flags()
	f.DurationVar(&o.took, "for", time.Minute, "how long to measure on interfaces; 0: until Ctrl-C")
	f.DurationVar(&o.window, "window", 5*time.Second, "length of a window, 1s to 24h: a finding needs two")
	f.StringArrayVar(&o.promises, "promise", nil, "what was promised, `'SUBJECT p99 < 50ms'`, 'SUBJECT loss < 0.1 %' or 'SUBJECT share fair'; a subject is a prefix, an address or an interface; repeatable")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the hashes (default: random live, 1 in a replay)")
	f.BoolVar(&o.decap, "decap", false, "look into VXLAN, GENEVE, GRE, IPIP and 6in4, one level")
	o.direction = enumFlag(cmd, "direction", string(attach.Both), "which packets to see", words(attach.Directions)...)
	cmd.RunE = func(_ *cobra.Command, args []string) error { return runCheck(env, o, args) }
	return cmd
}

// A pass is a session: an algorithm is in it once. Several of fridge see handshakes, data, whole connections, names and times at once.
type pass struct {
	name       string
	algorithms []string
	set        []string
	live       bool // needs the kernel's own queue
}

// apply lets rules read a line. Several passes have the same algorithm on the same interface.
func (p pass) apply(l report.Line) diagnose.Window {
	w := diagnose.Apply(l)
	w.Source += "\x00" + p.name
	return w
}

// Sizes that a check takes: groups of networks and servers, and thresholds of scans and floods in ten seconds.
const (
	groupRows    = "64"
	checkQueries = "host-scan: count distinct dst by src > 100 in 10s if tcp.syn and not tcp.ack; " +
		"port-scan: count distinct dport by src+dst > 100 in 10s if tcp.syn and not tcp.ack; " +
		"superspreader: count distinct dst by src > 1000 in 30s; " +
		"ddos-victim: count distinct src by dst > 1000 in 10s; " +
		"syn-flood: count distinct src+sport by dst+dport > 1000 in 10s if tcp.syn and not tcp.ack"
)

func passes() []pass {
	group := func(name, match, by string) pass {
		return pass{name: name, algorithms: []string{"fridge"}, set: []string{"fridge.match=" + match, "fridge.group=" + by, "fridge.group6=56", "fridge.rows=" + groupRows}}
	}
	traffic := group("traffic", "tcp-handshake", "dst/24")
	traffic.algorithms = []string{"fridge", "lean", "reorder", "precision", "hhh", "beaucoup"}
	traffic.set = append(traffic.set, "beaucoup.queries="+checkQueries)
	return []pass{traffic, group("data", "tcp-data", "dst/24"), group("servers", "tcp-handshake", "dst/32"), group("connections", "tcp-duration", "dst/32"), group("names", "dns", "dst/32"), group("times", "ntp", "dst/32"),
		{name: "queue", algorithms: []string{"conquest"}, live: true}}
}

// handshakes without groups have the percentiles that a promise may name.
func promisePass() pass {
	return pass{name: "promise", algorithms: []string{"fridge"}, set: []string{"fridge.match=tcp-handshake"}}
}

func runCheck(env *environment, o *checkOptions, args []string) error {
	captures, err := o.check(args)
	if err != nil {
		return err
	}
	if err := env.engine.privilege(); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	c := &checker{env: env, o: o, names: args, engine: diagnose.New(o.parsed...), json: o.output.value == "json" || o.output.value == "auto" && !env.isTerminal(env.stdout)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals, unsubscribe := env.signals()
	defer unsubscribe()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	if captures {
		err = c.captures(ctx)
	} else {
		err = c.live(ctx)
	}
	return errors.Join(err, c.conclude(err))
}

// check refuses what makes no sense, and says whether captures were named.
func (o *checkOptions) check(args []string) (captures bool, err error) {
	if o.window < time.Second || o.window > maxWindow {
		return false, cli.UsageError("--window %v: allowed are 1s to %v", o.window, maxWindow)
	}
	if o.took < 0 {
		return false, cli.UsageError("--for %v: give a positive time like 60s or 10m", o.took)
	}
	for _, text := range o.promises {
		p, err := finding.ParsePromise(text)
		if err != nil {
			return false, cli.UsageError("--promise %w", err)
		}
		o.parsed = append(o.parsed, p)
	}
	files := 0
	for i, name := range args {
		if slices.Contains(args[:i], name) {
			return false, cli.UsageError("%s is given twice", name)
		}
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() || strings.ContainsRune(name, '/') {
			files++
		}
		if name == "-" {
			return false, cli.UsageError("check reads a capture several times; write it into a file first")
		}
	}
	if files != 0 && files != len(args) {
		return false, cli.UsageError("interfaces and captures cannot be checked together: %s", strings.Join(args, ", "))
	}
	return files > 0, nil
}

// checker is one check.
type checker struct {
	env    *environment
	o      *checkOptions
	names  []string
	engine *diagnose.Engine
	json   bool

	mu    sync.Mutex
	found []finding.Finding // that began, in the order of their begin
	err   error             // of the output
	all   atomic.Bool       // all passes are attached
}

func (c *checker) passes(live bool) []pass {
	list := passes()
	if len(c.o.parsed) > 0 {
		list = append(list, promisePass())
	}
	return slices.DeleteFunc(list, func(p pass) bool { return p.live && !live })
}

// selection of a pass.
func (c *checker) selection(p pass) *selection {
	return &selection{algorithms: p.algorithms, set: p.set, seed: c.o.seed, window: c.o.window, decap: c.o.decap, interfaces: 1, hash: &enum{value: "fast"}}
}

func (c *checker) config(p pass, replay bool) (session.Config, error) {
	s := c.selection(p)
	selected, err := s.resolve(replay)
	if err != nil {
		return session.Config{}, fmt.Errorf("check %s: %w", p.name, err)
	}
	cfg := s.config(selected)
	cfg.Notice = func(string, ...any) {}
	return cfg, nil
}

// live runs all passes side by side.
func (c *checker) live(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.engine.SetClock(report.Clock{UnixOffsetNS: c.env.now().UnixNano() - c.env.monotonic()})
	list := c.passes(true)
	var attached sync.WaitGroup
	attached.Add(len(list))
	go func() {
		attached.Wait()
		if ctx.Err() == nil {
			_ = c.env.engine.settle()
			c.all.Store(true)
			c.notice("measuring %s in windows of %v", strings.Join(c.names, ", "), c.o.window)
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
			if !c.all.Load() { // some do not measure yet, and what they would explain is not known
				return nil
			}
			return c.take(p.apply(l))
		}
		live := session.LiveConfig{Config: cfg, Interfaces: c.names, Each: len(c.names) > 1, Hook: string(attach.HookAuto), Mode: string(attach.ModeAuto), Direction: c.o.direction.value}
		if i > 0 {
			live.Hook = string(attach.HookTC) // XDP takes one program an interface
		}
		var once sync.Once
		ready := func() { once.Do(attached.Done) }
		live.Started = func([]*attach.Attachment) { ready() }
		go func() {
			err := c.env.engine.live(ctx, live)
			ready()
			if err != nil && p.live && ctx.Err() == nil {
				c.notice("queue: the own queue cannot be watched: %v", err)
				err = nil
			}
			results <- err
		}()
	}
	var errs []error
	for range list {
		if err := <-results; err != nil {
			errs = append(errs, err)
			cancel()
		}
	}
	return errors.Join(errs...)
}

// begin ends the run in time.
func (c *checker) begin(cancel func()) {
	if c.o.took > 0 {
		go func() { <-c.env.after(c.o.took); cancel() }()
	}
}

// captures are read once for each pass; then their windows are looked at in the order of time.
func (c *checker) captures(ctx context.Context) error {
	var windows []diagnose.Window
	for _, p := range c.passes(false) {
		cfg, err := c.config(p, true)
		if err != nil {
			return err
		}
		cfg.Emit = func(l report.Line) error { windows = append(windows, p.apply(l)); return nil }
		if err := c.env.engine.replay(ctx, cfg, c.names, c.env.stdin, nil); err != nil && !errors.Is(err, session.ErrNoPackets) {
			return err
		}
	}
	slices.SortStableFunc(windows, func(a, b diagnose.Window) int { return int(a.Start/1e6 - b.Start/1e6) })
	for _, w := range windows {
		if err := c.take(w); err != nil {
			return err
		}
	}
	return nil
}

// take diagnoses a window and prints what changed.
func (c *checker) take(w diagnose.Window) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.show(c.engine.Take(w))
}

func (c *checker) show(changed []finding.Finding) error {
	for _, f := range changed {
		at := slices.IndexFunc(c.found, func(g finding.Finding) bool { return g.ID == f.ID })
		if at < 0 {
			c.found = append(c.found, f)
		} else {
			c.found[at] = f
		}
		if c.json {
			c.err = errors.Join(c.err, c.env.printJSON(map[string]any{"finding": f}))
		} else if c.o.took == 0 {
			c.err = errors.Join(c.err, c.env.printLines(c.lines(f)...))
		}
	}
	return c.err
}

func (c *checker) notice(format string, args ...any) {
	fmt.Fprintf(c.env.stderr, "xdpmon: %s\n", report.Printable(fmt.Sprintf(format, args...)))
}

func (c *checker) lines(f finding.Finding) []string {
	head := strings.ToUpper(f.Severity.String())
	if f.State == finding.Ends {
		head += ", over"
	}
	return append(report.Wrap(head+": "+f.Sentence(), c.env.style()), "")
}

// conclude writes the findings, the gravest first, and what could not be told. What was found is an error with an exit code of its own.
func (c *checker) conclude(failed error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.show(c.engine.Flush())
	for _, f := range c.engine.Open() { // as they stand now
		for i := range c.found {
			if c.found[i].ID == f.ID {
				c.found[i] = f
			}
		}
	}
	slices.SortStableFunc(c.found, func(a, b finding.Finding) int { return finding.Worse(&a, &b) })
	if failed == nil || len(c.found) > 0 {
		err = errors.Join(err, c.summary())
	}
	if err == nil && failed == nil && len(c.found) > 0 {
		return errFound
	}
	return err
}

func (c *checker) summary() error {
	idle, busy := c.engine.Idle()
	if c.json {
		return c.env.printJSON(map[string]any{"summary": map[string]any{"found": orNo(c.found), "unable": orNo(c.engine.Unable()), "idle": orNo(idle), "busy": busy, "windows": c.engine.Rounds()}})
	}
	var lines []string
	for _, f := range c.found {
		lines = append(lines, c.lines(f)...)
	}
	if len(c.found) == 0 {
		lines = append(lines, fmt.Sprintf("Nothing found on %s in %d windows of %v.", strings.Join(c.names, ", "), c.engine.Rounds(), c.o.window))
	}
	if c.engine.Rounds() <= 6 {
		lines = append(lines, fmt.Sprintf("Note: %d windows are too few to know what is usual; only absolute bounds and promises were compared (--for, --window).", c.engine.Rounds()))
	}
	if len(idle) > 0 {
		lines = append(lines, report.Wrap("Without traffic: "+strings.Join(idle, ", ")+".", c.env.style())...)
	}
	for _, text := range c.engine.Unable() {
		lines = append(lines, report.Wrap("Not told: "+text+".", c.env.style())...)
	}
	return c.env.printLines(lines...)
}

func orNo[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
