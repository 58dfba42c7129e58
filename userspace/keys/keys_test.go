package keys

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func folder(t *testing.T) Folder {
	t.Helper()
	f := Folder{Path: filepath.Join(t.TempDir(), "keys"), Now: time.Now}
	if err := errors.Join(f.Init(30), f.Make(Coordinator, "central", []string{"127.0.0.1"}, 30), f.Make(Agent, "host1", nil, 30)); err != nil {
		t.Fatal(err)
	}
	return f
}

func hold(t *testing.T, f Folder, name string) *Holder {
	t.Helper()
	h, err := Hold(Files{f.file("ca.crt"), f.file(name + ".crt"), f.file(name + ".key"), f.file("revoked.crl")})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// shake is a handshake of a client with a server, and the server's view of the client.
func shake(t *testing.T, client, server *Holder) (name string, err error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	config := client.Client()
	config.ServerName = "127.0.0.1"
	done := make(chan error, 1)
	go func() { c := tls.Client(a, config); err := c.Handshake(); done <- err; _, _ = c.Read(make([]byte, 1)) }()
	s := tls.Server(b, server.Server())
	err = s.Handshake()
	if e := <-done; e != nil || err != nil {
		return "", errors.Join(e, err)
	}
	state := s.ConnectionState()
	name, _, err = server.Peer(&state, Agent)
	return name, err
}

func TestTrust(t *testing.T) {
	f := folder(t)
	central, host := hold(t, f, "central"), hold(t, f, "host1")
	if name, err := shake(t, host, central); err != nil || name != "host1" {
		t.Fatalf("%q, %v", name, err)
	}
	if _, err := shake(t, central, central); !errors.Is(err, ErrRole) {
		t.Errorf("a coordinator acts as an agent: %v", err)
	}
	if _, err := shake(t, host, host); err == nil {
		t.Error("an agent serves as a coordinator")
	}
	if _, err := shake(t, hold(t, folder(t), "host1"), central); err == nil {
		t.Error("another authority's agent is let in")
	}
	before, _ := host.Until()
	if err := f.Renew("host1", 10); err != nil {
		t.Fatal(err)
	}
	if after, name := host.Until(); !after.Before(before) || name != "host1" {
		t.Errorf("what was renewed is not taken: %v", after)
	}
	for number := range int64(2) { // each list has the next number, from 1 on
		if number == 1 {
			if err := f.Revoke("host1"); err != nil {
				t.Fatal(err)
			}
		}
		ca, _, err := f.authority()
		if err != nil {
			t.Fatal(err)
		}
		if list, err := readList(f.file(revocations), ca); err != nil || list.Number.Int64() != number+1 {
			t.Errorf("revocation list %v: %v, want number %d", list, err, number+1)
		}
	}
	if err := central.Refresh(); err != nil {
		t.Fatal(err)
	}
	if _, err := shake(t, host, central); !errors.Is(err, ErrRevoked) {
		t.Errorf("a revoked agent: %v", err)
	}
	if err := errors.Join(f.Renew("host1", 10), f.Revoke("central")); err != nil {
		t.Fatal(err)
	}
	if _, err := shake(t, host, central); err == nil {
		t.Error("a revoked coordinator is believed")
	}
	all, err := f.List()
	if err != nil || len(all) != 3 || all[0].Role != "authority" || !all[1].Revoked || all[2].Revoked {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestFiles(t *testing.T) {
	f := folder(t)
	for name, want := range map[string]os.FileMode{"": 0o700, "ca.key": 0o600, "host1.key": 0o600, "central.key": 0o600} {
		if info, err := os.Stat(f.file(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if err := f.Make(Agent, "host1", nil, 1); !errors.Is(err, ErrThere) {
		t.Errorf("made twice: %v", err)
	}
	for _, name := range []string{"ca", "a b", "../x", ""} {
		if f.Make(Agent, name, nil, 1) == nil {
			t.Errorf("%q is a name", name)
		}
	}
	if f.Make(Coordinator, "c", nil, 1) == nil || f.Renew("ca", 1) == nil || f.Revoke("ca") == nil || f.Revoke("nobody") == nil {
		t.Error("what cannot be was done")
	}
	if err := os.Chmod(f.file("host1.key"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Hold(Files{f.file("ca.crt"), f.file("host1.crt"), f.file("host1.key"), ""}); err == nil {
		t.Error("a key that others can read is taken")
	}
	late := f
	late.Now = func() time.Time { return time.Now().Add(-40 * 24 * time.Hour) }
	if err := late.Make(Agent, "old", nil, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := shake(t, hold(t, f, "old"), hold(t, f, "central")); err == nil {
		t.Error("an expired certificate counts")
	}
	if err := os.Chmod(f.file("host1.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	host := hold(t, f, "host1")
	for _, c := range []struct {
		h        *Holder
		now      time.Duration
		contains string
	}{{hold(t, f, "old"), 0, "`xdpmon-coordinator keys renew old`"}, {host, 0, "expires on"}, {host, -100 * 24 * time.Hour, "clock"}, {host, 40 * 24 * time.Hour, "has expired"}} {
		if got := c.h.Trouble(time.Now().Add(c.now)); !strings.Contains(got, c.contains) {
			t.Errorf("%q, want %q", got, c.contains)
		}
	}
	if got := host.Trouble(host.pair.Leaf.NotBefore); got != "" && !strings.Contains(got, "expires on") {
		t.Error(got)
	}
	if _, err := Hold(Files{folder(t).file("ca.crt"), f.file("host1.crt"), f.file("host1.key"), ""}); err == nil {
		t.Error("a certificate of another authority is taken")
	}
}

// A folder without keys is reported as such.
func TestNoKeys(t *testing.T) {
	if list, err := (Folder{Path: t.TempDir()}).List(); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "list keys in") {
		t.Errorf("%v, %v", list, err)
	}
}

// A certificate that is not valid yet, has expired or soon will is trouble, from that second on; the remedy names whose it is.
func TestTroubleOfTimes(t *testing.T) {
	h := hold(t, folder(t), "host1")
	until, name := h.Until()
	c, err := h.certificate()
	if err != nil || name != "host1" {
		t.Fatalf("%s, %v", name, err)
	}
	from := c.Leaf.NotBefore
	for _, one := range []struct {
		now  time.Time
		want string
	}{{from.Add(-time.Second), "valid from"}, {from, ""}, {until.Add(-Soon), ""}, {until.Add(time.Nanosecond - Soon), "expires on"}, {until, "expires on"}, {until.Add(time.Second), "has expired"}} {
		got := h.Trouble(one.now)
		if (got == "") != (one.want == "") || !strings.Contains(got, one.want) || strings.Contains(one.want, "expire") && !strings.Contains(got, "keys renew host1") {
			t.Errorf("%v before the end: %q, want %q", until.Sub(one.now), got, one.want)
		}
	}
}
