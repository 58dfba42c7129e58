// Package settings holds the configuration of logs and outputs that agents and coordinators have in common.
package settings

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// Log configures the log.
type Log struct{ Format, Level string }

// Output configures a stream of windows: JSON lines or Parquet files.
type Output struct {
	JSON    string // file, or - for standard output; "" with Parquet
	Parquet Parquet
	CDF     bool
}

// Name identifies an output in logs, health and metrics.
func (o Output) Name() string {
	if o.Parquet.Dir != "" {
		return "parquet " + o.Parquet.Dir
	}
	return "json " + o.JSON
}

// Path is the file or folder of an output.
func (o Output) Path() string { return cmp.Or(o.Parquet.Dir, o.JSON) }

// Parquet configures files for other engines.
type Parquet struct {
	Dir      string        // "": none
	Every    time.Duration // a file holds the windows of so long
	MaxAge   time.Duration // older files are deleted
	MaxBytes int64         // of all files
}

// DefaultParquet are files of five minutes, for thirty days and up to 4 GiB.
func DefaultParquet() Parquet {
	return Parquet{Every: 5 * time.Minute, MaxAge: 30 * 24 * time.Hour, MaxBytes: 4 << 30}
}

// Store configures where windows are stored, and how many.
type Store struct {
	Path     string
	MaxAge   time.Duration
	MaxBytes int64
	// Snapshots: the snapshot of each window is stored with it, so that windows can be merged.
	Snapshots bool
}

// Metrics select what becomes a series.
type Metrics struct {
	Rows       bool // of tables whose keys are from traffic, too
	Details    bool // of the measurement itself, too
	Histograms prom.Histograms
	Limit      int // series per scrape
}

// DefaultMetrics are without rows, and histograms in both forms.
func DefaultMetrics() Metrics {
	return Metrics{Histograms: prom.BothHistograms, Limit: prom.DefaultLimit}
}

// mostSeries bounds Limit.
const mostSeries = 10_000_000

// MetricFields are the fields of Metrics in a file.
func MetricFields[T any](of func(*T) *Metrics) []config.Field[T] {
	forms := make([]string, len(prom.HistogramForms))
	for i, f := range prom.HistogramForms {
		forms[i] = string(f)
	}
	return []config.Field[T]{
		{Key: "metrics_rows", Help: "also serve metrics of flows, addresses and prefixes: each becomes a series, with personal data in its labels", Kind: config.Flag{What: "metrics_rows"},
			Set: config.To(func(c *T) *bool { return &of(c).Rows })},
		{Key: "metrics_details", Help: "also serve metrics of the measurement itself: sizes, settings, ratios of counters, kernel memory, percentiles of further distributions",
			Kind: config.Flag{What: "metrics_details"}, Set: config.To(func(c *T) *bool { return &of(c).Details })},
		{Key: "metrics_histograms", Help: "form of histograms: classic (a series a bucket), native (one series, for Prometheus that scrapes protobuf) or both (both)",
			Kind: config.Word{What: "metrics_histograms", Choices: forms}, Set: func(c *T, v any) { of(c).Histograms = prom.Histograms(v.(string)) }},
		{Key: "metrics_limit", Help: "maximum of series per scrape; rows of tables are left out first (50000)", Kind: config.Number{What: "metrics_limit", Min: 1, Max: mostSeries},
			Set: func(c *T, v any) { of(c).Limit = int(v.(uint64)) }},
	}
}

// Alerts configures who is notified of findings.
type Alerts struct {
	Alertmanager string // base URL, such as http://127.0.0.1:9093; "": none
	Webhook      string // URL
}

// Alerting is the kind of Alerts in a file.
func Alerting() config.Kind {
	address := func(what string) config.Kind {
		return config.Word{What: what, Pattern: "^https?://", Check: func(text string) error {
			if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return fmt.Errorf("%s %q: give a URL like http://127.0.0.1:9093", what, text)
			}
			return nil
		}}
	}
	return config.Object[Alerts]{What: "alerts", Defaults: func() Alerts { return Alerts{} }, Fields: []config.Field[Alerts]{
		{Key: "alertmanager", Help: "URL of an Alertmanager: findings are posted as alerts (API version 2)", Kind: address("alertmanager"), Required: false, Set: config.To(func(a *Alerts) *string { return &a.Alertmanager })},
		{Key: "webhook", Help: "URL that each finding is posted to as JSON when it begins and when it ends", Kind: address("webhook"), Required: false, Set: config.To(func(a *Alerts) *string { return &a.Webhook })},
	}}
}

// Web configures who may use page and API on a listener that other hosts reach.
type Web struct {
	TokenFile    string // "": none
	Certificates bool   // accept clients with a certificate of the bus' authority
}

// Webbing is the kind of Web in a file.
func Webbing() config.Kind {
	auth := config.Object[Web]{What: "auth", Defaults: func() Web { return Web{} }, Fields: []config.Field[Web]{
		{Key: "token_file", Help: "file (0600) with a bearer token of at least 16 characters", Kind: config.Path("token_file"), Set: config.To(func(w *Web) *string { return &w.TokenFile })},
		{Key: "certificates", Help: "serve HTTPS with the bus' keys, only to clients with a certificate of the same authority; metrics and health as well (false)", Kind: config.Flag{What: "certificates"},
			Set: config.To(func(w *Web) *bool { return &w.Certificates })},
	}}
	return config.Object[Web]{What: "web", Defaults: func() Web { return Web{} }, Fields: []config.Field[Web]{
		{Key: "auth", Help: "authentication of clients: without it page and API answer this host only, whatever the address in listen", Kind: auth, Set: func(w *Web, v any) { *w = v.(Web) }},
	}}
}

// Promised is the kind of a list of promises in a file.
func Promised() config.Kind {
	return config.List[string]{What: "promises", Of: config.Word{What: "promise", Check: func(text string) error {
		_, err := finding.ParsePromise(text)
		return err
	}}}
}

// Listen is the address of metrics, page and health.
var Listen = config.Word{What: "listen", Check: func(text string) error {
	_, _, err := prom.Address(text)
	return err
}}

// DefaultLog is text, from level info on.
func DefaultLog() Log { return Log{Format: "text", Level: "info"} }

// Logging is the kind of Log in a file.
func Logging() config.Kind {
	return config.Object[Log]{What: "log", Defaults: DefaultLog, Fields: []config.Field[Log]{
		{Key: "format", Help: "text or json (text)", Kind: config.Word{What: "format", Choices: []string{"text", "json"}}, Required: false, Set: config.To(func(l *Log) *string { return &l.Format })},
		{Key: "level", Help: "debug, info, warn or error (info)", Kind: config.Word{What: "level", Choices: []string{"debug", "info", "warn", "error"}}, Required: false,
			Set: config.To(func(l *Log) *string { return &l.Level })},
	}}
}

// lines and cdf are the fields of every output.
var (
	lines = config.Field[Output]{Key: "json", Help: "JSON lines into this file, or to standard output with -", Kind: config.Word{What: "json", Pattern: "^(-$|/)", Check: func(text string) error {
		if text != "-" && !filepath.IsAbs(text) {
			return fmt.Errorf("json %q: give an absolute path, or - for standard output", text)
		}
		return nil
	}}, Set: config.To(func(o *Output) *string { return &o.JSON })}
	cdf = config.Field[Output]{Key: "cdf", Help: "also write the steps of every distribution (false)", Kind: config.Flag{What: "cdf"}, Set: config.To(func(o *Output) *bool { return &o.CDF })}
)

// files are the fields of Parquet.
var files = []config.Field[Output]{
	{Key: "parquet", Help: "Parquet files below this folder: algorithm=NAME/table=NAME/day=DATE/*.parquet, for DuckDB, ClickHouse or Spark", Kind: config.Path("parquet"),
		Set: config.To(func(o *Output) *string { return &o.Parquet.Dir })},
	{Key: "every", Help: "parquet: a file holds the windows of so long; a process that is killed loses them (5m)", Kind: config.Duration{What: "every", Min: time.Second, Max: 24 * time.Hour},
		Set: config.To(func(o *Output) *time.Duration { return &o.Parquet.Every })},
	{Key: "max_age", Help: "parquet: older files are deleted (720h)", Kind: config.Duration{What: "max_age", Min: time.Minute, Max: 10 * 365 * 24 * time.Hour},
		Set: config.To(func(o *Output) *time.Duration { return &o.Parquet.MaxAge })},
	{Key: "max_bytes", Help: "parquet: maximum size of all files; the oldest are deleted first (4GiB)", Kind: config.Size{What: "max_bytes", Min: 1 << 20, Max: 1 << 50},
		Set: config.To(func(o *Output) *int64 { return &o.Parquet.MaxBytes })},
}

func output(more ...config.Field[Output]) config.Kind {
	defaults := func() Output { return Output{Parquet: DefaultParquet()} }
	first := lines
	first.Required = len(more) == 0
	return config.Object[Output]{What: "an output", Defaults: defaults, Fields: append([]config.Field[Output]{first, cdf}, more...)}
}

// WithSnapshots is the field for programs whose windows have snapshots.
var WithSnapshots = config.Field[Store]{Key: "snapshots", Help: "also store the snapshot of each window, for `xdpmon history --snapshots` and `xdpmon merge` (false)",
	Kind: config.Flag{What: "snapshots"}, Required: false, Set: config.To(func(s *Store) *bool { return &s.Snapshots })}

// Keep is the kind of Store in a file; path is the default.
func Keep(path string, more ...config.Field[Store]) config.Kind {
	defaults := func() Store { return Store{Path: path, MaxAge: store.DefaultMaxAge, MaxBytes: store.DefaultBytes} }
	return config.Object[Store]{What: "store", Defaults: defaults, Fields: append([]config.Field[Store]{
		{Key: "path", Help: "the file (" + path + ")", Kind: config.Path("path"), Required: false, Set: config.To(func(s *Store) *string { return &s.Path })},
		{Key: "max_age", Help: "older windows are deleted (168h)", Kind: config.Duration{What: "max_age", Min: time.Minute, Max: 10 * 365 * 24 * time.Hour}, Required: false, Set: config.To(func(s *Store) *time.Duration { return &s.MaxAge })},
		{Key: "max_bytes", Help: "maximum size of the file; the oldest windows are deleted first (256MiB)", Kind: config.Size{What: "max_bytes", Min: store.MinBytes, Max: 1 << 40}, Required: false, Set: config.To(func(s *Store) *int64 { return &s.MaxBytes })},
	}, more...)}
}

// Outputs is the kind of a list of outputs in a file.
func Outputs() config.Kind { return config.List[Output]{What: "outputs", Of: output()} }

// AllOutputs is Outputs of a program that also writes Parquet files.
func AllOutputs() config.Kind { return config.List[Output]{What: "outputs", Of: output(files...)} }

// CheckOutputs reports outputs without a place, and two with the same one; n is the node of the list.
func CheckOutputs(p *config.Parser, n *yaml.Node, outputs []Output) {
	var places []string
	for _, o := range outputs {
		switch {
		case (o.JSON == "") == (o.Parquet.Dir == ""):
			p.Errorf(n, "an output has either json or parquet")
		case slices.Contains(places, o.Path()):
			p.Errorf(n, "two outputs write to %s", o.Path())
		}
		places = append(places, o.Path())
	}
}
