package client

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
)

// asked is an API that a test plays, and what it was asked.
type asked struct {
	requests []*http.Request
	answer   http.HandlerFunc
}

func within(t *testing.T, token func() string) (*Client, *asked) {
	t.Helper()
	a := &asked{answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }}
	target, end := Within("a run", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.requests = append(a.requests, r); a.answer(w, r) }))
	target.Token = token
	c := New(target)
	t.Cleanup(func() {
		c.Close()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return c, a
}

// Each question is a path and its parameters, times in UTC; those that are zero are left out.
func TestQuestions(t *testing.T) {
	c, a := within(t, func() string { return "secret" })
	at := time.Date(2026, 1, 2, 4, 4, 5, 6, time.FixedZone("", 3600))
	ctx := t.Context()
	for want, ask := range map[string]func() error{
		"/instances?":                         func() error { _, err := c.Instances(ctx); return err },
		"/health?":                            func() error { _, err := c.Health(ctx); return err },
		"/findings?open=true":                 func() error { _, err := c.Findings(ctx, time.Time{}, time.Time{}); return err },
		"/findings?to=2026-01-02T03:04:05Z":   func() error { _, err := c.Findings(ctx, time.Time{}, at.Truncate(time.Second)); return err },
		"/findings?from=2026-01-02T03:04:05Z": func() error { _, err := c.Findings(ctx, at.Truncate(time.Second), time.Time{}); return err },
		"/reports?algorithm=a&key=k/eth0":     func() error { _, err := c.Report(ctx, "k/eth0", "a", time.Time{}); return err },
		"/reports?algorithm=a&at=2026-01-02T03:04:05.000000006Z&key=k": func() error { _, err := c.Report(ctx, "k", "a", at); return err },
		"/distributions?algorithm=a&distribution=d&key=k":              func() error { _, err := c.Distribution(ctx, "k", "a", "d", time.Time{}); return err },
		"/tables?algorithm=a&key=k&limit=1000&table=t":                 func() error { _, err := c.Table(ctx, "k", "a", "t", time.Time{}); return err },
		"/windows?algorithm=a&fields=x,y&from=2026-01-02T03:04:05.000000006Z&key=k&points=7&to=2026-01-02T03:04:06.000000006Z": func() error {
			_, err := c.Windows(ctx, "k", "a", at, at.Add(time.Second), 7, []string{"x", "y"})
			return err
		},
	} {
		a.requests = nil
		if err := ask(); err != nil || len(a.requests) != 1 {
			t.Fatalf("%s: %d requests, %v", want, len(a.requests), err)
		}
		r := a.requests[0]
		q, err := url.QueryUnescape(r.URL.RawQuery)
		if got := strings.TrimPrefix(r.URL.Path, api.Prefix) + "?" + q; err != nil || got != want || r.Header.Get("Authorization") != "Bearer secret" || !strings.HasPrefix(r.URL.Path, api.Prefix) {
			t.Errorf("%s (%v), want %s", got, r.Header, want)
		}
	}
}

// An answer with a tag is asked for by its tag, by path and parameters, and taken from memory if it is still the same.
func TestTags(t *testing.T) {
	c, a := within(t, func() string { return "" })
	body, tag := `{"instances":[{"name":"one"}]}`, `"1"`
	a.answer = func(w http.ResponseWriter, r *http.Request) {
		if tag != "" && r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if tag != "" {
			w.Header().Set("ETag", tag)
		}
		fmt.Fprint(w, body)
	}
	for n, want := range []string{"", `"1"`, `"1"`, `"2"`} {
		if n == 2 {
			body, tag = `{"instances":[{"name":"two"},{"name":"three"}]}`, `"2"`
		}
		out, err := c.Instances(t.Context())
		if got := a.requests[n].Header.Get("If-None-Match"); err != nil || got != want || len(out.Instances) != 1+n/2 || a.requests[n].Header.Get("Authorization") != "" {
			t.Errorf("%d: %+v, %v, with tag %s, want %s", n, out, err, got, want)
		}
	}
	tag = ""
	for n := range 2 {
		if _, err := c.Report(t.Context(), "k", "a", time.Time{}); err != nil || a.requests[4+n].Header.Get("If-None-Match") != "" {
			t.Errorf("%v, %v", a.requests[4+n].Header, err)
		}
	}
	for n := range mostKnown {
		c.keep(fmt.Sprint(n), answer{"t", []byte("b")})
	}
	if n := len(c.known); n != 1 || c.cached("31").tag != "t" || c.cached("0").tag != "" {
		t.Errorf("%d answers are in memory", n)
	}
	c.keep("long", answer{"t", make([]byte, mostKnownBody+1)})
	if c.keep("largest", answer{"t", make([]byte, mostKnownBody)}); c.cached("long").tag != "" || c.cached("largest").tag != "t" {
		t.Error("how large an answer in memory may be")
	}
}

// What the API refuses is its detail, or the remedy where one is known; a fault of the server may pass.
func TestProblems(t *testing.T) {
	plainly, withToken := func() string { return "" }, func() string { return "x" }
	for _, c := range []struct {
		status    int
		body      string
		token     func() string
		want      string
		temporary bool
	}{
		{400, `{"detail":"limit: no number"}`, nil, "limit: no number", false}, {400, "Client sent an HTTP request to an HTTPS server.", nil, "it serves HTTPS: give https://", false},
		{404, "404 page not found", nil, "no API at this address (404)", false}, {404, `{"detail":"no such key"}`, nil, "no such key", false},
		{401, `{"detail":"no"}`, nil, "--token-file FILE", false}, {401, `{"detail":"no"}`, withToken, "it refuses the token", false}, {500, "", plainly, "500 Internal Server Error", true},
		{503, " starting\n", nil, "starting", true}, {502, strings.Repeat("x", 400), nil, strings.Repeat("x", 300), true}, {499, "odd", nil, "odd", false},
	} {
		client, a := within(t, c.token)
		a.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status); fmt.Fprint(w, c.body) }
		for what, ask := range map[string]func() error{"get": func() error { _, err := client.Health(t.Context()); return err }, "follow": func() error { return client.Follow(t.Context(), nil) }} {
			err := ask()
			var p *Problem
			if !errors.As(err, &p) || p.Status != c.status || !strings.Contains(p.Detail, c.want) || len(p.Detail) > 300 || strings.Contains(p.Detail, "{") || p.Temporary() != c.temporary {
				t.Errorf("%s: %d %s: %v", what, c.status, c.body, err)
			}
		}
	}
	client, a := within(t, nil)
	a.answer = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "no JSON") }
	if _, err := client.Health(t.Context()); err == nil || !strings.Contains(err.Error(), "read the answer of /health") {
		t.Errorf("%v", err)
	}
}

// An error has no URL, which is shown beside it, but the remedy.
func TestPlainErrors(t *testing.T) {
	of := func(err error) error { return &url.Error{Op: "Get", URL: "http://host", Err: err} }
	for want, err := range map[string]error{
		"no answer within 15s": of(context.DeadlineExceeded), "--ca FILE": of(x509.UnknownAuthorityError{}), "--cert and --key": of(errors.New("remote error: tls: certificate required")),
		"give http://": of(http.ErrSchemeMismatch), "connection refused": of(errors.New("connection refused")), "unexpected EOF": io.ErrUnexpectedEOF,
	} {
		if got := plain(err).Error(); !strings.Contains(got, want) || strings.Contains(got, "http://host") {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// Events are read as they were sent; comments keep the connection, and what a later version may send is ignored. The end of the stream is an error.
func TestFollow(t *testing.T) {
	c, a := within(t, nil)
	a.answer = func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, ": ping\n\n\nevent: hello\n\nevent: window\ndata: {\"key\":\"a\",\"algorithm\":\"lean\"}\n\nevent: window\ndata: no\n\nevent: missed\ndata: {\"events\":7}\n\nevent: missed\ndata: no\n\n",
			"event: later\ndata: {}\n\nevent: finding\ndata: {}\n\ndata: {}\n\nid: 4\n\nevent: hello\n")
	}
	var got []Event
	if err := c.Follow(t.Context(), func(e Event) { got = append(got, e) }); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
	if !slices.Equal(got, []Event{{Kind: Quiet}, {Kind: Hello}, {Kind: Window, Window: api.Closed{Key: "a", Algorithm: "lean"}}, {Kind: Missed, Missed: 7}, {Kind: Finding}}) || a.requests[0].URL.Path != api.Prefix+"/stream" {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	a.answer = func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "event: hello\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	if err := c.Follow(ctx, func(Event) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := read(strings.NewReader("data: "+strings.Repeat("x", mostLine)), func(Event) {}); err == nil {
		t.Error("a line without end is read")
	}
}

// A target is a socket or an address with its scheme; what it needs of files is read at once, and the token again for each request.
func TestTargets(t *testing.T) {
	for address, want := range map[string]string{"host:9400": "http://host:9400", ":9400": "http://127.0.0.1:9400", "https://h": "https://h", "http://h:1/path?q": "http://h:1", "/run/a.sock": "/run/a.sock", "./a.sock": "./a.sock",
		"unix:/run/a.sock": "/run/a.sock", "unix:///run/a.sock": "/run/a.sock", "[::1]:9400": "http://[::1]:9400"} {
		got, err := Remote(address, Access{})
		if socket := !strings.Contains(want, "://"); err != nil || got.Name != want || (got.Dial != nil) != socket || !socket && got.Base != want || got.Token != nil || got.TLS != nil {
			t.Errorf("%s: %+v, %v", address, got, err)
		}
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token, empty := file("token", " one\n"), file("empty", " \n")
	for what, c := range map[string]struct {
		address string
		access  Access
	}{"a scheme": {"ftp://h", Access{}}, "no host": {"http://", Access{}}, "no port": {"h:x", Access{}}, "no token": {"h:1", Access{TokenFile: dir + "/none"}}, "an empty token": {"h:1", Access{TokenFile: empty}},
		"no authority": {"h:1", Access{CA: dir + "/none"}}, "no certificate in it": {"h:1", Access{CA: token}}, "no key": {"h:1", Access{Cert: token, Key: token}}} {
		if got, err := Remote(c.address, c.access); err == nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
	got, err := Remote("h:1", Access{TokenFile: token})
	if err != nil || got.Token() != "one" {
		t.Fatalf("%v", err)
	}
	if file("token", "two"); got.Token() != "two" {
		t.Errorf("the token is still %s", got.Token())
	}
}

// Nothing is served any more after the end.
func TestWithinEnds(t *testing.T) {
	target, end := Within("a run", http.NotFoundHandler())
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if _, err := target.Dial(t.Context()); err == nil {
		t.Error("a connection to nothing")
	}
}
