package prom

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// ErrListen is wrapped if the address for --listen is invalid or not available.
var ErrListen = errors.New("listen")

// Address completes the argument of --listen: a port alone (":9400" or "9400") means this host only, since metrics
// contain other people's addresses; a host must be given explicitly ("0.0.0.0:9400", "[::]:9400"). loopback reports that
// 127.0.0.1 was added.
func Address(text string) (address string, loopback bool, err error) {
	full := text
	if !strings.Contains(text, ":") {
		full = ":" + text
	}
	host, port, err := net.SplitHostPort(full)
	if err != nil {
		return "", false, fmt.Errorf("%w on %q: give a port (:9400) or an address (192.0.2.1:9400, [::1]:9400)", ErrListen, text)
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return "", false, fmt.Errorf("%w on %q: %q is not a TCP port (0 to 65535)", ErrListen, text, port)
	}
	if host == "" {
		return net.JoinHostPort("127.0.0.1", port), true, nil
	}
	return full, false, nil
}

// Server serves a Store over HTTP.
type Server struct {
	http     http.Server
	listener net.Listener
	failed   chan error
}

// Serve opens the address and serves in the background. Errors of single requests go to errorLog.
func Serve(address string, handler http.Handler, errorLog *log.Logger) (*Server, error) {
	return ServeTLS(address, handler, errorLog, nil)
}

// ServeTLS is Serve with TLS; nil: without.
func ServeTLS(address string, handler http.Handler, errorLog *log.Logger, secured *tls.Config) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w on %s: %w; %s", ErrListen, address, err, remedy(err))
	}
	if l.Addr() == nil { // getsockname failed, which net does not report
		return nil, errors.Join(fmt.Errorf("%w on %s: the kernel does not return the address that it gave", ErrListen, address), l.Close())
	}
	s := &Server{listener: l, failed: make(chan error, 1)}
	s.http = http.Server{Handler: handler, ErrorLog: errorLog,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	if secured != nil {
		l = tls.NewListener(l, secured)
	}
	go func() { s.failed <- s.http.Serve(l) }()
	return s, nil
}

func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "no interface of this host has that address (ip addr)"
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher one"
	}
	return "choose another port or stop the process that uses it (ss -ltnp)"
}

// Address is the address of the listener, with the assigned port if port 0 was configured.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close waits up to a second for running scrapes, then closes.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.http.Close()
	}
	if err := <-s.failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// Handler serves /metrics, /healthz and a page of text; further collectors add to the metrics.
func Handler(store *Store, errorLog *log.Logger, further ...prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(append([]prometheus.Collector{store}, further...)...)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: errorLog, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 20 * time.Second,
	}))
	mux.HandleFunc("GET /healthz", store.healthz)
	mux.HandleFunc("GET /{$}", store.page)
	mux.HandleFunc("GET /text", store.page)
	return mux
}

// healthz answers 200 as long as something is attached and windows arrive, 503 otherwise.
func (s *Store) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	missing, some := s.missing()
	age, fresh := s.Fresh()
	switch {
	case !some && len(missing) == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "starting: nothing is attached yet")
	case !some:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "no interface attached: waiting for %s\n", strings.Join(missing, ", "))
	case !fresh:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "stale: no window has finished for %.0f s\n", age.Seconds())
	case len(missing) > 0:
		fmt.Fprintf(w, "ok, but not attached to %s\n", strings.Join(missing, ", "))
	default:
		fmt.Fprintln(w, "ok")
	}
}

// Health is the state as JSON.
func (s *Store) Health() (answer any, failing bool) {
	missing, some := s.missing()
	age, fresh := s.Fresh()
	failing = !some || !fresh
	return map[string]any{"status": map[bool]string{false: "ok", true: "failing"}[failing], "last_window_age_seconds": age.Seconds(), "not_attached": append([]string{}, missing...)}, failing
}

const pageHead = `<!doctype html><html lang="en"><meta charset="utf-8"><title>xdpmon</title>
<body><h1>xdpmon</h1><p>%s</p><p><a href="metrics">metrics</a> for Prometheus, <a href="healthz">healthz</a> for a watchdog%s.</p>
`

const pagePast = `, <a href="history?from=1h">history</a> for windows of the last hour, a JSON object a line (<code>from</code>, <code>to</code>,
<code>algorithm</code>, <code>interface</code>, <code>newest</code>, <code>limit</code>)`

// LookBack sets whether windows are stored and /history is served.
func (s *Store) LookBack(stored bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = stored
}

// page shows the latest windows as the terminal would. It is rendered completely first, so that a slow client blocks
// nothing.
func (s *Store) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, s.text()) // the client has disconnected
}

func (s *Store) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	style := report.Style{Width: 100, Unicode: true}
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, html.EscapeString(strings.Join(s.run.Text(style), " ")), map[bool]string{true: pagePast}[s.past])
	for _, f := range s.findings {
		fmt.Fprintf(&b, "<p><strong>%s</strong>: %s</p>\n", f.Severity, html.EscapeString(report.Printable(f.Sentence())))
	}
	for _, one := range s.sorted() {
		text := strings.Join(report.Text(one.line, s.run, style), "\n")
		fmt.Fprintf(&b, "<pre>%s</pre>\n", html.EscapeString(text))
	}
	return b.String()
}
