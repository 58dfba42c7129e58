package coordinator

import (
	"maps"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// Why a message of an agent is refused.
const (
	malformed = "malformed" // it cannot be decoded, or its snapshot cannot
	foreign   = "foreign"   // it does not match the plan: another measurement, algorithm, geometry or seed
	replayed  = "replayed"  // it is of an earlier incarnation of the agent, or of a window that was received before
	oversized = "oversized"
	flood     = "flood"    // more than limits.rate, or than fits its mailbox
	stranger  = "stranger" // its sender has sent no hello, or limits.agents is reached
	untimely  = "untimely" // its window is too old, or in the future
)

// Refusals lists the reasons.
var Refusals = []string{malformed, foreign, replayed, oversized, flood, stranger, untimely}

// agent is the state of one agent.
type agent struct {
	name         string
	incarnation  uint64
	incarnations []uint64 // earlier ones, the latest last
	received     uint64   // number of the last batch received without a gap
	answered     uint64   // value of received in the last answer
	used         uint64
	oldest       uint64
	latest       uint64 // number of the last batch, as the agent reports it
	open         []*batch
	software     string
	plan         uint64 // revision of the plan that the agent has
	clock        bus.Clock
	ahead        int64 // its wall clock less the coordinator's, ns
	own          uint64
	findings     uint64            // number of its last message of findings
	declined     map[string]string // measurements that it cannot run, with the reason

	first, hello time.Time
	replied      time.Time
	silent       bool

	saved   uint64 // value of used in the last saved state
	due     bool   // an answer has to be sent
	reason  string // of the last refusal, until it is sent
	refused map[string]uint64
	again   uint64 // batches received twice, as after a loss
	lost    uint64 // batches that were never received
	late    uint64 // windows received after the answer of their period
	skewed  uint64 // windows that were shifted by more than a hundredth of their length
	windows uint64

	numbers map[source]uint64 // number of the last message of each instance
	midway  bool              // its first hello was in the middle of its incarnation: earlier messages are unknown
	missed  uint64            // messages that were lost
	waiting []bus.Message     // queued for it
	sent    uint64            // messages sent to this incarnation in this term
}

// source is an instance of an algorithm on an agent.
type source struct{ instance, algorithm string }

// batch is a received batch with windows that are not yet used.
type batch struct {
	number uint64
	parts  int
}

func newAgent(name string, now time.Time) *agent {
	return &agent{name: name, first: now, hello: now, refused: map[string]uint64{}, oldest: 1, numbers: map[source]uint64{}}
}

// maxIncarnations is how many ended incarnations of an agent are stored.
const maxIncarnations = 16

// begin starts another incarnation: messages of the earlier one that are on their way will be refused.
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

// settle advances used to the first batch with an open window.
func (a *agent) settle() {
	for len(a.open) > 0 && a.open[0].parts == 0 {
		a.used = a.open[0].number
		a.open = a.open[1:]
	}
}

// Known is the state of an agent, for /healthz.
type Known struct {
	Name     string            `json:"name"`
	State    string            `json:"state"` // fresh, or silent
	Software string            `json:"version"`
	Hello    float64           `json:"heard_age_seconds"`
	Ahead    float64           `json:"clock_offset_seconds"` // of its wall clock
	Error    float64           `json:"clock_error_seconds"`  // 0 before the first measurement
	Plan     bool              `json:"plan_taken"`
	Declined map[string]string `json:"declined,omitempty"`
	Windows  uint64            `json:"windows"`
	Lost     uint64            `json:"lost_batches"`
	Own      uint64            `json:"lost_windows"` // on the agent, as it reports them
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
