package outlet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// servers are where questions are answered.
type servers struct {
	http   *prom.Server
	listen string // as it was asked for
	socket *socket
}

func (s *servers) close() []error {
	var errs []error
	if s.http != nil {
		errs = append(errs, s.http.Close())
	}
	return append(errs, s.socket.close())
}

// socket answers on this host, to those who may open it.
type socket struct {
	path   string
	server http.Server
}

// listenSocket takes over a socket that nobody answers on.
func listenSocket(path string, handler http.Handler) (*socket, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("open socket %s: another process answers on it; give this one a socket of its own", path)
	}
	_ = os.Remove(path) // of one that was killed
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("open socket: %w", err), l.Close())
	}
	s := &socket{path: path, server: http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: time.Minute}}
	go s.server.Serve(l) //nolint:errcheck // it ends with Close
	return s, nil
}

func (s *socket) close() error {
	if s == nil {
		return nil
	}
	return s.server.Close()
}

// handler answers history, and for the rest whoever has the set.
func (s *Set) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /history", s.history)
	mux.Handle("/", s.opts.Handler())
	return mux
}

// Probe is one look at how a process fares.
type Probe struct {
	Answer  any  // served as JSON at /healthz
	Failing bool // /healthz answers 503
	Ready   bool // /readyz answers 200, else 503
	Stuck   bool // a restart would help: /livez answers 503
}

// Answers serves /livez, /readyz, /healthz, and what every run serves, with more metrics.
func (s *Set) Answers(probe func() Probe, more prometheus.Collector) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		p := probe()
		w.Header().Set("Content-Type", "application/json")
		if p.Failing {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		_ = e.Encode(p.Answer) // the client has disconnected: nobody reads the error
	})
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, !probe().Stuck, "live") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { plain(w, probe().Ready, "ready") })
	mux.Handle("/", prom.Handler(s.metrics, log.New(LogWriter{Log: s.opts.Log}, "", 0), more))
	return mux
}

func plain(w http.ResponseWriter, ok bool, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = "not " + text + ": /healthz has the reasons"
	}
	fmt.Fprintln(w, text)
}

// MoreHeader says that a history was cut.
const MoreHeader = "Xdpmon-More"

func (s *Set) history(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	kept := s.kept
	s.mu.Unlock()
	if kept == nil {
		http.Error(w, "no windows are kept here: give a store", http.StatusNotFound)
		return
	}
	q, err := parseQuery(r.URL.Query().Get)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var b bytes.Buffer
	more, err := History(kept.store, q, &b)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set(MoreHeader, strconv.FormatBool(more))
	_, _ = w.Write(b.Bytes())
}

// parseQuery reads times as RFC 3339 or as how long ago.
func parseQuery(get func(string) string) (q store.Query, err error) {
	q = store.Query{Algorithm: get("algorithm"), Instance: get("instance"), Interface: get("interface"), Newest: get("newest") == "true", Snapshots: get("snapshots") == "true"}
	if q.From, err = When(get("from"), time.Now()); err != nil {
		return q, err
	}
	if q.To, err = When(get("to"), time.Now()); err != nil {
		return q, err
	}
	if text := get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 0 {
			return q, fmt.Errorf("limit %q is not a number", text)
		}
	}
	return q, nil
}

// When reads a time: 90m (ago), 2026-01-02T15:04:05Z, 2026-01-02; "" is none.
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
	return time.Time{}, fmt.Errorf("%q is no time: 90m (ago), 2026-01-02T15:04:05Z or 2026-01-02", text)
}
