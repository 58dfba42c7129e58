// Package server is the NATS server inside a coordinator. It is the only package that links the server.
package server

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// Options of the NATS server inside of a coordinator.
type Options struct {
	Listen  string // host:port
	TLS     *tls.Config
	Store   string // folder of JetStream's files
	Message int    // bytes of the largest message
	Agents  int    // connections at most
	Name    string // of this server in a cluster, and for JetStream
	Cluster string // host:port; "" for none
	Routes  []string
	Peers   *tls.Config // of the cluster
	Log     *slog.Logger
	// Identify returns the name in a certificate, and its serial number; err refuses it.
	Identify func(*tls.ConnectionState) (name, serial string, err error)
}

// Server is the NATS server of a coordinator. A client may publish and subscribe only to the subjects of the name in its certificate.
type Server struct {
	opts   Options
	nats   *natsserver.Server
	secret string // of the coordinator's own connection

	refused    atomic.Uint64 // connections
	violations atomic.Uint64 // messages to subjects of others
	warned     atomic.Int64  // when the last of them was logged, Unix ns

	mu    sync.Mutex
	conns map[string][]admitted // by name
}

// admitted is a connection of an agent.
type admitted struct {
	id     uint64
	serial string // of its certificate
}

// perName bounds the connections of an agent: the current one, and old ones that are not yet closed.
const perName = 4

// Serve starts a server.
func Serve(o Options) (*Server, error) {
	host, port, err := split(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", o.Listen, err)
	}
	if err := vacant(o.Listen, o.Cluster); err != nil {
		return nil, err
	}
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, fmt.Errorf("draw a secret: %w", err)
	}
	s := &Server{opts: o, secret: hex.EncodeToString(b[:]), conns: map[string][]admitted{}}
	opts := &natsserver.Options{
		ServerName: o.Name, Host: host, Port: port, NoSigs: true, NoLog: true, DisableJetStreamBanner: true, NoHeaderSupport: false,
		MaxPayload: int32(o.Message), MaxPending: 64 << 20, MaxConn: o.Agents + 16, MaxSubs: 128, MaxControlLine: 1024,
		WriteDeadline: 5 * time.Second, PingInterval: 10 * time.Second, MaxPingsOut: 2, AuthTimeout: 30,
		JetStream: true, StoreDir: o.Store, JetStreamMaxMemory: 16 << 20, JetStreamMaxStore: 256 << 20, SyncAlways: true,
		CustomClientAuthentication: s,
	}
	if o.TLS != nil {
		opts.TLS, opts.TLSVerify, opts.TLSConfig, opts.TLSTimeout = true, true, o.TLS, 30
	}
	if o.Cluster != "" {
		if err := s.join(opts); err != nil {
			return nil, err
		}
	}
	if s.nats, err = natsserver.NewServer(opts); err != nil {
		return nil, fmt.Errorf("start the bus: %w", err)
	}
	s.nats.SetLoggerV2(logged{s}, false, false, false)
	s.nats.Start()
	if !s.nats.ReadyForConnections(20 * time.Second) {
		s.Close()
		return nil, fmt.Errorf("start the bus: server does not listen on %s", o.Listen)
	}
	return s, nil
}

// vacant checks in advance that an address is free: the NATS server itself only logs that it is not, and waits.
func vacant(addresses ...string) error {
	for _, a := range addresses {
		if a == "" {
			continue
		}
		l, err := net.Listen("tcp", a)
		if err != nil {
			return fmt.Errorf("start the bus: %w", err)
		}
		l.Close()
	}
	return nil
}

// join makes the server one of a cluster.
func (s *Server) join(opts *natsserver.Options) error {
	host, port, err := split(s.opts.Cluster)
	if err != nil {
		return fmt.Errorf("cluster on %q: %w", s.opts.Cluster, err)
	}
	opts.Cluster = natsserver.ClusterOpts{Name: "xdpmon", Host: host, Port: port, TLSConfig: s.opts.Peers, TLSTimeout: 10, PoolSize: 1}
	for _, r := range s.opts.Routes {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: r})
	}
	return nil
}

func split(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(text)
	if port == 0 {
		port = natsserver.RANDOM_PORT
	}
	return host, port, err
}

// Check implements natsserver.Authentication.
func (s *Server) Check(c natsserver.ClientAuthentication) bool {
	name, err := s.who(c)
	if err != nil {
		s.refused.Add(1)
		s.opts.Log.Warn("connection refused", "from", c.RemoteAddress(), "reason", err)
		return false
	}
	if name == "" {
		c.RegisterUser(&natsserver.User{Username: "coordinator"})
		return true
	}
	c.RegisterUser(&natsserver.User{Username: name, Permissions: &natsserver.Permissions{
		Publish:   &natsserver.SubjectPermission{Allow: []string{bus.DataSubject(name), bus.HelloSubject(name), bus.FindingsSubject(name)}},
		Subscribe: &natsserver.SubjectPermission{Allow: []string{bus.DownSubject(name)}},
	}})
	return true
}

// who is the name of the client: "" for the coordinator itself.
func (s *Server) who(c natsserver.ClientAuthentication) (string, error) {
	if token := c.GetOpts().Token; token != "" {
		if subtle.ConstantTimeCompare([]byte(token), []byte(s.secret)) != 1 {
			return "", errors.New("client does not have this coordinator's secret")
		}
		return "", nil
	}
	name, serial := c.GetOpts().Username, "" // on this host only: the given name is accepted
	if s.opts.TLS != nil {
		state := c.GetTLSConnectionState()
		if state == nil {
			return "", errors.New("no certificate")
		}
		var err error
		if name, serial, err = s.opts.Identify(state); err != nil {
			return "", err
		}
	}
	if err := bus.CheckName(name); err != nil {
		return "", err
	}
	return name, s.admit(name, admitted{c.GetID(), serial})
}

// admit bounds the connections of one name.
func (s *Server) admit(name string, c admitted) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := slices.DeleteFunc(s.conns[name], func(a admitted) bool { return s.nats.GetClient(a.id) == nil })
	if len(live) >= perName {
		s.conns[name] = live
		return fmt.Errorf("%s has %d connections, no more", name, len(live))
	}
	s.conns[name] = append(live, c)
	return nil
}

// Drop ends the connections of an agent.
func (s *Server) Drop(name string) {
	s.mu.Lock()
	conns := s.conns[name]
	delete(s.conns, name)
	s.mu.Unlock()
	for _, c := range conns {
		_ = s.nats.DisconnectClientByID(c.id) // it may be closed already
	}
}

// DropRevoked ends connections with revoked certificates.
func (s *Server) DropRevoked(revoked func(serial string) bool) {
	s.mu.Lock()
	var names []string
	for name, conns := range s.conns {
		if slices.ContainsFunc(conns, func(c admitted) bool { return revoked(c.serial) }) {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	for _, name := range names { // an agent with a renewed certificate connects again
		s.Drop(name)
	}
}

// Connect opens a connection of the coordinator itself.
func (s *Server) Connect(options ...nats.Option) (*nats.Conn, error) {
	conn, err := nats.Connect("", append(options, nats.InProcessServer(s.nats), nats.Token(s.secret))...)
	if err != nil {
		return nil, fmt.Errorf("connect to the bus: %w", err)
	}
	return conn, nil
}

// Address is the address that agents connect to.
func (s *Server) Address() string { return s.nats.Addr().String() }

// Refused is the number of refused connections, and of messages to subjects of others.
func (s *Server) Refused() (connections, violations uint64) {
	return s.refused.Load(), s.violations.Load()
}

// Close ends the server.
func (s *Server) Close() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// logged passes the server's messages to the log, without those that do not help an operator.
type logged struct{ server *Server }

func (l logged) Noticef(format string, v ...any) {
	l.server.opts.Log.Debug(fmt.Sprintf(format, v...))
}

func (l logged) Warnf(format string, v ...any) {
	l.server.opts.Log.Debug(fmt.Sprintf(format, v...))
}

// violation logs a message to another agent's subject, at most one a minute: a hostile agent cannot fill the log, and all are counted.
func (l logged) violation(text string) {
	now, last := time.Now().UnixNano(), l.server.warned.Load()
	if now-last < int64(time.Minute) && last != 0 || !l.server.warned.CompareAndSwap(last, now) {
		l.server.opts.Log.Debug(text)
		return
	}
	l.server.opts.Log.Warn("message to the subject of another agent refused; further ones are counted, and logged once a minute", "error", text)
}

func (l logged) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	if strings.Contains(format, "Publish Violation") {
		l.server.violations.Add(1)
		l.violation(text)
		return
	}
	if strings.Contains(text, "remote error: tls: bad certificate") || strings.Contains(text, "remote error: tls: unknown certificate authority") {
		text += ": the client rejects this coordinator's certificate: its bus.keys.ca is another authority's, or the address that it connects to is not in the certificate"
	}
	l.server.opts.Log.Warn("the bus: " + text)
}

func (l logged) Fatalf(format string, v ...any) { l.server.opts.Log.Error(fmt.Sprintf(format, v...)) }
func (l logged) Debugf(string, ...any)          {}
func (l logged) Tracef(string, ...any)          {}
