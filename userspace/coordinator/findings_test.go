package coordinator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/suspect"
)

// slowNetwork is a finding as an agent sends it.
func slowNetwork(t *testing.T, since time.Time) []byte {
	t.Helper()
	text, err := json.Marshal(finding.Finding{Kind: finding.SlowNetwork, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Prefix, Name: "10.2.0.0/16"}, Interface: "eth0",
		Since: since.UnixNano(), Windows: 2, State: finding.GoesOn})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// found sends findings of a host, with the number of a message.
func (h *host) found(number uint64, items ...[]byte) {
	h.b.t.Helper()
	data, err := bus.Encode(bus.Findings{Version: bus.Version, Incarnation: h.incarnation, Number: number, Items: items, Subjects: []string{"10.2.3.0/24"}})
	if err != nil {
		h.b.t.Fatal(err)
	}
	h.b.e.receive(h.name, message{bus.FindingsKind, data}, h.b.now)
}

// Findings of two hosts are one. Damaged or repeated ones, those of another incarnation or of a stranger are refused and change nothing.
func TestFindingsOfHosts(t *testing.T) {
	b := newBench(t, "")
	one, two := b.host("one"), b.host("two")
	one.hello()
	two.hello()
	open := func() []finding.Finding {
		b.e.found.Open(b.now)
		b.now = b.now.Add(6 * time.Second)
		return b.e.found.Open(b.now)
	}
	one.found(1, slowNetwork(t, b.now))
	two.found(1, slowNetwork(t, b.now), []byte(`{"kind":"nonsense"}`))
	if list := open(); len(list) != 1 || !slices.Equal(list[0].Hosts, []string{"one", "two"}) || list[0].Known != 2 {
		t.Fatalf("%+v", list)
	}
	one.found(1) // sent before: it is not over
	old := *two
	old.incarnation = 7
	old.found(9) // has not sent a hello
	b.host("three").found(1, slowNetwork(t, b.now))
	b.e.receive("one", message{bus.FindingsKind, []byte("no message")}, b.now)
	if list := open(); len(list) != 1 || len(list[0].Hosts) != 2 {
		t.Errorf("%+v", list)
	}
	for name, want := range map[string]map[string]uint64{"one": {replayed: 1, malformed: 1}, "two": {malformed: 1, stranger: 1}} {
		if got := b.agent(name).Refused; got[replayed] != want[replayed] || got[malformed] != want[malformed] || got[stranger] != want[stranger] {
			t.Errorf("%s: refused %v, want %v", name, got, want)
		}
	}
	one.found(2)
	if list := open(); len(list) != 1 || !slices.Equal(list[0].Hosts, []string{"two"}) || list[0].Known != 2 {
		t.Errorf("%+v", list)
	}
	two.incarnation++ // it starts again, and its numbers with it
	two.hello()
	two.found(1)
	if list := open(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// A finding of losses names the links that lossy flows of its network have in common; others name none.
func TestSuspectLinksOfFindings(t *testing.T) {
	b := newBench(t, "")
	var err error
	if b.e.paths, err = suspect.Read("paths", strings.NewReader("10.1.0.0/16 10.2.0.0/16 a core\n10.1.0.0/16 10.3.0.0/16 a spare\n10.4.0.0/16 10.2.0.0/16 b spare\n10.4.0.0/16 10.3.0.0/16 b far\n")); err != nil {
		t.Fatal(err)
	}
	at := func(text string) netip.Addr { return netip.MustParseAddr(text) }
	b.e.losses[stream{measurement: "m"}] = []algo.Loss{{Source: at("10.1.1.1"), Destination: at("10.2.2.2"), Lost: 900}, {Source: at("10.4.1.1"), Destination: at("10.3.2.2"), Lost: 900}}
	for name, c := range map[string]struct {
		kind    finding.Kind
		subject string
		want    string
	}{
		"after": {finding.LossAfter, "10.2.0.0/16", "core"}, "before": {finding.LossBefore, "10.4.1.0/24", "far"}, "a delay": {finding.SlowNetwork, "10.2.0.0/16", ""}, "nobody": {finding.LossAfter, "10.9.0.0/16", ""},
	} {
		links := b.e.suspectLinks(finding.Finding{Kind: c.kind, Subject: finding.Subject{Type: finding.Prefix, Name: c.subject}})
		if c.want == "" && len(links) != 0 || c.want != "" && (len(links) == 0 || links[0] != c.want) {
			t.Errorf("%s: %v, want %q first", name, links, c.want)
		}
	}
}

// Over real connections: agents find the same, the coordinator's webhook is called once when it starts, with both hosts, and once when it ends.
func TestFindingsArrive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.make(keys.Coordinator, "central")
	var mu sync.Mutex
	var emitted []finding.Finding
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var one struct{ Finding finding.Finding }
		if err := json.Unmarshal(text, &one); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		mu.Lock()
		defer mu.Unlock()
		emitted = append(emitted, one.Finding)
	}))
	defer receiver.Close()
	s.more = fmt.Sprintf("alerts: {webhook: %s}\n", receiver.URL)
	both, over := false, false // both agents are connected: on a busy machine one may need longer than the other waits for it; it has ended
	since := time.Now()
	s.found = func(string) ([][]byte, uint64, []string) {
		mu.Lock()
		defer mu.Unlock()
		if !both || over {
			return nil, 0, nil
		}
		return [][]byte{slowNetwork(t, since)}, 0, []string{"10.2.3.0/24"}
	}
	for _, name := range []string{"one", "two"} {
		s.make(keys.Agent, name)
	}
	c := s.coordinator("central", "127.0.0.1:0", "", 2000)
	for _, name := range []string{"one", "two"} {
		s.agent(name, "tls://"+c.address)
	}
	states := func() (list []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, f := range emitted {
			list = append(list, fmt.Sprintf("%s %s", f.State, f.Hosts))
		}
		return list
	}
	eventually(t, "agents", func() bool { return len(c.Health().Agents) == 2 })
	mu.Lock()
	both = true
	mu.Unlock()
	eventually(t, "a finding", func() bool { return len(states()) > 0 })
	if open := c.out.Open(); len(open) != 1 || len(open[0].Hosts) != 2 {
		t.Errorf("%+v", open)
	}
	mu.Lock()
	over = true
	mu.Unlock()
	eventually(t, "its end", func() bool { return len(states()) > 1 })
	if got := states(); !slices.Equal(got, []string{"begins [one two]", "ends [one two]"}) {
		t.Errorf("%q", got)
	}
}
