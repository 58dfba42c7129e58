package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/bus"
)

// A port in use is reported immediately.
func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, o := range []Options{{Listen: taken.Addr().String()}, {Listen: "127.0.0.1:0", Cluster: taken.Addr().String()}} {
		if s, err := Serve(o); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%+v: %v, %v", o, s, err)
		}
	}
}

// Messages in another's name are counted and not received, clients without a name are refused, and a name has only a few connections at a time.
func TestServer(t *testing.T) {
	var log bytes.Buffer
	s, err := Serve(Options{Listen: "127.0.0.1:0", Store: t.TempDir(), Message: bus.DefaultMessage, Agents: 8, Name: "one", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	own, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	received := make(chan *nats.Msg, 16)
	if _, err := own.ChanSubscribe(bus.UpAll, received); err != nil {
		t.Fatal(err)
	}
	if err := own.Flush(); err != nil {
		t.Fatal(err)
	}
	dial := func(name string) (*nats.Conn, error) {
		return nats.Connect("nats://"+s.Address(), nats.UserInfo(name, ""), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	}
	if _, _, err := net.SplitHostPort(s.Address()); err != nil {
		t.Error(err)
	}
	var conns []*nats.Conn
	for range perName {
		c, err := dial("a")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	for _, subject := range []string{bus.DataSubject("b"), bus.DownSubject("a"), bus.DataSubject("a")} {
		if err := conns[0].Publish(subject, []byte(subject)); err != nil {
			t.Fatal(err)
		}
	}
	if m := <-received; m.Subject != bus.DataSubject("a") || len(received) != 0 {
		t.Errorf("received %s", m.Subject)
	}
	for _, name := range []string{"a", "", "a b"} {
		if c, err := dial(name); err == nil {
			c.Close()
			t.Errorf("another connection of %q", name)
		}
	}
	testutil.Wait(t, "who was refused is counted", func() bool { refused, violations := s.Refused(); return refused == 3 && violations == 2 })
	conns[1].Close()
	testutil.Wait(t, "one that ended makes room", func() bool {
		c, err := dial("a")
		if err == nil {
			conns[1] = c
			t.Cleanup(c.Close)
		}
		return err == nil
	})
	other, err := dial("b")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s.DropRevoked(func(serial string) bool { return serial != "" }) // no client has a certificate
	if s.Drop("a"); s.conns["a"] != nil {
		t.Errorf("%d connections are left", len(s.conns["a"]))
	}
	testutil.Wait(t, "all of a name are dropped", func() bool { return !slices.ContainsFunc(conns, (*nats.Conn).IsConnected) })
	if !other.IsConnected() {
		t.Error("another name is dropped, too")
	}
}

// The server's own messages are logged for people who debug it; refused messages are counted, and logged once a minute; an authority that a client does
// not know is explained.
func TestLogged(t *testing.T) {
	var log bytes.Buffer
	s := &Server{opts: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	l := logged{s}
	l.Noticef("started %d", 1)
	l.Warnf("slow %d", 1)
	l.Debugf("detail")
	l.Tracef("detail")
	if log.Len() > 0 {
		t.Errorf("logged: %s", &log)
	}
	for range 3 {
		l.Errorf("Publish Violation %d", 5)
	}
	if _, violations := s.Refused(); violations != 3 || strings.Count(log.String(), "further ones are counted") != 1 {
		t.Errorf("%d are counted: %s", violations, &log)
	}
	s.warned.Add(-int64(time.Minute) - 1)
	if l.Errorf("Publish Violation %d", 5); strings.Count(log.String(), "further ones are counted") != 2 {
		t.Errorf("a minute later: %s", &log)
	}
	for format, explained := range map[string]bool{"one: %s": false, "remote error: tls: bad certificate: %s": true, "remote error: tls: unknown certificate authority: %s": true} {
		log.Reset()
		if l.Errorf(format, "x"); !strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "rejects this coordinator's certificate") != explained {
			t.Errorf("%s: %s", format, &log)
		}
	}
	log.Reset()
	if l.Fatalf("it ends %d", 5); !strings.Contains(log.String(), "level=ERROR msg=\"it ends 5\"") {
		t.Errorf("%s", &log)
	}
}

// Connections with a revoked certificate are ended, with all others of the same name.
func TestDropRevoked(t *testing.T) {
	s, err := Serve(Options{Listen: "127.0.0.1:0", Store: t.TempDir(), Message: bus.DefaultMessage, Agents: 8, Name: "one", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	conns := map[string]*nats.Conn{}
	for _, name := range []string{"a", "b"} {
		if conns[name], err = nats.Connect("nats://"+s.Address(), nats.UserInfo(name, ""), nats.NoReconnect()); err != nil {
			t.Fatal(err)
		}
		defer conns[name].Close()
	}
	s.mu.Lock()
	s.conns["a"][0].serial, s.conns["b"][0].serial = "1", "2"
	s.mu.Unlock()
	s.DropRevoked(func(serial string) bool { return serial == "1" })
	testutil.Wait(t, "its connection is ended", func() bool { return !conns["a"].IsConnected() })
	if !conns["b"].IsConnected() {
		t.Error("another's connection is ended, too")
	}
}

// Port 0 is any free one; what is no port is refused.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]int{"h:0": natsserver.RANDOM_PORT, "h:4222": 4222, ":1": 1, "[::1]:65535": 65535} {
		if host, port, err := split(address); err != nil || port != want || (host == "") != strings.HasPrefix(address, ":") {
			t.Errorf("%s: %q, %d, %v", address, host, port, err)
		}
	}
	for _, o := range []Options{{Listen: "h"}, {Listen: "h:x"}, {Listen: "127.0.0.1:0", Cluster: "h"}, {Listen: "127.0.0.1:0", Cluster: "h:x"}} {
		if s, err := Serve(o); err == nil {
			s.Close()
			t.Errorf("%+v is served", o)
		}
	}
}
