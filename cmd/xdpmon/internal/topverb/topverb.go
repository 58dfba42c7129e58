// Package topverb is the verb top: the API that it reads, and its screen.
package topverb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/top"
	"github.com/xdpmon/xdpmon/userspace/top/client"
)

const long = `Shows what an agent, a coordinator or a run with --listen measures: findings first, then instances, then what is in them. It reads only their API
(docs/api.md), and changes nothing.

Without an argument it follows the agent of this host by its socket, else the coordinator's. An argument is the address of a listener, or the path
of a socket. --replay runs captures through algorithms here and shows them at --speed; --algo, --set, --window, --seed and --decap are for that.

Enter opens a row, Esc returns; [ and ] show earlier and later windows, l returns to live; / filters, s sorts, Space stops, ? lists all keys.
--plain writes lines instead, for screen readers and logs; so does a terminal that cannot move its cursor.`

const example = `  sudo xdpmon top
  xdpmon top :9400                                        the run or agent with --listen :9400
  xdpmon top https://host:9400 --ca ca.pem --cert me.pem --key me.key
  xdpmon top host:9400 --token-file ~/.xdpmon.token
  sudo xdpmon top --replay capture.pcap --algo fridge,lean --speed 10`

// coordinatorSocket is a coordinator's query socket unless its configuration has another one (userspace/coordinator/config, which this program does not link).
const coordinatorSocket = "/run/xdpmon-coordinator/coordinator.sock"

// Env is the verb's interface to the program.
type Env struct {
	Stdin, Stdout, Stderr any
	Getenv                func(string) string
	IsTerminal            func(stream any) bool
	UTF8                  func() bool
	Now                   func() time.Time
	Signals               cli.Signals
	// Replay prepares a run of captures; play runs it.
	Replay func(files []string) (run report.Run, play func(ctx context.Context, emit func(report.Line) error, notice func(string, ...any)) error, err error)
}

type options struct {
	access client.Access
	config string
	plain  bool
	replay []string
	speed  float64
}

// New is the command.
func New(env Env) *cobra.Command {
	cmd := &cobra.Command{Use: "top [ADDRESS]", Short: "Watch what is measured, on a full screen", Long: long, Example: example, Args: cli.NeedArgs(0, 1, "one address")}
	o := &options{}
	f := cmd.Flags()
	f.BoolVar(&o.plain, "plain", false, "write lines, and never move the cursor")
	f.StringArrayVar(&o.replay, "replay", nil, "run a capture, `FILE`, through the algorithms of --algo, and show that; repeatable")
	f.Float64Var(&o.speed, "speed", 1, "of --replay, a multiple of the capture's own; 0: as fast as possible")
	f.StringVarP(&o.config, "config", "c", config.DefaultPath, "the agent's configuration, a YAML `FILE`, which names its socket")
	f.StringVar(&o.access.TokenFile, "token-file", "", "`FILE` with the token of web.auth.token_file there")
	f.StringVar(&o.access.CA, "ca", "", "`FILE` with the certificate of the authority there, for web.auth.certificates")
	f.StringVar(&o.access.Cert, "cert", "", "`FILE` with a certificate of that authority")
	f.StringVar(&o.access.Key, "key", "", "`FILE` with the key of --cert")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if o.speed < 0 {
			return cli.UsageError("--speed %g: give 0 or more", o.speed)
		}
		if len(o.replay) > 0 && len(args) > 0 {
			return cli.UsageError("--replay shows captures, and %s is an address: give one of them", args[0])
		}
		if (o.access.Cert == "") != (o.access.Key == "") {
			return cli.UsageError("--cert and --key go together")
		}
		return run(env, o, args)
	}
	return cmd
}

func run(env Env, o *options, args []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals, stop := env.Signals()
	defer stop()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	screen := Screen(env)
	if len(o.replay) > 0 {
		return replay(ctx, cancel, env, o, screen)
	}
	var err error
	if screen.Target, err = target(ctx, o, args, env.Stderr.(io.Writer)); err != nil {
		return err
	}
	return show(ctx, env, o.plain, screen)
}

// Screen is how a screen is drawn in this environment.
func Screen(env Env) top.Options {
	return top.Options{Quit: "quit", Unicode: env.UTF8(), Color: env.Getenv("NO_COLOR") == "", Now: env.Now}
}

// Sink is the screen of a run: the terminal shows its API, and end is called when the user ends it there.
func Sink(env Env, style report.Style, size func() (width, height int), handler http.Handler, end func(error)) report.Sink {
	o := Screen(env)
	o.Quit = "ends the run"
	sized := func() report.Style { s := style; s.Width, _ = size(); return s }
	return top.NewSink(top.SinkOptions{Out: env.Stdout.(io.Writer), Notices: env.Stderr.(io.Writer), Style: sized, Handler: handler, Screen: o, End: end})
}

// Full reports whether a full screen is possible: standard input and output are a terminal that can move its cursor.
func Full(env Env) bool {
	in, isFile := env.Stdin.(*os.File)
	term := env.Getenv("TERM")
	return isFile && env.IsTerminal(in) && env.IsTerminal(env.Stdout) && term != "dumb" && term != ""
}

func show(ctx context.Context, env Env, plain bool, o top.Options) error {
	if plain || env.IsTerminal(env.Stdout) && env.Getenv("TERM") == "dumb" {
		return top.Plain(ctx, o, env.Stdout.(io.Writer))
	}
	if !Full(env) {
		return errors.New("top: a full screen needs a terminal at standard input and output: --plain writes lines instead")
	}
	err := top.Run(ctx, o)
	if err != nil {
		return fmt.Errorf("top: %w", err)
	}
	return nil
}

// target is the API to read; one request is made first, so that a wrong address is reported before the screen opens.
func target(ctx context.Context, o *options, args []string, notices io.Writer) (t client.Target, err error) {
	if len(args) > 0 {
		if t, err = client.Remote(args[0], o.access); err != nil {
			return t, cli.UsageError("top %w", err)
		}
		if err := try(ctx, t, notices); err != nil {
			return t, fmt.Errorf("top: %w", err)
		}
		return t, nil
	}
	sockets, err := sockets(o.config)
	if err != nil {
		return t, err
	}
	var errs []string
	for _, path := range sockets {
		t = client.Socket(path)
		err := try(ctx, t, notices)
		if err == nil {
			return t, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return t, fmt.Errorf("top: %w (the socket is for root and the agent's user)", err)
		}
		errs = append(errs, err.Error())
	}
	return t, fmt.Errorf("top: %s: start an agent (xdpmon agent), or name a listener: xdpmon top :9400", strings.Join(errs, "; "))
}

func sockets(path string) ([]string, error) {
	cfg, err := config.Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && path == config.DefaultPath:
		return []string{config.DefaultSocket, coordinatorSocket}, nil
	case err != nil:
		return nil, cli.ConfigError(err)
	case cfg.Socket == "":
		return nil, fmt.Errorf("top: %s has no socket: name a listener, or a socket", path)
	}
	return []string{cfg.Socket}, nil
}

// slow is how long an answer may take before the screen names what is waited for.
const slow = time.Second

func try(ctx context.Context, t client.Target, notices io.Writer) error {
	c := client.New(t)
	defer c.Close()
	late := time.AfterFunc(slow, func() { fmt.Fprintf(notices, "xdpmon: waiting for the first answer of %s (Ctrl-C ends)\n", t.Name) })
	_, err := c.Instances(ctx)
	late.Stop()
	if ctx.Err() != nil {
		return fmt.Errorf("ended before %s answered", t.Name)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%s accepts connections and does not answer: is its process stopped or overloaded? (%w)", t.Name, err)
	}
	if err != nil {
		return fmt.Errorf("no API at %s: %w", t.Name, err)
	}
	return nil
}

// replay runs captures and shows them; the screen stays when they have ended.
func replay(ctx context.Context, cancel func(), env Env, o *options, screen top.Options) error {
	run, play, err := env.Replay(o.replay)
	if err != nil {
		return err
	}
	player := top.NewPlayer(run, o.speed)
	var end func() error
	screen.Target, end = client.Within("replay of "+strings.Join(o.replay, ", "), player.Handler())
	ended, notices := make(chan struct{}), make(chan string, 64)
	screen.Ended, screen.Notices = ended, notices
	notice := func(format string, args ...any) {
		select {
		case notices <- fmt.Sprintf(format, args...):
		default: // a request to redraw is pending already
		}
	}
	played := make(chan error, 1)
	go func() {
		err := play(ctx, func(l report.Line) error { return player.Emit(ctx, l) }, notice)
		played <- err
		if err != nil {
			cancel()
			return
		}
		notice("the capture has ended; [ and ] show earlier windows")
		close(ended)
	}()
	err = show(ctx, env, o.plain, screen)
	cancel()
	select {
	case failed := <-played:
		if failed != nil && !errors.Is(failed, context.Canceled) {
			err = errors.Join(failed, err)
		}
	case <-time.After(5 * time.Second): // programs are being loaded: they end with the process
	}
	return errors.Join(err, end())
}
