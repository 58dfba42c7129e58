package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

const second = int64(time.Second)

// epoch is a round time, so that steps are known.
var epoch = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// line is window n of ten seconds, with one of everything.
func line(n int) report.Line {
	x := float64(n)
	return report.Line{Algorithm: "fridge", Identity: report.Identity{Instance: "tenants", Each: "vnet0", Interfaces: []string{"vnet0"}},
		Window: report.Window{Start: int64(n) * 10 * second, End: int64(n+1) * 10 * second, Number: n}, Packets: report.Packets{Seen: uint64(100 * n), Bytes: 7, Used: 3},
		Lost: map[string]uint64{"evicted": 2, "late": 3}, Memory: report.Memory{RegisterBytes: 1024, KernelBytes: 2048},
		Report: report.Body{Notes: []string{"say <b>"},
			Values: []report.Value{{Name: "holes.share", Value: .25, Low: .2, High: .3, Unit: report.Ratio, Help: "what is missing"}, {Name: "nothing", Value: math.NaN(), Unit: report.Nanosecond}},
			Distributions: []report.Distribution{{Name: "delay_ns", Title: "delay", Unit: report.Nanosecond, Count: 10, CountErr: 1, Mean: x, Sum: 10 * x,
				Quantiles: []report.Quantile{{Name: "p50", Q: .5, Value: 1000 + x, Low: 900, High: 1100, Defined: true}, {Name: "p99", Q: .99}},
				Buckets:   []report.Bucket{{Upper: 1, Cumulative: 0}, {Upper: 2, Cumulative: 4}, {Upper: 3, Cumulative: 4}, {Upper: 4, Cumulative: 8}}}},
			Tables: []report.Table{{Name: "slices", Title: "slices", Columns: []report.Column{{Name: "name", Label: true}, {Name: "limit_bps", Unit: report.BitRate, History: true}},
				Rows: [][]any{{"a.b[x]", x}, {"<script>", 2.}}}}}}
}

type rig struct {
	*API
	hub      feed.Hub
	findings []finding.Finding
	handler  http.Handler
}

// begin is an API whose process began at epoch, and has no store.
func begin(t *testing.T, windows int) *rig {
	t.Helper()
	r := &rig{}
	now := epoch.Add(time.Duration(windows) * 10 * time.Second)
	r.API = New(Options{Hub: &r.hub, Clock: func() report.Clock { return report.Clock{Name: "monotonic", UnixOffsetNS: epoch.UnixNano()} }, Now: func() time.Time { return now },
		Findings: func() []finding.Finding { return r.findings }})
	r.Start(report.Run{Version: "v1", Command: "agent", Instance: "tenants/vnet0", WindowNS: 10 * second, Algorithms: []report.RunAlgorithm{{Name: "fridge", Params: map[string]any{"p": 1}}}})
	for n := range windows {
		r.Add(line(n))
	}
	r.handler = r.Handler()
	return r
}

func (r *rig) get(t *testing.T, path string, v any, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, Prefix+path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, request)
	if v != nil {
		if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
			t.Fatalf("%s: %d, %v: %s", path, w.Code, err, w.Body)
		}
	}
	return w
}

const vnet = "?key=tenants/vnet0&algorithm=fridge"

// found is a finding that began in the first window.
func found(id string, state finding.State, until int64) finding.Finding {
	return finding.Finding{ID: id, State: state, Kind: finding.SlowNetwork, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Prefix, Name: "10.0.0.0/8"}, Interface: "vnet0",
		Since: epoch.UnixNano(), Until: until}
}

// Every answer fits the description, which is made from the code.
func TestAnswersFitTheDescription(t *testing.T) {
	r := begin(t, 3)
	r.findings = []finding.Finding{found("a", finding.GoesOn, 0)}
	var description struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]struct{ Schema any }
			}
		}
		Components any
	}
	r.get(t, "/openapi.json", &description)
	if len(description.Paths) != len(r.routes) {
		t.Fatalf("%d paths are described, %d are served", len(description.Paths), len(r.routes))
	}
	for _, path := range []string{"/instances", "/reports" + vnet, "/windows" + vnet + "&fields=packets.seen,nothing", "/tables" + vnet + "&table=slices", "/distributions" + vnet + "&distribution=delay_ns",
		"/findings", "/health", "/parameters"} {
		name, _, _ := strings.Cut(path, "?")
		media := description.Paths[name]["get"].Responses["200"].Content["application/json"]
		c := jsonschema.NewCompiler()
		if err := c.AddResource("mem:a", map[string]any{"allOf": []any{media.Schema}, "components": description.Components}); err != nil {
			t.Fatal(err)
		}
		schema, err := c.Compile("mem:a")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		w := r.get(t, path, nil)
		v, err := jsonschema.UnmarshalJSON(w.Body)
		if err == nil {
			err = schema.Validate(v)
		}
		if w.Code != http.StatusOK || err != nil {
			t.Errorf("%s: %d, %v", path, w.Code, err)
		}
	}
}

// A report has units, intervals and help beside its numbers; an older window has them as well.
func TestReport(t *testing.T) {
	r := begin(t, 5)
	for at, want := range map[string]int{"": 4, "&at=" + epoch.Add(25*time.Second).Format(time.RFC3339): 1} {
		var got Report
		r.get(t, "/reports"+vnet+at, &got)
		if got.Window.Number != want || got.Window.EndMS != epoch.UnixMilli()+int64(want+1)*10000 || got.Window.StartMS != got.Window.EndMS-10000 {
			t.Errorf("%s: %+v", at, got.Window)
		}
		if v := got.Values[0]; v.Name != "holes.share" || string(v.Value) != "0.25" || string(v.Low) != "0.2" || string(v.High) != "0.3" || v.Unit != "ratio" || v.Promise != "interval" || v.Help != "what is missing" {
			t.Errorf("%+v", v)
		}
		d := got.Distributions[0]
		if q := d.Quantiles[0]; string(q.Value) != fmt.Sprint(1000+want) || string(q.Low) != "900" || string(d.Quantiles[1].Value) != "null" {
			t.Errorf("%+v", d)
		}
		if tab := got.Tables[0]; tab.Total != 2 || string(tab.Rows[1][0]) != `"<script>"` || !tab.Columns[0].Label || !tab.Columns[1].History {
			t.Errorf("%+v", tab)
		}
	}
	var d Distribution
	if r.get(t, "/distributions"+vnet+"&distribution=delay_ns", &d); d.From != "registers" || fmt.Sprint(d.Steps) != "[{1 0} {2 0.5} {3 0.5} {4 1}]" {
		t.Errorf("%+v", d)
	}
	if r.get(t, "/distributions"+vnet+"&distribution=delay_ns&at="+epoch.Add(25*time.Second).Format(time.RFC3339), &d); d.From != "percentiles" || fmt.Sprint(d.Steps) != "[{1001 0.5}]" {
		t.Errorf("%+v", d)
	}
	var page Table
	if r.get(t, "/tables"+vnet+"&table=slices&offset=1&limit=1", &page); page.Offset != 1 || len(page.Rows) != 1 || string(page.Rows[0][0]) != `"<script>"` {
		t.Errorf("%+v", page)
	}
}

// What an instance's parameters decide is not taken from another instance of the algorithm; what only another has is.
func TestTitlesAreOfTheInstance(t *testing.T) {
	r := begin(t, 1)
	other := line(0)
	other.Instance, other.Each, other.Report.Distributions[0].Title = "times", "", "delay of NTP answers"
	other.Report.Tables = nil
	r.Add(other)
	for key, want := range map[string]string{"tenants/vnet0": "delay", "times": "delay of NTP answers"} {
		var got Report
		r.get(t, "/reports?algorithm=fridge&key="+key, &got)
		var d Distribution
		r.get(t, "/distributions?distribution=delay_ns&algorithm=fridge&key="+key, &d)
		if len(got.Distributions) != 1 || got.Distributions[0].Title != want || d.Title != want {
			t.Errorf("%s: %+v, %q", key, got.Distributions, d.Title)
		}
	}
	if w := r.get(t, "/tables?table=slices&algorithm=fridge&key=times", nil); w.Code != http.StatusOK {
		t.Errorf("a table that only another instance has: %d", w.Code)
	}
	other.Report.Distributions = slices.Clone(other.Report.Distributions)
	other.Report.Distributions[0].Title = "delay of DNS answers" // the instance started again with another rule
	r.Add(other)
	var got Report
	if r.get(t, "/reports?algorithm=fridge&key=times", &got); got.Distributions[0].Title != "delay of DNS answers" {
		t.Errorf("title of the second start: %q", got.Distributions[0].Title)
	}
	r.Forget("times")
	if n := len(r.live.shapes); n != 2 {
		t.Errorf("%d shapes after an instance ended", n)
	}
}

// Fields over time: all windows where they are few, one of each step where they are many, in pages; cells of tables are fields, too.
func TestWindows(t *testing.T) {
	r := begin(t, 60)
	span := "&from=" + epoch.Format(time.RFC3339) + "&to=" + epoch.Add(20*time.Minute).Format(time.RFC3339)
	ask := func(more string) (s Series) {
		r.get(t, "/windows"+vnet+span+more, &s)
		return s
	}
	all := ask("&fields=packets.seen,report.slices[a.b[x]].limit_bps,report.delay_ns.p50,report.slices[<script>].limit_bps,no.such")
	if len(all.Rows) != 60 || all.Next != "" || fmt.Sprintf("%s", all.Rows[7]) != fmt.Sprintf("[%d %d 700 7 1007 2 null]", epoch.UnixMilli()+70000, epoch.UnixMilli()+80000) {
		t.Errorf("%d rows, %q, %s", len(all.Rows), all.Next, all.Rows[7])
	}
	if s := ask("&fields=packets.seen&step=60s"); len(s.Rows) != 11 || string(s.Rows[1][2]) != "500" || s.StepMS != 60000 {
		t.Errorf("%+v", s)
	}
	first := ask("&fields=packets.seen&points=40&step=1s")
	if len(first.Rows) != 41 || first.Next == "" {
		t.Fatalf("%d rows, next %q", len(first.Rows), first.Next)
	}
	var rest Series
	r.get(t, "/windows"+vnet+"&fields=packets.seen&points=40&step=1s&from="+first.Next+"&to="+epoch.Add(20*time.Minute).Format(time.RFC3339), &rest)
	if len(rest.Rows) != 19 || string(rest.Rows[0][2]) != "4100" {
		t.Errorf("%d rows: %s", len(rest.Rows), rest.Rows[0])
	}
}

// A finding is returned once, in its latest state.
func TestFindings(t *testing.T) {
	r := begin(t, 1)
	r.Found(found("a", finding.Begins, 0))
	r.Found(found("b", finding.Begins, 0))
	r.Found(found("b", finding.Ends, epoch.UnixNano()+second))
	r.findings = []finding.Finding{found("a", finding.GoesOn, 0)}
	var got Findings
	if r.get(t, "/findings", &got); len(got.Findings) != 2 || got.Findings[0].ID != "a" || got.Findings[0].State != finding.GoesOn || got.Findings[1].State != finding.Ends {
		t.Errorf("%+v", got)
	}
	if r.get(t, "/findings?open=true", &got); len(got.Findings) != 1 {
		t.Errorf("%+v", got)
	}
}

// An answer that the client has is not sent again; errors have the form of RFC 9457; nothing is written.
func TestAnswers(t *testing.T) {
	r := begin(t, 2)
	first := r.get(t, "/reports"+vnet, nil)
	if again := r.get(t, "/reports"+vnet, nil, "If-None-Match", first.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("%d, %d bytes", again.Code, again.Body.Len())
	}
	r.Add(line(2))
	if other := r.get(t, "/reports"+vnet, nil, "If-None-Match", first.Header().Get("ETag")); other.Code != http.StatusOK {
		t.Errorf("%d", other.Code)
	}
	for path, want := range map[string]Problem{
		"/none":                                                       {Status: 404},
		"/reports?key=x":                                              {Status: 400, Parameter: "algorithm"},
		"/reports?key=x&algorithm=y":                                  {Status: 404},
		"/reports" + vnet + "&at=x":                                   {Status: 400, Parameter: "at"},
		"/reports" + vnet + "&at=2026-01-01":                          {Status: 404},
		"/reports" + vnet + "&color=1":                                {Status: 400, Parameter: "color"},
		"/windows" + vnet + "&fields=a&step=0":                        {Status: 400, Parameter: "step"},
		"/windows" + vnet + "&fields=a&points=9999":                   {Status: 400, Parameter: "points"},
		"/windows" + vnet + "&fields=a]." + strings.Repeat(",a", 99):  {Status: 400, Parameter: "fields"},
		"/windows" + vnet + "&fields=" + url.QueryEscape("t[x"):       {Status: 400, Parameter: "fields"},
		"/windows" + vnet + "&fields=a&from=2026-01-02&to=2026-01-01": {Status: 400, Parameter: "from"},
		"/tables" + vnet + "&table=x":                                 {Status: 400, Parameter: "table"},
		"/distributions" + vnet + "&distribution=x":                   {Status: 400, Parameter: "distribution"},
		"/parameters?algorithm=x":                                     {Status: 400, Parameter: "algorithm"},
		"/reports?algorithm=y&key=" + strings.Repeat("x", mostText+1): {Status: 400, Parameter: "key"},
		"/records":             {Status: 404},
		"/findings?open=maybe": {Status: 400, Parameter: "open"},
	} {
		var got Problem
		w := r.get(t, path, &got)
		if w.Code != want.Status || got.Status != want.Status || got.Parameter != want.Parameter || got.Detail == "" || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%.80s: %d, %+v", path, w.Code, got)
		}
	}
	w := httptest.NewRecorder()
	if r.handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Prefix+"/instances", nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// A store on disk is asked where there is one; records of it are what history shows.
func TestRecords(t *testing.T) {
	s, err := store.Open(filepath.Join(t.TempDir(), "w.db"), store.Options{Now: func() time.Time { return epoch.Add(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range 3 {
		text, err := line(n).Record(report.Clock{UnixOffsetNS: epoch.UnixNano()})
		if err == nil {
			err = s.Append(store.Record{End: epoch.Add(time.Duration(n+1) * 10 * time.Second), Algorithm: "fridge", Instance: "tenants", Key: "tenants/vnet0", Interfaces: []string{"vnet0"}, Line: text})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r := begin(t, 0)
	r.opts.Store = func() store.Past { return s }
	ask := RecordsURL(store.Query{Algorithm: "fridge", Interface: "vnet0", From: epoch.Add(15 * time.Second), Newest: true, Limit: 1})
	w := r.get(t, strings.TrimPrefix(ask, Prefix), nil)
	if w.Code != http.StatusOK || strings.Count(w.Body.String(), "\n") != 1 || !strings.Contains(w.Body.String(), `"number":2`) || w.Header().Get(MoreHeader) != "false" {
		t.Errorf("%d %v: %s", w.Code, w.Header(), w.Body)
	}
	var series Series
	if r.get(t, "/windows"+vnet+"&fields=packets.seen&from=2026-01-02&to=2026-01-03", &series); len(series.Rows) != 1 || series.StepMS != 288000 {
		t.Errorf("%+v", series)
	}
}

// event is one that the stream sends.
func event(t *testing.T, b *bufio.Reader) (name, data string) {
	t.Helper()
	for {
		text, err := b.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		switch text = strings.TrimSpace(text); {
		case strings.HasPrefix(text, "event: "):
			name = text[7:]
		case strings.HasPrefix(text, "data: "):
			data = text[6:]
		case text == "" && name != "":
			return name, data
		}
	}
}

func (r *rig) listen(t *testing.T, path string) *bufio.Reader {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(r.handler)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+Prefix+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); answer.Body.Close(); server.Close() })
	b := bufio.NewReader(answer.Body)
	if name, _ := event(t, b); name != "hello" {
		t.Fatalf("%s", name)
	}
	return b
}

func (r *rig) publish(n int, algorithm string) {
	l := line(n)
	l.Algorithm = algorithm
	r.Add(l)
	r.hub.Publish(context.Background(), feed.Event{Line: &l})
}

// Windows and findings arrive as they close, those of one instance alone where that is asked for.
func TestStream(t *testing.T) {
	r := begin(t, 0)
	b := r.listen(t, "/stream?algorithm=fridge&whole=true")
	r.publish(7, "lean")
	r.publish(8, "fridge")
	shown := found("a", finding.Begins, 0)
	text := shown.Output()
	r.hub.Publish(context.Background(), feed.Event{Finding: &text})
	name, data := event(t, b)
	var l record
	if err := json.Unmarshal([]byte(data), &l); err != nil || name != "window" || l.Window.Number != 8 || l.Algorithm != "fridge" {
		t.Errorf("%s: %s, %v", name, data, err)
	}
	var f finding.Finding
	if name, data = event(t, b); name != "finding" || json.Unmarshal([]byte(data), &f) != nil || f.ID != "a" {
		t.Errorf("%s: %s", name, data)
	}
	if n := len(r.hub.Readers()); n != 0 {
		t.Errorf("%d readers of the stream are listed: each would be a series", n)
	}
}

// stuck is a connection that takes nothing until it is let go.
type stuck struct {
	*httptest.ResponseRecorder
	entered, free chan struct{}
	once          sync.Once
}

func (s *stuck) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.entered); <-s.free })
	return s.ResponseRecorder.Write(b)
}

// A client that does not read blocks nothing, costs no more than its queue, and is sent the number of missed events.
func TestSlowReader(t *testing.T) {
	r := begin(t, 0)
	w := &stuck{ResponseRecorder: httptest.NewRecorder(), entered: make(chan struct{}), free: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Prefix+"/stream", nil))
	}()
	<-w.entered
	const more = 100
	for n := range streamDepth + more {
		r.publish(n, "fridge")
	}
	close(w.free)
	r.hub.Close()
	<-done
	text := w.Body.String()
	if n := strings.Count(text, "event: window\n"); n != streamDepth || !strings.Contains(text, fmt.Sprintf("event: missed\ndata: {\"events\":%d}", more)) {
		t.Errorf("%d windows of %d: %.300s", n, streamDepth+more, text)
	}
}

// Streams are bounded.
func TestStreamsAreBounded(t *testing.T) {
	r := begin(t, 0)
	for range mostStreams {
		r.streams <- struct{}{}
	}
	if w := r.get(t, "/stream", nil); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d", w.Code)
	}
}

// Who may ask, where.
func TestGuard(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	const token = "0123456789abcdef"
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := TokenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	here, there := GuardOf("127.0.0.1:1"), GuardOf("0.0.0.0:1")
	secret := there
	secret.Token = read
	for _, c := range []struct {
		g      Guard
		host   string
		header http.Header
		want   int
	}{
		{here, "localhost:9400", nil, 200}, {here, "[::1]:9400", nil, 200}, {here, "", nil, 200}, {here, "evil.example:9400", nil, 403}, {there, "10.0.0.1:9400", nil, 403},
		{secret, "monitor:9400", nil, 401}, {secret, "monitor:9400", http.Header{"Authorization": {"Bearer " + token}}, 200},
		{secret, "monitor:9400", http.Header{"Authorization": {"Bearer "}}, 401}, {secret, "monitor:9400", http.Header{"Cookie": {Cookie + "=" + token}}, 200},
		{secret, "monitor:9400", http.Header{"Cookie": {Cookie + "=x"}}, 401}, {Guard{Certified: true}, "monitor:9400", nil, 200},
	} {
		r := httptest.NewRequest(http.MethodGet, Prefix+"/health", nil)
		r.Host, r.Header = c.host, c.header
		if r.Header == nil {
			r.Header = http.Header{}
		}
		w := httptest.NewRecorder()
		begin(t, 0).Front(c.g, http.NotFoundHandler()).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%+v, host %q, %v: %d, want %d", c.g, c.host, c.header, w.Code, c.want)
		}
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := TokenFile(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("%v", err)
	}
}

// The page's login takes the token and keeps it in a cookie that no script reads.
func TestLogin(t *testing.T) {
	g := Guard{Token: func() string { return "0123456789abcdef" }}
	for given, signedIn := range map[string]bool{"0123456789abcdef": true, "wrong": false} {
		r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(url.Values{"token": {given}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		begin(t, 0).Front(g, http.NotFoundHandler()).ServeHTTP(w, r)
		c := w.Result().Cookies()
		if w.Code != http.StatusSeeOther || (len(c) == 1) != signedIn || signedIn && (!c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode) {
			t.Errorf("%s: %d, %v", given, w.Code, c)
		}
	}
}

func TestWhen(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Time{"": {}, "90m": now.Add(-90 * time.Minute), "2026-01-01": now.Truncate(24 * time.Hour).Add(-24 * time.Hour),
		"2026-01-02T03:04:05Z": now} {
		if got, err := When(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := When("yesterday", now); err == nil {
		t.Error("yesterday is no time")
	}
}

// What is no window is refused, wherever it ends.
func TestPickRefusesDamage(t *testing.T) {
	whole, err := line(1).Record(report.Clock{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := newReader([]string{"report.delay_ns.p50", "report.slices", "lost.late"})
	if err != nil {
		t.Fatal(err)
	}
	if row, err := r.row(whole, epoch); err != nil || string(row[2]) != "1001" || string(row[4]) != "3" {
		t.Fatalf("%s, %v", row, err)
	}
	for n := range len(whole) - 1 {
		if _, err := r.row(whole[:n], epoch); err == nil {
			t.Fatalf("cut at %d of %d it is taken", n, len(whole))
		}
	}
}

// Of a distribution those steps are sent at which it rises, and those right before; of an empty one none.
func TestStepsOfADistribution(t *testing.T) {
	buckets := func(cumulative ...float64) (list []report.Bucket) {
		for i, c := range cumulative {
			list = append(list, report.Bucket{Upper: float64(i + 1), Cumulative: c})
		}
		return list
	}
	for _, c := range []struct {
		of   []report.Bucket
		want []Step
	}{{nil, []Step{}}, {buckets(0, 0), []Step{}}, {buckets(0, 0, 2, 2, 2, 4, 4), []Step{{2, 0}, {3, .5}, {5, .5}, {6, 1}}}, {buckets(3), []Step{{1, 1}}}, {buckets(1, 1), []Step{{1, 1}}}} {
		if got := steps(c.of); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.of, got, c.want)
		}
	}
}
