// Package api answers queries about what a process measures: instances, windows, reports with their units and intervals, findings, health
// and parameters, over HTTP below /api/v1, and a stream of finished windows. It is read-only. The page, `xdpmon top` and `xdpmon history` use it and
// nothing else. Its OpenAPI description is generated from the table of routes below.
package api

import (
	"net/http"
	"time"

	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// Prefix of all paths.
const Prefix = "/api/v1"

// Options of an API.
type Options struct {
	Hub      *feed.Hub
	Clock    func() report.Clock      // of the windows; nil: as in the latest description of a run
	Findings func() []finding.Finding // active, the most severe first
	Store    func() store.Past        // nil if windows are not stored on disk: then the latest are held in memory
	Health   func() (any, bool)       // state of the process, and whether it is failing
	Now      func() time.Time         // nil: time.Now
}

// API answers queries. It is safe for concurrent use.
type API struct {
	opts    Options
	live    *live
	memory  *store.Memory
	asking  chan struct{} // semaphore of queries to the store
	streams chan struct{} // semaphore of open streams
	routes  []route
}

const (
	// mostAsking bounds queries that read the store at the same time: each may need some megabytes.
	mostAsking = 4
	// mostStreams bounds open streams: each needs a queue, a connection and a goroutine, about 60 kB.
	mostStreams = 256
	// memoryBytes bounds the windows in memory without a store: packed windows of half an hour of eight algorithms take about 3 MB.
	memoryBytes = 6 << 20
)

// New is an API without data; Start and Add provide it.
func New(o Options) *API {
	if o.Now == nil {
		o.Now = time.Now
	}
	live := newLive()
	if o.Clock == nil {
		o.Clock = live.clock
	}
	if o.Store == nil {
		o.Store = func() store.Past { return nil }
	}
	if o.Findings == nil {
		o.Findings = func() []finding.Finding { return nil }
	}
	if o.Health == nil {
		o.Health = func() (any, bool) { return map[string]string{"status": "ok"}, false }
	}
	a := &API{opts: o, live: live, memory: store.NewMemory(memoryBytes), asking: make(chan struct{}, mostAsking), streams: make(chan struct{}, mostStreams)}
	a.routes = a.table()
	return a
}

// past is where windows are stored.
func (a *API) past() store.Past {
	if s := a.opts.Store(); s != nil {
		return s
	}
	return a.memory
}

// Start sets the description of a run, or of one instance of an agent. Like Add and Found it does nothing if the API is nil.
func (a *API) Start(r report.Run) {
	if a != nil {
		a.live.start(r)
	}
}

// Add adds a finished window. It only stores pointers; a window is encoded when a client requests it.
func (a *API) Add(l report.Line) {
	if a == nil {
		return
	}
	a.live.add(l)
	if a.opts.Store() == nil {
		a.remember(l)
	}
}

// remember stores a window in memory.
func (a *API) remember(l report.Line) {
	c := a.opts.Clock()
	text, err := l.Record(c)
	if err != nil {
		return // the outputs report a window that cannot be encoded
	}
	_ = a.memory.Append(store.Record{End: time.Unix(0, l.Window.End+c.UnixOffsetNS), Algorithm: l.Algorithm, Instance: l.Instance, Interfaces: l.Interfaces, Key: l.Key(), Line: text})
}

// FindingRecords is the name of finding records, in place of the algorithm.
const FindingRecords = "findings"

// Found adds a finding that started or ended.
func (a *API) Found(f finding.Finding) {
	if a == nil || a.opts.Store() != nil {
		return
	}
	text, err := f.MarshalJSON()
	if err == nil {
		text = append(append([]byte(`{"finding":`), text...), '}')
		_ = a.memory.Append(store.Record{End: a.opts.Now(), Algorithm: FindingRecords, Key: f.Interface, Line: text})
	}
}

// Forget removes a closed instance.
func (a *API) Forget(key string) { a.live.forget(key) }

// Handler serves the paths below Prefix.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range a.routes {
		mux.HandleFunc("GET "+Prefix+r.path, a.serve(r))
	}
	mux.HandleFunc(Prefix+"/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			write(w, problem(http.StatusMethodNotAllowed, "%s is read-only", Prefix))
			return
		}
		write(w, problem(http.StatusNotFound, "no such path %.200q: %s/openapi.json lists all paths", r.URL.Path, Prefix))
	})
	return mux
}

// Front serves the API to authorized clients, and passes everything else on.
func (a *API) Front(g Guard, rest http.Handler) http.Handler {
	mux := http.NewServeMux()
	asked := g.Wrap(a.Handler())
	mux.Handle(Prefix+"/", asked)
	mux.Handle("POST /login", asked)
	mux.Handle("/", rest)
	return mux
}
