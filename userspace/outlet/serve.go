package outlet

import (
	"bytes"
	"crypto/tls"
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

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/store"
	"github.com/xdpmon/xdpmon/userspace/web"
)

// servers are the listeners that answer queries.
type servers struct {
	http   *prom.Server
	listen string // as configured
	web    settings.Web
	socket *socket
}

func (s *servers) close() []error {
	var errs []error
	if s.http != nil {
		errs = append(errs, s.http.Close())
	}
	return append(errs, s.socket.close())
}

// socket answers queries of this host, from users who may open it.
type socket struct {
	path   string
	server http.Server
	ended  chan struct{} // closed when it serves no more, and its file is removed
}

// listenSocket replaces a socket that no process answers on.
func listenSocket(path string, handler http.Handler) (*socket, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("open socket %s: another process answers on it; give this one a socket of its own", path)
	}
	_ = os.Remove(path) // left by a process that was killed
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("open socket: %w", err), l.Close())
	}
	s := &socket{path: path, server: http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: time.Minute}, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		_ = s.server.Serve(l) // returns after Close
	}()
	return s, nil
}

func (s *socket) close() error {
	if s == nil {
		return nil
	}
	err := s.server.Close()
	<-s.ended
	return err
}

// handler serves page, API and history, and passes everything else to Options.Handler.
func (s *Set) handler(g api.Guard) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /history", g.Wrap(http.HandlerFunc(s.history)))
	mux.Handle("/", s.opts.Handler())
	return s.api.Front(g, web.Front(mux))
}

// listen opens the configured listener.
func (o *Opened) listen(s *Set, text string) error {
	address, _, err := prom.Address(text)
	if err != nil {
		return err
	}
	g := api.GuardOf(address)
	if f := o.cfg.Web.TokenFile; f != "" {
		if g.Token, err = api.TokenFile(f); err != nil {
			return fmt.Errorf("web.auth: %w", err)
		}
	}
	var secured *tls.Config
	if o.cfg.Web.Certificates {
		if o.cfg.Keys == nil {
			return errors.New("web.auth.certificates: the bus has no keys (bus.keys)")
		}
		h, err := keys.Hold(*o.cfg.Keys)
		if err != nil {
			return fmt.Errorf("web.auth: %w", err)
		}
		secured, g.Certified = h.Web(), true
	}
	o.server, err = prom.ServeTLS(address, s.handler(g), log.New(LogWriter{s.opts.Log}, "", 0), secured)
	return err
}

// state returns the state of the process.
func (s *Set) state() (any, bool) {
	if probe := s.probe.Load(); probe != nil {
		p := (*probe)()
		return p.Answer, p.Failing
	}
	return map[string]string{}, false
}

// Probe is the state of a process at one time.
type Probe struct {
	Answer  any  // served as JSON at /healthz
	Failing bool // /healthz answers 503
	Ready   bool // /readyz answers 200, else 503
	Stuck   bool // a restart would help: /livez answers 503
}

// Answers serves /livez, /readyz, /healthz, and what every run serves, with more metrics.
func (s *Set) Answers(probe func() Probe, more prometheus.Collector) http.Handler {
	s.probe.Store(&probe)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		p := probe()
		w.Header().Set("Content-Type", "application/json")
		if p.Failing {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		_ = e.Encode(p.Answer) // the client has disconnected
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

// history serves /api/v1/records at its path from before 0.1.0; it is removed in 0.2.0.
func (s *Set) history(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	keeper := s.keeper
	s.mu.Unlock()
	if keeper == nil {
		http.Error(w, "no store configured, windows are not stored", http.StatusNotFound)
		return
	}
	q, err := parseQuery(r.URL.Query().Get)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var b bytes.Buffer
	more, err := api.Records(keeper.store, q, &b)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set(api.MoreHeader, strconv.FormatBool(more))
	_, _ = w.Write(b.Bytes())
}

// parseQuery reads times as RFC 3339, or as a duration before now.
func parseQuery(get func(string) string) (q store.Query, err error) {
	q = store.Query{Algorithm: get("algorithm"), Instance: get("instance"), Interface: get("interface"), Newest: get("newest") == "true", Snapshots: get("snapshots") == "true"}
	if q.From, err = api.When(get("from"), time.Now()); err != nil {
		return q, err
	}
	if q.To, err = api.When(get("to"), time.Now()); err != nil {
		return q, err
	}
	if text := get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 0 {
			return q, fmt.Errorf("limit %q: give an integer of at least 0", text)
		}
	}
	return q, nil
}
