package coordinator

import (
	"maps"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// Why a message of an agent is refused.
const (
	malformed = "malformed" // it is no message, or holds no snapshot
	foreign   = "foreign"   // it is not of the plan: another measurement, algorithm, geometry or seed
	replayed  = "replayed"  // an earlier incarnation of the agent's, or a window that is there already
	oversized = "oversized"
	flood     = "flood"    // more than limits.rate, or than fits its mailbox
	stranger  = "stranger" // it has sent no hello, or there is no room for more agents
	untimely  = "untimely" // a window of a time that is not now
)

// Refusals lists the reasons.
var Refusals = []string{malformed, foreign, replayed, oversized, flood, stranger, untimely}

// agent is what is known of one.
type agent struct {
	name         string
	incarnation  uint64
	incarnations []uint64 // before this one, the latest last
	received     uint64   // all batches up to this one
	answered     uint64   // ... as it was answered
	used         uint64
	oldest       uint64
	latest       uint64 // number of the last batch, as it says
	open         []*batch
	software     string
	plan         uint64 // revision that it has
	clock        bus.Clock
	ahead        int64 // its wall clock less the coordinator's, ns
	own          uint64
	findings     uint64            // number of the last message of what it has found
	declined     map[string]string // measurements that it cannot carry out

	first, hello time.Time
	replied      time.Time
	silent       bool

	saved   uint64 // used, as far as that outlives a restart
	due     bool   // an answer that confirms what was received
	reason  string // of the last refusal, until it was sent
	refused map[string]uint64
	again   uint64 // batches that came twice, as after a loss
	lost    uint64 // batches that will not come
	late    uint64 // windows after the answer
	skewed  uint64 // windows that were off by more than a hundredth
	windows uint64

	numbers map[source]uint64 // number of the last message of each
	midway  bool              // it was met in the middle of its incarnation: its earlier messages are not known
	missed  uint64            // messages that are lost
	waiting []bus.Message     // to be sent
	sent    uint64            // messages, to this incarnation in this run
}

// source is an instance of an algorithm on an agent.
type source struct{ instance, algorithm string }

// batch is one that was received, until everything of it was used.
type batch struct {
	number uint64
	parts  int
}

func newAgent(name string, now time.Time) *agent {
	return &agent{name: name, first: now, hello: now, refused: map[string]uint64{}, oldest: 1, numbers: map[source]uint64{}}
}

// maxIncarnations is how many incarnations of an agent are known as over.
const maxIncarnations = 16

// begin is another incarnation: what the earlier one had on its way will not arrive.
func (a *agent) begin(incarnation uint64) {
	if a.incarnation != 0 {
		a.incarnations = append(a.incarnations, a.incarnation)
		if len(a.incarnations) > maxIncarnations {
			a.incarnations = a.incarnations[1:]
		}
		a.lost += a.latest - min(a.latest, a.received)
	}
	for who := range a.numbers {
		a.numbers[who] = 0
	}
	a.waiting, a.sent = nil, 0
	a.findings = 0
	a.incarnation, a.received, a.answered, a.used, a.saved, a.oldest, a.latest, a.open = incarnation, 0, 0, 0, 0, 1, 0, nil
}

// ended reports whether an incarnation is over.
func (a *agent) ended(incarnation uint64) bool { return slices.Contains(a.incarnations, incarnation) }

// settle moves what was used up to the first batch of which something is open.
func (a *agent) settle() {
	for len(a.open) > 0 && a.open[0].parts == 0 {
		a.used = a.open[0].number
		a.open = a.open[1:]
	}
}

// Known says of an agent how it stands.
type Known struct {
	Name     string            `json:"name"`
	State    string            `json:"state"` // fresh, or silent
	Software string            `json:"version"`
	Hello    float64           `json:"heard_age_seconds"`
	Ahead    float64           `json:"clock_offset_seconds"` // of its wall clock
	Error    float64           `json:"clock_error_seconds"`  // 0 where nothing is known yet
	Plan     bool              `json:"plan_taken"`
	Declined map[string]string `json:"declined,omitempty"`
	Windows  uint64            `json:"windows"`
	Lost     uint64            `json:"lost_batches"`
	Own      uint64            `json:"lost_windows"` // on the agent, as it says
	Late     uint64            `json:"late_windows"`
	Skewed   uint64            `json:"skewed_windows"`
	Missed   uint64            `json:"lost_messages"` // of algorithms to their coordinators
	Again    uint64            `json:"repeated_batches"`
	Refused  map[string]uint64 `json:"refused,omitempty"`
}

func (a *agent) known(now time.Time, revision uint64) Known {
	k := Known{Name: a.name, State: "fresh", Software: a.software, Hello: now.Sub(a.hello).Seconds(), Plan: a.plan == revision, Declined: a.declined,
		Windows: a.windows, Lost: a.lost, Own: a.own, Late: a.late, Skewed: a.skewed, Missed: a.missed, Again: a.again, Refused: maps.Clone(a.refused)}
	if a.silent {
		k.State = "silent"
	}
	if a.clock.Known {
		k.Ahead, k.Error = float64(a.ahead)/1e9, float64(a.clock.Error)/1e9
	}
	return k
}
