// Package dropsverb is the verb drops: which packets the kernel drops, and why.
package dropsverb

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/loader/drops"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/host"
)

const long = `Counts the packets that the kernel drops, by interface and by the kernel's own reason (the trace point kfree_skb): a socket
whose buffer is full, a port that nobody listens at, a full queue, a firewall rule, a wrong checksum, a limit of xdpmon's.
Each reason is printed with its meaning and where to look next. Without names, the interfaces are those that exist at the start.

What a network card or an XDP program in its driver drops never becomes a packet of the kernel, and is not counted:
ip -s link, ethtool -S. The reason needs Linux 5.17; on kernels before 6.11 drops by sockets have no known interface.`

const example = `  sudo xdpmon drops                       all interfaces of this network namespace, every 10 s
  sudo xdpmon drops eth0 --for 60s
  sudo xdpmon drops --window 1s --output json | jq '.interfaces[] | select(.dropped != [])'`

const (
	most      = 256 // interfaces that can be watched at the same time
	maxWindow = 24 * time.Hour
)

// Counter counts what the kernel drops.
type Counter interface {
	Watch(ifindex int) error
	Read() (map[int][]drops.Count, error)
	Sockets() bool
	Close() error
}

// Open loads and attaches the program.
func Open(interfaces int) (Counter, error) { return drops.Open(interfaces) }

// Env is the verb's interface to the program.
type Env struct {
	Stderr     io.Writer
	Terminal   func() bool // standard output is one
	Now        func() time.Time
	After      func(time.Duration) <-chan time.Time
	Signals    cli.Signals
	Privilege  func() error
	Settle     func() error // drops the privileges that are no longer needed
	Open       func(interfaces int) (Counter, error)
	PrintJSON  func(any) error
	PrintLines func(...string) error
}

// options are the flags.
type options struct {
	window, took time.Duration
	output       *cli.Enum[string]
	reasons      bool
}

// New is the command; output adds the flag of that name.
func New(env Env, output func(*cobra.Command) *cli.Enum[string]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "drops [IFACE...]", Short: "Which packets the kernel drops, and why", Long: long, Example: example,
		Args: cli.NeedArgs(0, -1, "interfaces"),
	}
	o := &options{output: output(cmd)}
	cmd.Flags().DurationVar(&o.window, "window", 10*time.Second, "length of a window, 100ms to 24h")
	cmd.Flags().DurationVar(&o.took, "for", 0, "how long to count; 0: until Ctrl-C")
	cmd.Flags().BoolVar(&o.reasons, "reasons", false, "only list this kernel's reasons, with their meaning")
	cmd.RunE = func(_ *cobra.Command, args []string) error { return start(env, o, args) }
	return cmd
}

func start(env Env, o *options, names []string) error {
	asJSON := o.output.Value == "json" || o.output.Value == "auto" && !env.Terminal()
	switch {
	case o.reasons:
		return list(env, asJSON)
	case o.window < 100*time.Millisecond || o.window > maxWindow:
		return cli.UsageError("--window %v: allowed are 100ms to %v", o.window, maxWindow)
	case o.took < 0:
		return cli.UsageError("--for %v: give a positive time like 60s or 10m", o.took)
	}
	watched, err := interfaces(names)
	if err != nil {
		return err
	}
	if err := env.Privilege(); err != nil {
		return fmt.Errorf("drops: %w", err)
	}
	counter, err := env.Open(len(watched))
	if err != nil {
		return err
	}
	for _, i := range watched {
		if err = counter.Watch(i.Index); err != nil {
			return errors.Join(err, counter.Close())
		}
	}
	if err = env.Settle(); err != nil {
		return errors.Join(err, counter.Close())
	}
	if !counter.Sockets() {
		fmt.Fprintln(env.Stderr, "xdpmon: this kernel does not name the socket of a drop (Linux 6.11): drops by sockets have no known interface")
	}
	r := &run{env: env, counter: counter, list: watched, removed: map[int]bool{}, json: asJSON}
	return errors.Join(r.run(o), counter.Close())
}

// list lists the kernel's reasons.
func list(env Env, asJSON bool) error {
	known, err := host.Reasons()
	if err != nil {
		return err
	}
	if !asJSON {
		return env.PrintLines(known.Lines()...)
	}
	for _, r := range known {
		err = errors.Join(err, env.PrintJSON(r))
	}
	return err
}

// interfaces are the named interfaces, or all.
func interfaces(names []string) ([]net.Interface, error) {
	if len(names) == 0 {
		all, err := net.Interfaces()
		if len(all) > most {
			return nil, cli.UsageError("there are %d interfaces: name at most %d of them", len(all), most)
		}
		return all, err
	}
	var list []net.Interface
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, cli.UsageError("%s is given twice", name)
		}
		one, err := net.InterfaceByName(name)
		if err != nil {
			return nil, fmt.Errorf("interface %s: %w; ip link shows what there is", report.Printable(name), err)
		}
		list = append(list, *one)
	}
	return list, nil
}

// run prints windows until its end.
type run struct {
	env     Env
	counter Counter
	list    []net.Interface
	removed map[int]bool
	json    bool
	earlier map[int][]drops.Count
	from    time.Time
}

func (r *run) run(o *options) (err error) {
	signals, unsubscribe := r.env.Signals()
	defer unsubscribe()
	var over <-chan time.Time
	if o.took > 0 {
		over = r.env.After(o.took)
	}
	r.from = r.env.Now()
	if r.earlier, err = r.counter.Read(); err != nil {
		return err
	}
	for {
		select {
		case <-signals:
			return r.print()
		case <-over:
			return r.print()
		case <-r.env.After(o.window):
			if err := r.print(); err != nil {
				return err
			}
		}
	}
}

// print ends a window.
func (r *run) print() error {
	now, err := r.counter.Read()
	if err != nil {
		return err
	}
	d := host.Drops{From: r.from, To: r.env.Now(), Unknown: host.DropsSince(r.earlier[0], now[0]), Interfaces: []host.InterfaceDrops{}}
	for _, i := range r.list {
		d.Interfaces = append(d.Interfaces, host.InterfaceDrops{Interface: i.Name, Removed: r.isRemoved(i.Index), Dropped: host.DropsSince(r.earlier[i.Index], now[i.Index])})
	}
	r.earlier, r.from = now, d.To
	if r.json {
		return r.env.PrintJSON(d)
	}
	return r.env.PrintLines(d.Lines()...)
}

// isRemoved reports whether an interface no longer exists, and prints it once.
func (r *run) isRemoved(index int) bool {
	if r.removed[index] {
		return true
	}
	if _, err := net.InterfaceByIndex(index); err == nil {
		return false
	}
	name := r.list[slices.IndexFunc(r.list, func(i net.Interface) bool { return i.Index == index })].Name
	fmt.Fprintf(r.env.Stderr, "xdpmon: interface %s was removed\n", report.Printable(name))
	r.removed[index] = true
	return true
}
