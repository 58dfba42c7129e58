// Package client queries /api/v1 of an agent, a coordinator or a run of its own, over a socket, a network or a pipe within the process.
package client

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
)

// Client queries one API. It is safe for concurrent use.
type Client struct {
	base  string // without the API's prefix
	token func() string
	http  http.Client

	mu    sync.Mutex
	known map[string]answer // by path and query: answers with their tags
}

// answer is an answer with a tag.
type answer struct {
	tag  string
	body []byte
}

const (
	// mostBody bounds the size of an answer: the API's bound and some more.
	mostBody = 9 << 20
	// mostKnown and mostKnownBody bound the cache of tagged answers.
	mostKnown     = 32
	mostKnownBody = 1 << 20
	// askPatience is the timeout of a request.
	askPatience = 15 * time.Second
)

// Problem is an error returned by the API.
type Problem struct {
	Status int
	Detail string
}

func (p *Problem) Error() string { return p.Detail }

// Temporary reports whether a retry may succeed.
func (p *Problem) Temporary() bool {
	return p.Status == http.StatusServiceUnavailable || p.Status >= 500
}

// New is a client of a target.
func New(t Target) *Client {
	transport := &http.Transport{TLSClientConfig: t.TLS, MaxIdleConns: 4, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, DisableCompression: true, ResponseHeaderTimeout: askPatience}
	if t.Dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return t.Dial(ctx) }
	}
	return &Client{base: t.Base, token: t.Token, http: http.Client{Transport: transport}, known: map[string]answer{}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) request(ctx context.Context, path string, q url.Values) (*http.Request, error) {
	address := c.base + api.Prefix + path
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", path, err)
	}
	if c.token != nil {
		if token := c.token(); token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
	return r, nil
}

// get requests a path and decodes the answer.
func (c *Client) get(ctx context.Context, path string, q url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	r, err := c.request(ctx, path, q)
	if err != nil {
		return err
	}
	name := r.URL.RequestURI()
	had := c.cached(name)
	if had.tag != "" {
		r.Header.Set("If-None-Match", had.tag)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return plain(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostBody))
	switch {
	case err != nil:
		return plain(err)
	case response.StatusCode == http.StatusNotModified:
		body = had.body
	case response.StatusCode != http.StatusOK:
		return c.problemOf(response, body)
	default:
		c.keep(name, answer{response.Header.Get("ETag"), body})
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return nil
}

func (c *Client) problemOf(r *http.Response, body []byte) error {
	var p api.Problem
	detail := strings.TrimSpace(string(body[:min(len(body), 300)]))
	if json.Unmarshal(body, &p) == nil && p.Detail != "" {
		detail = p.Detail
	}
	switch {
	case r.StatusCode == http.StatusNotFound && p.Detail == "":
		detail = "no API at this address (404): is it xdpmon, and of this version?"
	case r.StatusCode == http.StatusBadRequest && strings.Contains(detail, "HTTPS server"):
		detail = "it serves HTTPS: give https:// with --ca, --cert and --key"
	case r.StatusCode == http.StatusUnauthorized && c.token != nil:
		detail = "it refuses the token of --token-file: it has another one in web.auth.token_file"
	case r.StatusCode == http.StatusUnauthorized:
		detail = "the token of web.auth is needed: --token-file FILE"
	case detail == "":
		detail = r.Status
	}
	return &Problem{r.StatusCode, detail}
}

// plain removes the URL, which the title shows, from an error, and adds the remedy if one is known.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", askPatience)
	}
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: --ca FILE names the authority", err)
	case strings.Contains(err.Error(), "certificate required"): // a TLS alert, which has no type
		return fmt.Errorf("%w: --cert and --key", err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: it serves HTTP, give http://", err)
	}
	return err
}

func (c *Client) cached(name string) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[name]
}

func (c *Client) keep(name string, a answer) {
	if a.tag == "" || len(a.body) > mostKnownBody {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= mostKnown {
		clear(c.known) // queries about the past differ each time: repeated ones are soon cached again
	}
	c.known[name] = answer{a.tag, bytes.Clone(a.body)}
}

// Instances are the measured instances.
func (c *Client) Instances(ctx context.Context) (out api.Instances, err error) {
	return out, c.get(ctx, "/instances", nil, &out)
}

// Findings are the active findings; with to those that started before that time, and ended at from or later.
func (c *Client) Findings(ctx context.Context, from, to time.Time) (out api.Findings, err error) {
	q := url.Values{}
	if to.IsZero() && from.IsZero() {
		q.Set("open", "true")
	}
	setTime(q, "from", from)
	setTime(q, "to", to)
	return out, c.get(ctx, "/findings", q, &out)
}

// Report is a window: the latest, or the last that ended before a time.
func (c *Client) Report(ctx context.Context, key, algorithm string, at time.Time) (out api.Report, err error) {
	q := url.Values{"key": {key}, "algorithm": {algorithm}}
	setTime(q, "at", at)
	return out, c.get(ctx, "/reports", q, &out)
}

// Distribution is a distribution of a window with its steps.
func (c *Client) Distribution(ctx context.Context, key, algorithm, name string, at time.Time) (out api.Distribution, err error) {
	q := url.Values{"key": {key}, "algorithm": {algorithm}, "distribution": {name}}
	setTime(q, "at", at)
	return out, c.get(ctx, "/distributions", q, &out)
}

// MostRows is the maximum of rows requested of a table.
const MostRows = 1000

// Table is the first rows of a table.
func (c *Client) Table(ctx context.Context, key, algorithm, name string, at time.Time) (out api.Table, err error) {
	q := url.Values{"key": {key}, "algorithm": {algorithm}, "table": {name}, "limit": {fmt.Sprint(MostRows)}}
	setTime(q, "at", at)
	return out, c.get(ctx, "/tables", q, &out)
}

// Windows are fields over time, at most points rows.
func (c *Client) Windows(ctx context.Context, key, algorithm string, from, to time.Time, points int, fields []string) (out api.Series, err error) {
	q := url.Values{"key": {key}, "algorithm": {algorithm}, "points": {fmt.Sprint(points)}, "fields": {strings.Join(fields, ",")}}
	setTime(q, "from", from)
	setTime(q, "to", to)
	return out, c.get(ctx, "/windows", q, &out)
}

// Health is the state of the process.
func (c *Client) Health(ctx context.Context) (out api.Health, err error) {
	return out, c.get(ctx, "/health", nil, &out)
}

func setTime(q url.Values, name string, t time.Time) {
	if !t.IsZero() {
		q.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
}
