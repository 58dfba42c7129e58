package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"slices"
	"testing"

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
