package links

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/isolated"
)

func TestMain(m *testing.M) { lab.Main(m) }

// until reads changes up to one that is wanted.
func until(t *testing.T, r *Reader, want Change) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
	defer cancel()
	for {
		list, _, err := r.Next(ctx)
		if err != nil {
			t.Fatalf("never: %+v: %v", want, err)
		}
		for _, c := range list {
			c.Index = 0
			if c == want {
				return
			}
		}
	}
}

// sockets are the netlink sockets of this process.
func sockets(t *testing.T) (n int) {
	t.Helper()
	netlink, err := os.ReadFile("/proc/thread-self/net/netlink")
	lab.NoError(t, err)
	paths, _ := filepath.Glob("/proc/self/fd/*")
	for _, path := range paths {
		if target, _ := os.Readlink(path); strings.HasPrefix(target, "socket:[") && strings.Contains(string(netlink), " "+strings.Trim(target, "socket:[]")) {
			n++
		}
	}
	return n
}

// Two readers share one subscription, each sees everything, and the last one ends it.
func TestShared(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	before := sockets(t)
	a, err := Open()
	lab.NoError(t, err)
	one := sockets(t) - before
	b, err := Open()
	lab.NoError(t, err)
	if n := sockets(t) - before; n != one || one < 1 {
		t.Errorf("%d sockets of one reader, %d of two", one, n)
	}
	lab.Sh(t, "ip link add %s type veth peer name xdpmon-b0", lab.Near)
	lab.Sh(t, "ip link set %s up", lab.Near)
	for _, r := range []*Reader{a, b} {
		until(t, r, Change{Name: lab.Near, Up: true})
	}
	if c, found, err := a.ByName(lab.Near); err != nil || !found || !c.Up {
		t.Errorf("%+v, %v, %v", c, found, err)
	}
	if _, found, err := a.ByName("xdpmon-none"); err != nil || found {
		t.Errorf("%v, %v", found, err)
	}
	a.Close()
	lab.Sh(t, "ip link del %s", lab.Near)
	until(t, b, Change{Name: lab.Near, Gone: true})
	b.Close()
	if n := sockets(t); n != before || len(sources) != 0 {
		t.Errorf("%d sockets and %d sources are left of %d", n, len(sources), before)
	}
}

// A reader that is busy for too long gets missed once, and blocks no other reader.
func TestMissed(t *testing.T) {
	r := &Reader{news: make(chan struct{}, 1)}
	for range most {
		r.take([]Change{{Index: 1}}, false)
	}
	if list, missed, err := r.Next(t.Context()); len(list) != most || missed || err != nil {
		t.Errorf("%d changes, %v, %v", len(list), missed, err)
	}
	for range most + 1 {
		r.take([]Change{{Index: 1}}, false)
	}
	if list, missed, err := r.Next(t.Context()); len(list) != 0 || !missed || err != nil {
		t.Errorf("%d changes, %v, %v", len(list), missed, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if list, missed, err := r.Next(ctx); len(list) != 0 || missed || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d changes, %v, %v", len(list), missed, err)
	}
}
