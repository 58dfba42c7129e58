package coordinator

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A hostile agent cannot fill the log; each agent and reason is logged once a minute, and the memory of that is bounded.
func TestRefusalsAreLoggedWithinBounds(t *testing.T) {
	var out bytes.Buffer
	r := newRefusals(slog.New(slog.NewTextHandler(&out, nil)))
	for range 1000 {
		r.log("one", malformed, errors.New("no such version"))
		r.log("one", flood, errRate)
	}
	text := out.String()
	if n := strings.Count(text, "level=WARN"); n != 2 || !strings.Contains(text, `agent=one reason=malformed error="no such version"`) {
		t.Errorf("%d warnings: %s", n, text)
	}
	now := time.Now()
	if r.first(refusal{"one", malformed}, now.Add(refusalEvery/2)) || !r.first(refusal{"one", malformed}, now.Add(2*refusalEvery)) {
		t.Error("not once a minute")
	}
	for i := range 2 * refusalsMost {
		r.log(fmt.Sprint("agent", i), stranger, errNoHello)
	}
	if len(r.logged) > refusalsMost {
		t.Errorf("%d entries", len(r.logged))
	}
	if !r.first(refusal{"new", stranger}, now.Add(4*refusalEvery)) {
		t.Error("old entries are not removed")
	}
}

// Counters never fall, also when an agent is forgotten.
func TestRefusalsOutliveTheirAgent(t *testing.T) {
	b := newBench(t, "")
	h := b.host("one")
	h.hello()
	b.e.receive("one", message{kind: 0, data: []byte("no batch")}, b.now)
	before := b.agent("one").Refused[malformed]
	b.now = b.now.Add(forgotten + time.Minute)
	b.tick()
	if b.e.agents["one"] != nil || before == 0 || b.e.refused[malformed] != before {
		t.Errorf("%d refused before, %v after", before, b.e.refused)
	}
}
