// Package prometheus is a real Prometheus in this process: its scraper, its storage, its rules and its queries.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	httpconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
)

// Server is a Prometheus. Close it.
type Server struct {
	db      *tsdb.DB
	engine  *promql.Engine
	parser  parser.Parser
	scraper *scrape.Manager
	targets chan map[string][]*targetgroup.Group
	ended   chan error
}

// New is a server with its data in dir, and without targets.
func New(dir string) (*Server, error) {
	s := &Server{parser: parser.NewParser(parser.Options{})}
	options := tsdb.DefaultOptions()
	options.OutOfOrderTimeWindow = (24 * time.Hour).Milliseconds() // captures are replayed one after the other
	var err error
	if s.db, err = tsdb.Open(dir, slog.New(slog.DiscardHandler), nil, options, nil); err != nil {
		return nil, fmt.Errorf("open storage: %w", err)
	}
	s.engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 5e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: s.parser,
		EnableAtModifier: true, EnableNegativeOffset: true})
	return s, nil
}

// Job is what is scraped under one name.
type Job struct{ Name, Address string }

// Scrape begins to scrape; text is scrape_configs of a configuration. Connections are made with dial, where it is not nil.
func (s *Server) Scrape(text string, dial func(ctx context.Context, network, address string) (net.Conn, error), jobs ...Job) error {
	cfg, err := config.Load(text, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	options := &scrape.Options{DiscoveryReloadInterval: model.Duration(10 * time.Millisecond)}
	if dial != nil {
		options.HTTPClientOptions = []httpconfig.HTTPClientOption{httpconfig.WithDialContextFunc(dial)}
	}
	if s.scraper, err = scrape.NewManager(options, slog.New(slog.DiscardHandler), nil, nil, s.db, client.NewRegistry()); err != nil {
		return fmt.Errorf("make scraper: %w", err)
	}
	if err := s.scraper.ApplyConfig(cfg); err != nil {
		return fmt.Errorf("configure scraper: %w", err)
	}
	s.targets, s.ended = make(chan map[string][]*targetgroup.Group), make(chan error, 1)
	go func() { s.ended <- s.scraper.Run(s.targets) }()
	groups := map[string][]*targetgroup.Group{}
	for _, j := range jobs {
		groups[j.Name] = append(groups[j.Name], &targetgroup.Group{Source: j.Name + j.Address, Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(j.Address)}}})
	}
	s.targets <- groups
	return nil
}

// Storage is where samples can be appended.
func (s *Server) Storage() *tsdb.DB { return s.db }

// Parser reads expressions.
func (s *Server) Parser() parser.Parser { return s.parser }

// Query evaluates an expression at a time. A query that warns (of a counter that is none, of histograms that do not fit) is an error.
func (s *Server) Query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	q, err := s.engine.NewInstantQuery(ctx, s.db, nil, expr, at)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", expr, err)
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return nil, fmt.Errorf("evaluate %q: %w", expr, result.Err)
	}
	if len(result.Warnings) > 0 {
		return nil, fmt.Errorf("evaluate %q: %w", expr, errors.Join(result.Warnings.AsErrors()...))
	}
	switch v := result.Value.(type) {
	case promql.Vector:
		return copied(v), nil
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	}
	return nil, fmt.Errorf("evaluate %q: the result is a %s", expr, result.Value.Type())
}

// copied outlives its query, whose samples are given to the next one.
func copied(v promql.Vector) promql.Vector {
	v = append(promql.Vector{}, v...)
	for i := range v {
		if v[i].H != nil {
			v[i].H = v[i].H.Copy()
		}
	}
	return v
}

// Rules reads files of rules, and returns their groups by name.
func (s *Server) Rules(ctx context.Context, files ...string) (map[string]*rules.Group, error) {
	m := rules.NewManager(&rules.ManagerOptions{QueryFunc: rules.EngineQueryFunc(s.engine, s.db), AppendableV2: s.db, Queryable: s.db, Context: ctx, Registerer: client.NewRegistry(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler), Parser: s.parser})
	loaded, errs := m.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, files...)
	if len(errs) > 0 {
		return nil, fmt.Errorf("read rules: %w", errors.Join(errs...))
	}
	groups := map[string]*rules.Group{}
	for key, g := range loaded {
		_, name, _ := strings.Cut(key, ";")
		groups[name] = g
	}
	return groups, nil
}

// Close ends scraping and closes the storage.
func (s *Server) Close() error {
	if s.scraper != nil {
		s.scraper.Stop()
		close(s.targets)
		<-s.ended
	}
	return errors.Join(s.engine.Close(), s.db.Close())
}
