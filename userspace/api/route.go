package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// route is a path of the API with its description.
type route struct {
	path, summary string
	params        []param
	answer        any    // its type becomes the schema of the answer; nil if media is not JSON
	media         string // "" is application/json
	handle        func(context.Context, query) (any, error)
	raw           func(http.ResponseWriter, *http.Request, query) // writes the answer itself; handle is nil then
}

// param is a query parameter.
type param struct {
	name, help string
	kind       kind
	required   bool
	most       int // maximum of an integer
}

type kind string

const (
	text    kind = "text"
	moment  kind = "time"
	length  kind = "duration"
	integer kind = "integer"
	truth   kind = "boolean"
	list    kind = "list"
)

// query holds the parsed parameters of a request.
type query map[string]any

func (q query) text(name string) string            { v, _ := q[name].(string); return v }
func (q query) time(name string) time.Time         { v, _ := q[name].(time.Time); return v }
func (q query) duration(name string) time.Duration { v, _ := q[name].(time.Duration); return v }
func (q query) integer(name string) int            { v, _ := q[name].(int); return v }
func (q query) truth(name string) bool             { v, _ := q[name].(bool); return v }
func (q query) list(name string) []string          { v, _ := q[name].([]string); return v }

// mostText bounds the length of a parameter, and mostFields a list.
const (
	mostText   = 4096
	mostFields = 64
)

func (r route) parse(values url.Values, now time.Time) (query, error) {
	q := query{}
	for name, given := range values {
		at := slices.IndexFunc(r.params, func(p param) bool { return p.name == name })
		if at < 0 {
			return nil, wrong(name, "%s has no parameter %.100q", r.path, name)
		}
		if len(given) != 1 || len(given[0]) > mostText {
			return nil, wrong(name, "give %s once, with at most %d bytes", name, mostText)
		}
		if given[0] == "" {
			continue
		}
		v, err := r.params[at].value(given[0], now)
		if err != nil {
			return nil, err
		}
		q[name] = v
	}
	for _, p := range r.params {
		if _, given := q[p.name]; p.required && !given {
			return nil, wrong(p.name, "%s needs the parameter %s: %s", r.path, p.name, p.help)
		}
	}
	return q, nil
}

func (p param) value(given string, now time.Time) (v any, err error) {
	switch p.kind {
	case moment:
		if v, err = When(given, now); err != nil {
			return nil, wrong(p.name, "%s: %v", p.name, err)
		}
	case length:
		d, err := time.ParseDuration(given)
		if err != nil || d <= 0 {
			return nil, wrong(p.name, "%s %.100q is not a duration: give 10s or 5m", p.name, given)
		}
		v = d
	case integer:
		n, err := strconv.Atoi(given)
		if err != nil || n < 0 || n > p.most {
			return nil, wrong(p.name, "%s %.100q: allowed are 0 to %d", p.name, given, p.most)
		}
		v = n
	case truth:
		b, err := strconv.ParseBool(given)
		if err != nil {
			return nil, wrong(p.name, "%s %.100q: true or false", p.name, given)
		}
		v = b
	case list:
		names := strings.Split(given, ",")
		if len(names) > mostFields {
			return nil, wrong(p.name, "%s: %d names are more than %d", p.name, len(names), mostFields)
		}
		v = names
	default:
		v = given
	}
	return v, nil
}

// When parses a time: 90m (ago), 2026-01-02T15:04:05Z, 2026-01-02; "" is the zero time.
func When(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.100q is not a time: give 90m (ago), 2026-01-02T15:04:05Z or 2026-01-02", text)
}

// mostAnswer bounds an answer: larger ones must be requested in parts.
const mostAnswer = 8 << 20

func (a *API) serve(r route) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		q, err := r.parse(request.URL.Query(), a.opts.Now())
		if err != nil {
			write(w, err)
			return
		}
		if r.raw != nil {
			r.raw(w, request, q)
			return
		}
		v, err := r.handle(request.Context(), q)
		if err != nil {
			write(w, err)
			return
		}
		respond(w, request, v)
	}
}

// respond writes an answer with its tag, or 304 if the client has it.
func respond(w http.ResponseWriter, r *http.Request, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		write(w, fmt.Errorf("encode the answer: %w", err))
		return
	}
	if b.Len() > mostAnswer {
		write(w, problem(http.StatusRequestEntityTooLarge, "the answer has %d bytes, more than %d: request a shorter time, fewer fields or fewer rows", b.Len(), mostAnswer))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	Tagged(w, r, b.Bytes())
}

// Tagged writes a body with its tag, or 304 if the client has it.
func Tagged(w http.ResponseWriter, r *http.Request, body []byte) {
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache") // clients may cache it, and must revalidate
	for known := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimPrefix(strings.TrimSpace(known), "W/"); known == tag || known == "*" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client has disconnected
}

// ask runs a query of the store when one of the mostAsking places is free.
func (a *API) ask(ctx context.Context, fn func() error) error {
	select {
	case a.asking <- struct{}{}:
		defer func() { <-a.asking }()
		return fn()
	case <-ctx.Done():
		return problem(http.StatusServiceUnavailable, "the client has disconnected")
	case <-time.After(patience):
		return problem(http.StatusServiceUnavailable, "%d queries of the store are running: retry later", mostAsking)
	}
}

// patience is how long a query of the store waits for a place.
const patience = 5 * time.Second
