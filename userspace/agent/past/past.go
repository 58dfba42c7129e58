// Package past reads the windows that an agent has stored: from the running agent, or from the store if none runs.
package past

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/ordered"
	"github.com/xdpmon/xdpmon/userspace/snapshot/folder"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// Recall queries the agent, or the store if no agent answers.
func Recall(cfg *config.Config, q store.Query) (text []byte, more bool, err error) {
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
	more, err = api.Records(s, q, &b)
	return b.Bytes(), more, err
}

func ask(socket string, q store.Query) (text []byte, more bool, err error) {
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	r, err := client.Get("http://agent" + api.RecordsURL(q))
	if err != nil {
		return nil, false, err
	}
	defer r.Body.Close()
	if text, err = io.ReadAll(r.Body); err != nil {
		return nil, false, fmt.Errorf("read the agent's answer: %w", err)
	}
	if r.StatusCode != http.StatusOK {
		return nil, false, fmt.Errorf("the agent answered: %s", detail(text))
	}
	return text, r.Header.Get(api.MoreHeader) == "true", nil
}

// detail is the message of an error response.
func detail(text []byte) string {
	var p api.Problem
	if json.Unmarshal(text, &p) == nil && p.Detail != "" {
		return p.Detail
	}
	return strings.TrimSpace(string(text))
}

// Sentences are the sentences of findings that began or ended.
func Sentences(text []byte, style report.Style) (lines []string, err error) {
	for line := range bytes.Lines(text) {
		var one struct{ Finding finding.Finding }
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, err
		}
		lines = append(lines, report.Wrap(fmt.Sprintf("%s, %s: %s", one.Finding.State, one.Finding.Severity, one.Finding.Sentence()), style)...)
	}
	if len(lines) == 0 {
		lines = []string{"nothing was found in this time"}
	}
	return lines, nil
}

// Write puts the snapshots of an answer into a folder, as `xdpmon attach --snapshots` does, and returns how many they are.
func Write(text []byte, dir string) (n int, err error) {
	f, err := folder.Open(dir, folder.Options{Limit: math.MaxInt64})
	if err != nil {
		return 0, err
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; n++ {
		var k api.Kept
		if err := d.Decode(&k); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, fmt.Errorf("a snapshot is not valid JSON: %w", err)
		}
		l := report.Line{Algorithm: k.Algorithm, Identity: report.Identity{Instance: k.Key}, Window: report.Window{End: k.End}, Snapshot: k.Snapshot}
		if err := f.Write(&l); err != nil {
			return n, err
		}
	}
}

// Table is a line a window, with the members at the paths of show.
func Table(text []byte, show []string) (string, error) {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(append([]string{"END", "INSTANCE", "INTERFACES", "ALGORITHM", "SECONDS", "SEEN", "USED", "LOST", "MARKS"}, show...), "\t"))
	err := eachWindow(text, func(w map[string]any) error {
		_, err := fmt.Fprintln(t, strings.Join(row(w, show), "\t"))
		return err
	})
	if err != nil {
		return "", err
	}
	t.Flush()
	return strings.TrimRight(b.String(), "\n"), nil
}

// distinct are the paths, each once and none within another.
func distinct(paths []string) (list []string) {
	for _, path := range paths {
		if !slices.ContainsFunc(list, func(have string) bool {
			return strings.HasPrefix(path+".", have+".") || strings.HasPrefix(have+".", path+".")
		}) {
			list = append(list, path)
		}
	}
	return list
}

// eachWindow calls fn with each window, whose numbers are as they were written.
func eachWindow(text []byte, fn func(map[string]any) error) error {
	for line := range bytes.Lines(text) {
		var w map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&w); err != nil {
			return fmt.Errorf("a window is not valid JSON: %w", err)
		}
		if err := fn(w); err != nil {
			return err
		}
	}
	return nil
}

func row(w map[string]any, show []string) []string {
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
	out := []string{member(w, "window.end_time"), whose(w), interfaces(w), member(w, "algorithm"),
		strconv.FormatFloat((number("window.end")-number("window.start"))/1e9, 'f', 1, 64),
		member(w, "packets.seen"), member(w, "packets.used"), strconv.FormatFloat(lost, 'f', -1, 64), strings.Join(marks, ",")}
	for _, path := range show {
		out = append(out, human(w, path))
	}
	return out
}

// human formats the member at a path for people, in the unit of its name.
func human(w map[string]any, path string) string {
	text := member(w, path)
	f, err := strconv.ParseFloat(text, 64)
	if unit := unitOf(path); err == nil && unit != report.None {
		return report.Human(f, unit)
	}
	return text
}

// unitOf is the unit of a member, by the names of docs/output.md: report.delay_ns.p99 is in ns, and so are its other members
// except the count.
func unitOf(path string) report.Unit {
	names := strings.Split(path, ".")
	leaf := names[len(names)-1]
	for _, end := range []string{"_low", "_high", "_at_least", "_at_most"} {
		leaf = strings.TrimSuffix(leaf, end)
	}
	if leaf == "count" {
		return report.Count
	}
	names[len(names)-1] = leaf
	for _, name := range slices.Backward(names) {
		switch {
		case strings.HasSuffix(name, "_ns"):
			return report.Nanosecond
		case name == "bytes" || strings.HasSuffix(name, "_bytes"):
			return report.Bytes
		case strings.HasSuffix(name, "_bps"):
			return report.BitRate
		case name == "share" || strings.HasSuffix(name, "_share") || strings.HasSuffix(name, "_rate"):
			return report.Ratio
		}
	}
	return report.None
}

// Select writes one object a line: the source of the window, and the members at the paths of show unchanged.
func Select(text []byte, show []string) ([]byte, error) {
	var out bytes.Buffer
	err := eachWindow(text, func(w map[string]any) error {
		o := ordered.New()
		for _, path := range distinct(append([]string{"window.end_time", "instance", "interfaces", "algorithm"}, show...)) {
			o.SetPath(path, valueAt(w, path))
		}
		line, err := o.MarshalJSON()
		out.Write(append(line, '\n'))
		return err
	})
	return out.Bytes(), err
}

// whose is the instance of a window; before 0.1.0 instance and interface had one field.
func whose(w map[string]any) string {
	if name := member(w, "instance"); name != "-" {
		return name
	}
	return member(w, "interface")
}

func interfaces(w map[string]any) string {
	list, _ := w["interfaces"].([]any)
	if len(list) == 0 {
		return "-"
	}
	names := make([]string, len(list))
	for i, name := range list {
		names[i] = fmt.Sprint(name)
	}
	return strings.Join(names, ",")
}

// member is the text of the member at a path of a window; "-" if there is none.
func member(w map[string]any, path string) string {
	at := valueAt(w, path)
	if at == nil {
		return "-"
	}
	return fmt.Sprint(at)
}

// valueAt is the member at a path; nil if there is none.
func valueAt(w map[string]any, path string) any {
	var at any = w
	for key := range strings.SplitSeq(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[key]
	}
	return at
}
