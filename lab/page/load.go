package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
)

// moved is the largest deviation of a window's length, as a share of it, among all windows between two times.
func moved(all api.Instances, window time.Duration, from, to time.Time) (worst float64, n int, err error) {
	for _, i := range all.Instances {
		var s api.Series
		q := url.Values{"key": {i.Key}, "algorithm": {"fridge"}, "fields": {"packets.seen"}, "from": {from.UTC().Format(time.RFC3339)}, "to": {to.UTC().Format(time.RFC3339)}, "points": {"2000"}}
		if err := ask(base+api.Prefix+"/windows?"+q.Encode(), &s); err != nil {
			return 0, 0, err
		}
		for _, r := range s.Rows {
			var start, end float64
			if _, err := fmt.Sscan(string(r[0])+" "+string(r[1]), &start, &end); err != nil {
				return 0, 0, err
			}
			worst, n = max(worst, math.Abs(end-start-float64(window.Milliseconds()))/float64(window.Milliseconds())), n+1
		}
	}
	if n < interfaces {
		return 0, 0, fmt.Errorf("%d windows", n)
	}
	return worst, n, nil
}

// load is what many that look cost.
func (r *rig) load(ctx context.Context) ([]row, error) {
	a, all, err := r.measured(ctx, *window, "listen: "+address)
	if err != nil {
		return nil, err
	}
	defer a.stop() //nolint:errcheck // what it ends with is of no interest here
	alone, err := a.stretch(ctx, all, *took)
	if err != nil {
		return nil, err
	}
	end, open, err := r.readers(ctx, all)
	defer end()
	if err != nil {
		return nil, err
	}
	log.Printf("%s, load %s", open, loadAverage())
	crowd, err := a.stretch(ctx, all, *took)
	if err != nil {
		return nil, err
	}
	return []row{
		{fmt.Sprintf("windows of %v move with %s open", *window, open), "5 %", fmt.Sprintf("%.2f %% at most of %d windows (%.2f %% alone)", 100*crowd.moved, crowd.windows, 100*alone.moved)},
		{"memory of the agent", "30 MB more", fmt.Sprintf("%+.1f MB (from %.1f MB)", float64(crowd.memory-alone.memory)/1e6, float64(alone.memory)/1e6)},
		{"its time of a core", "", fmt.Sprintf("%.1f %% (%.1f %% alone)", 100*crowd.busy, 100*alone.busy)},
	}, nil
}

// stretch is what was seen in a stretch of time.
type stretch struct {
	moved   float64
	windows int
	memory  int64 // the most
	busy    float64
}

func (a *agent) stretch(ctx context.Context, all api.Instances, took time.Duration) (s stretch, err error) {
	from, busy := time.Now(), a.busy()
	for time.Since(from) < took && ctx.Err() == nil {
		s.memory = max(s.memory, a.memory())
		time.Sleep(250 * time.Millisecond)
	}
	s.busy = (a.busy() - busy).Seconds() / time.Since(from).Seconds()
	s.moved, s.windows, err = moved(all, *window, from.Add(*window), time.Now())
	return s, err
}

// readers opens browsers, terminals, and one that asks for all and reads nothing.
func (r *rig) readers(ctx context.Context, all api.Instances) (end func(), open string, err error) {
	var ends []func()
	end = func() {
		for _, e := range ends {
			e()
		}
	}
	c, err := launch(ctx)
	if err != nil {
		return end, "", err
	}
	ends = append(ends, c.end)
	for n := range *tabs {
		view := base + "/#/"
		if n%5 != 0 { // one in five has the list of all
			view += "instance?" + url.Values{"key": {all.Instances[n%len(all.Instances)].Key}, "algorithm": {[]string{"fridge", "lean"}[n%2]}}.Encode()
		}
		if _, err := c.follow(view); err != nil {
			return end, "", err
		}
	}
	asking, cancel := context.WithCancel(ctx)
	ends = append(ends, cancel)
	for n := range *readers {
		go read(asking, all.Instances[n%len(all.Instances)].Key)
	}
	for range *tops {
		stop, err := r.top(ctx)
		if err != nil {
			return end, "", err
		}
		ends = append(ends, stop)
	}
	deaf, err := silent()
	if err != nil {
		return end, "", err
	}
	ends = append(ends, func() { deaf.Close() })
	return end, fmt.Sprintf("%d pages in Chromium, %d clients that ask as the page does, %d top and one that does not read", *tabs, *readers, *tops), nil
}

// read follows the stream, and asks for what the page shows of an instance when its window closes.
func read(ctx context.Context, key string) {
	var c http.Client
	get := func(path string, q url.Values) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+api.Prefix+path+"?"+q.Encode(), nil)
		if err != nil {
			return nil, err
		}
		return c.Do(r)
	}
	stream, err := get("/stream", nil)
	if err != nil {
		log.Print(err)
		return
	}
	defer stream.Body.Close()
	of := func(more ...string) url.Values {
		q := url.Values{"key": {key}, "algorithm": {"fridge"}}
		for n := 0; n+1 < len(more); n += 2 {
			q.Set(more[n], more[n+1])
		}
		return q
	}
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		if text := lines.Text(); !strings.Contains(text, key) || !strings.Contains(text, "fridge") {
			continue
		}
		from := time.Now().Add(-15 * time.Minute).UTC().Format(time.RFC3339)
		for path, q := range map[string]url.Values{"/instances": nil, "/reports": of(), "/distributions": of("distribution", "delay_ns"),
			"/windows": of("from", from, "fields", "report.delay_ns.p50,report.delay_ns.p50_low,report.delay_ns.p50_high,report.delay_ns.p99,report.delay_ns.p99_low,report.delay_ns.p99_high,report.match_rate")} {
			answer, err := get(path, q)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				log.Printf("%s: %s", path, answer.Status)
			}
		}
	}
}

// top runs the full screen in a terminal.
func (r *rig) top(ctx context.Context) (stop func(), err error) {
	cmd := exec.CommandContext(ctx, "script", "-qefc", "stty rows 50 cols 160; "+r.bin+" top "+address, "/dev/null")
	cmd.Env = append(cmd.Environ(), "TERM=xterm-256color")
	keys, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	var seen bytes.Buffer
	cmd.Stdout = &seen
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_, _ = io.WriteString(keys, "q")
		keys.Close()
		_ = cmd.Wait()
		if !strings.Contains(seen.String(), "xdpmon-p") {
			log.Printf("a top shows no instance: %.300q", seen.String())
		}
	}, nil
}

// silent asks for the stream of whole windows and never reads.
func silent() (net.Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	request, err := http.NewRequest(http.MethodGet, base+api.Prefix+"/stream?whole=true", nil)
	if err == nil {
		err = request.Write(conn)
	}
	return conn, err
}

// rest is what a listener costs that nobody asks.
func (r *rig) rest(ctx context.Context) (rows []row, err error) {
	var without, with []string
	more := 0.
	for _, listens := range []bool{false, true, true, false} { // what drifts meets both
		var keys []string
		if listens {
			keys = []string{"listen: " + address}
		}
		share, err := r.idle(ctx, keys)
		if err != nil {
			return nil, err
		}
		log.Printf("listener %v: %.2f %%, load %s", listens, 100*share, loadAverage())
		if text := fmt.Sprintf("%.2f %%", 100*share); listens {
			with, more = append(with, text), more+share/2
		} else {
			without, more = append(without, text), more-share/2
		}
	}
	return []row{{fmt.Sprintf("time of a core at rest, windows of 10 s, four times %v: without a listener, and with the page that nobody has open", *took), "none more",
		fmt.Sprintf("%s; %s; %+.2f points", strings.Join(without, ", "), strings.Join(with, ", "), 100*more)}}, nil
}

func (r *rig) idle(ctx context.Context, keys []string) (share float64, err error) {
	a, _, err := r.measured(ctx, every, keys...)
	if err != nil {
		return 0, err
	}
	defer a.stop() //nolint:errcheck // what it ends with is of no interest here
	from, busy := time.Now(), a.busy()
	select {
	case <-time.After(*took):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return (a.busy() - busy).Seconds() / time.Since(from).Seconds(), nil
}
