// Package api answers questions about what a process measures: instances, windows, reports with their units and intervals, findings, health
// and parameters, over HTTP below /api/v1, and a stream of what closes. It only reads. The page, `xdpmon top` and `xdpmon history` ask here and
// nowhere else. Its OpenAPI description is made from the table of routes below.
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
	Clock    func() report.Clock      // of the windows; nil: as the run says that was described last
	Findings func() []finding.Finding // that go on, the gravest first
	Store    func() store.Past        // nil where no windows are kept on disk: the latest are kept in memory then
	Health   func() (any, bool)       // how the process fares, and whether it fails
	Now      func() time.Time         // nil: time.Now
}

// API answers. It is safe for concurrent use.
type API struct {
	opts    Options
	live    *live
	memory  *store.Memory
	asking  chan struct{} // what questions to the past hold
	streams chan struct{} // what open streams hold
	routes  []route
}

const (
	// mostAsking bounds questions that read the store at the same time: each may hold some megabytes.
	mostAsking = 4
	// mostStreams bounds open streams: each has a queue, a connection and a goroutine, some 60 kB.
	mostStreams = 256
	// memoryBytes bounds what is kept where there is no store: packed windows of half an hour of eight algorithms take about 3 MB.
	memoryBytes = 6 << 20
)

// New is an API; it knows what Add and Start tell it from then on.
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

// past is where windows were kept.
func (a *API) past() store.Past {
	if s := a.opts.Store(); s != nil {
		return s
	}
	return a.memory
}

// Start takes the description of a run, or of one instance of an agent. Like Add and Found it does nothing where there is no API.
func (a *API) Start(r report.Run) {
	if a != nil {
		a.live.start(r)
	}
}

// Add takes a finished window. It costs some pointers; what is asked for is written when somebody asks.
func (a *API) Add(l report.Line) {
	if a == nil {
		return
	}
	a.live.add(l)
	if a.opts.Store() == nil {
		a.remember(l)
	}
}

// remember keeps a window in memory.
func (a *API) remember(l report.Line) {
	c := a.opts.Clock()
	text, err := l.Record(c)
	if err != nil {
		return // a report that cannot be written is told by whoever writes it
	}
	_ = a.memory.Append(store.Record{End: time.Unix(0, l.Window.End+c.UnixOffsetNS), Algorithm: l.Algorithm, Instance: l.Instance, Interfaces: l.Interfaces, Key: l.Key(), Line: text})
}

// FindingRecords names records that are findings, where windows have their algorithm.
const FindingRecords = "findings"

// Found takes a finding that began or ended.
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

// Forget an instance that is no more.
func (a *API) Forget(key string) { a.live.forget(key) }

// Handler answers below Prefix.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range a.routes {
		mux.HandleFunc("GET "+Prefix+r.path, a.serve(r))
	}
	mux.HandleFunc(Prefix+"/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			write(w, problem(http.StatusMethodNotAllowed, "%s only reads", Prefix))
			return
		}
		write(w, problem(http.StatusNotFound, "there is no %.200q: %s/openapi.json lists what there is", r.URL.Path, Prefix))
	})
	return mux
}

// Front answers what is the API's, to those who may ask, and hands on the rest.
func (a *API) Front(g Guard, rest http.Handler) http.Handler {
	mux := http.NewServeMux()
	asked := g.Wrap(a.Handler())
	mux.Handle(Prefix+"/", asked)
	mux.Handle("POST /login", asked)
	mux.Handle("/", rest)
	return mux
}
