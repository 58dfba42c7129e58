package coordinator

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/keys"
)

// cluster is external NATS servers with JetStream, which bind subjects to certificates as in docs/coordinator.md.
func (s *site) cluster(n int, agents ...string) (addresses []string) {
	s.t.Helper()
	users := []*server.User{{Username: "CN=central,OU=coordinator"}}
	for _, name := range agents {
		users = append(users, &server.User{Username: "CN=" + name + ",OU=agent", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{bus.DataSubject(name), bus.HelloSubject(name)}},
			Subscribe: &server.SubjectPermission{Allow: []string{bus.DownSubject(name)}},
		}})
	}
	at := ports(s.t, n)
	for i := range n {
		h, err := keys.Hold(s.files("nats"))
		if err != nil {
			s.t.Fatal(err)
		}
		o := &server.Options{ServerName: fmt.Sprintf("nats%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: s.t.TempDir(), TLS: true, TLSVerify: true, TLSMap: true, TLSConfig: h.Server(), TLSTimeout: 30, Users: users}
		if n > 1 {
			o.Cluster = server.ClusterOpts{Name: "theirs", Host: "127.0.0.1", PoolSize: 1}
			fmt.Sscanf(at[i], "127.0.0.1:%d", &o.Cluster.Port)
			for j := range n {
				if j != i {
					o.Routes = append(o.Routes, server.RoutesFromStr("nats-route://"+at[j])...)
				}
			}
		}
		one, err := server.NewServer(o)
		if err != nil {
			s.t.Fatal(err)
		}
		one.Start()
		s.t.Cleanup(func() { one.Shutdown(); one.WaitForShutdown() })
		if !one.ReadyForConnections(patience) {
			s.t.Fatal("the NATS server does not listen")
		}
		addresses = append(addresses, "tls://"+one.Addr().String())
	}
	return addresses
}

// A coordinator with an external cluster: agents' windows are answered, an agent can only send as itself, and a coordinator that
// restarts continues with the state in the cluster.
func TestExternal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.make(keys.Coordinator, "nats")
	s.make(keys.Coordinator, "central")
	s.make(keys.Agent, "one")
	s.external = s.cluster(3, "one")
	c := s.coordinator("central", "", "", 200)
	a := s.agent("one", s.external...)
	eventually(t, "an answer", func() bool { return a.Clock().Known })
	for range 3 {
		a.before(t)
		time.Sleep(200 * time.Millisecond)
	}
	eventually(t, "all windows", func() bool { return answered(c)+late(c) == a.sent })
	refused := make(chan error, 1)
	h, err := keys.Hold(s.files("one"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(s.external[0], nats.Secure(h.Client()), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Publish(bus.HelloSubject("other"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("an agent sends as another: %v", err)
	}
	c.end()
	next := s.coordinator("central", "", "", 200)
	a.before(t)
	eventually(t, "windows of both", func() bool { return answered(c, next)+late(c)+late(next) >= a.sent })
	if sum := answered(c, next); sum > a.sent || a.Health().Lost != 0 {
		t.Errorf("%d of %d windows, %+v", sum, a.sent, a.Health())
	}
}
