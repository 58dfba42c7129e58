package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/outlet"
	"github.com/xdpmon/xdpmon/userspace/store"
)

const historyLong = `Shows windows that an agent has kept. It asks the agent that runs on this host, and reads the store itself when none does;
both are for root and the agent's user. Times are RFC 3339, or how long ago.

A terminal gets a line a window, with the members that --show names; a pipe gets the windows as they were written.`

const historyExample = `  sudo xdpmon history --from 2h --algo fridge --show report.delay_ns.p50,report.delay_ns.p99
  sudo xdpmon history --from 2026-01-02T15:00:00Z --to 2026-01-02T16:00:00Z --output json | jq .report
  sudo xdpmon history --interface tenants/vnet0 --newest --limit 5`

// historyOptions are the flags of history.
type historyOptions struct {
	from, to, algorithm, iface string
	limit                      int
	newest                     bool
	show                       []string
	config                     string
	output                     *enum
}

func newHistory(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "history", Short: "Look back at what an agent has measured", Long: historyLong, Example: historyExample,
		Args: needArgs(0, 0, "history takes none"),
	}
	o := &historyOptions{output: addOutput(cmd)}
	f := cmd.Flags()
	f.StringVar(&o.from, "from", "", "windows that ended at this `TIME` or later: 2h (ago), 2026-01-02T15:04:05Z")
	f.StringVar(&o.to, "to", "", "windows that ended before this `TIME`")
	f.StringVarP(&o.algorithm, "algo", "a", "", "of this algorithm only")
	f.StringVarP(&o.iface, "interface", "i", "", "of this instance only, as windows name it (tenants, tenants/vnet0)")
	f.IntVar(&o.limit, "limit", 0, "at most so many windows (default: all)")
	f.BoolVar(&o.newest, "newest", false, "the newest first")
	f.StringSliceVar(&o.show, "show", nil, "members of a window that a line shows, `PATH,...` (report.delay_ns.p99)")
	f.StringVarP(&o.config, "config", "c", config.DefaultPath, "the agent's configuration, which says where to ask")
	complete(cmd, "algo", completeAlgorithms)
	cmd.RunE = func(*cobra.Command, []string) error { return history(env, o) }
	return cmd
}

func history(env *environment, o *historyOptions) error {
	if o.limit < 0 {
		return usageError("--limit %d: give a positive number", o.limit)
	}
	if o.algorithm != "" {
		if _, err := lookup(o.algorithm); err != nil {
			return err
		}
	}
	q := store.Query{Algorithm: o.algorithm, Interface: o.iface, Limit: o.limit, Newest: o.newest}
	for _, t := range []struct {
		flag, text string
		at         *time.Time
	}{{"from", o.from, &q.From}, {"to", o.to, &q.To}} {
		at, err := outlet.When(t.text, env.now())
		if err != nil {
			return usageError("--%s: %w", t.flag, err)
		}
		*t.at = at
	}
	cfg, err := config.Load(o.config)
	if err != nil {
		return configError(err)
	}
	text, more, err := recall(cfg, q)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if more && q.Limit == 0 {
		fmt.Fprintln(env.stderr, "xdpmon: there are more windows than are shown at once: narrow --from and --to")
	}
	if o.output.value == "json" || o.output.value == "auto" && !env.isTerminal(env.stdout) {
		_, err := env.stdout.Write(text)
		return err
	}
	return o.table(env, text)
}

// recall asks the agent, and the store where no agent answers.
func recall(cfg *config.Config, q store.Query) (text []byte, more bool, err error) {
	text, more, err = ask(cfg.Socket, q)
	var offline *net.OpError
	if err == nil || !errors.As(err, &offline) || errors.Is(err, os.ErrPermission) {
		return text, more, err
	}
	if cfg.Store == nil {
		return nil, false, fmt.Errorf("no agent answers on %s, and the configuration has no store", cfg.Socket)
	}
	if _, err := os.Stat(cfg.Store.Path); err != nil {
		return nil, false, err
	}
	s, err := store.Open(cfg.Store.Path, store.Options{MaxAge: cfg.Store.MaxAge, MaxBytes: cfg.Store.MaxBytes})
	if err != nil {
		return nil, false, err
	}
	defer s.Close()
	var b bytes.Buffer
	more, err = outlet.History(s, q, &b)
	return b.Bytes(), more, err
}

func ask(socket string, q store.Query) (text []byte, more bool, err error) {
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	v := url.Values{"algorithm": {q.Algorithm}, "interface": {q.Interface}, "limit": {strconv.Itoa(q.Limit)}, "newest": {strconv.FormatBool(q.Newest)}}
	for name, t := range map[string]time.Time{"from": q.From, "to": q.To} {
		if !t.IsZero() {
			v.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	r, err := client.Get("http://agent/history?" + v.Encode())
	if err != nil {
		return nil, false, err
	}
	defer r.Body.Close()
	if text, err = io.ReadAll(r.Body); err != nil {
		return nil, false, fmt.Errorf("read the agent's answer: %w", err)
	}
	if r.StatusCode != http.StatusOK {
		return nil, false, fmt.Errorf("the agent says: %s", strings.TrimSpace(string(text)))
	}
	return text, r.Header.Get(outlet.MoreHeader) == "true", nil
}

// table is a line a window.
func (o *historyOptions) table(env *environment, text []byte) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(append([]string{"END", "INTERFACE", "ALGORITHM", "SECONDS", "SEEN", "USED", "LOST", "MARKS"}, o.show...), "\t"))
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var w map[string]any
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if err := d.Decode(&w); err != nil {
			return fmt.Errorf("history: a window is no JSON: %w", err)
		}
		fmt.Fprintln(t, strings.Join(o.row(w), "\t"))
	}
	t.Flush()
	return env.printLines(strings.TrimRight(b.String(), "\n"))
}

func (o *historyOptions) row(w map[string]any) []string {
	number := func(path string) float64 { f, _ := strconv.ParseFloat(member(w, path), 64); return f }
	lost := 0.0
	if kinds, ok := w["lost"].(map[string]any); ok {
		for name := range kinds {
			lost += number("lost." + name)
		}
	}
	var marks []string
	for _, m := range []string{"cut", "stretched", "last"} {
		if member(w, "window."+m) == "true" {
			marks = append(marks, m)
		}
	}
	row := []string{member(w, "window.end_time"), member(w, "interface"), member(w, "algorithm"),
		strconv.FormatFloat((number("window.end")-number("window.start"))/1e9, 'f', 1, 64),
		member(w, "packets.seen"), member(w, "packets.used"), strconv.FormatFloat(lost, 'f', -1, 64), strings.Join(marks, ",")}
	for _, path := range o.show {
		row = append(row, member(w, path))
	}
	return row
}

// member is what stands at a path of a window; "-" when there is nothing.
func member(w map[string]any, path string) string {
	var at any = w
	for _, key := range strings.Split(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return "-"
		}
		at = m[key]
	}
	if at == nil {
		return "-"
	}
	return fmt.Sprint(at)
}
