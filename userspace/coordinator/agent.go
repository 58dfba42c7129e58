package coordinator

import (
	"maps"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// Why something that an agent has said is refused.
const (
	malformed = "malformed" // it is no message, or holds no snapshot
	foreign   = "foreign"   // it is not of the plan: another measurement, algorithm, geometry or seed
	replayed  = "replayed"  // an earlier life of the agent's, or a window that is there already
	oversized = "oversized"
	flood     = "flood"    // more than limits.rate, or than fits its mailbox
	stranger  = "stranger" // it has not said hello, or there is no room for more agents
	untimely  = "untimely" // a window of a time that is not now
)

// Refusals lists the reasons.
var Refusals = []string{malformed, foreign, replayed, oversized, flood, stranger, untimely}

// agent is what is known of one.
type agent struct {
	name     string
	life     uint64
	lives    []uint64 // before this one, the latest last
	received uint64   // all batches up to this one
	answered uint64   // ... as it was told
	used     uint64
	oldest   uint64
	latest   uint64 // number of the last batch, as it says
	open     []*batch
	software string
	plan     uint64 // revision that it has
	clock    bus.Clock
	ahead    int64 // its wall clock less the coordinator's, ns
	own      uint64
	findings uint64            // number of the last message of what it has found
	declined map[string]string // measurements that it cannot carry out

	first, heard time.Time
	replied      time.Time
	silent       bool

	saved   uint64 // used, as far as that outlives a restart
	behind  bool   // it must be told what was received
	reason  string // of the last refusal, until it was told
	refused map[string]uint64
	again   uint64 // batches that came twice, as after a loss
	lost    uint64 // batches that will not come
	late    uint64 // windows behind the answer
	skewed  uint64 // windows that were off by more than a hundredth
	windows uint64

	spoken  map[speaker]uint64 // number of the last message of each
	midway  bool               // it was met in the middle of its life: what it has said before is not known
	unheard uint64             // messages that are lost
	waiting []bus.Message      // to be told
	told    uint64             // messages, to this life in this run
}

// speaker is an instance of an algorithm on an agent.
type speaker struct{ instance, algorithm string }

// batch is one that was received, until everything of it was used.
type batch struct {
	number uint64
	parts  int
}

func newAgent(name string, now time.Time) *agent {
	return &agent{name: name, first: now, heard: now, refused: map[string]uint64{}, oldest: 1, spoken: map[speaker]uint64{}}
}

// keptLives is how many lives of an agent are known as over.
const keptLives = 16

// begin is another life: what the one before had on its way will not come.
func (a *agent) begin(life uint64) {
	if a.life != 0 {
		a.lives = append(a.lives, a.life)
		if len(a.lives) > keptLives {
			a.lives = a.lives[1:]
		}
		a.lost += a.latest - min(a.latest, a.received)
	}
	for who := range a.spoken {
		a.spoken[who] = 0
	}
	a.waiting, a.told = nil, 0
	a.findings = 0
	a.life, a.received, a.answered, a.used, a.saved, a.oldest, a.latest, a.open = life, 0, 0, 0, 0, 1, 0, nil
}

// gone reports whether a life is over.
func (a *agent) gone(life uint64) bool { return slices.Contains(a.lives, life) }

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
	Heard    float64           `json:"heard_age_seconds"`
	Ahead    float64           `json:"clock_offset_seconds"` // of its wall clock
	Error    float64           `json:"clock_error_seconds"`  // 0 where nothing is known yet
	Plan     bool              `json:"plan_taken"`
	Declined map[string]string `json:"declined,omitempty"`
	Windows  uint64            `json:"windows"`
	Lost     uint64            `json:"lost_batches"`
	Own      uint64            `json:"lost_windows"` // on the agent, as it says
	Late     uint64            `json:"late_windows"`
	Skewed   uint64            `json:"skewed_windows"`
	Unheard  uint64            `json:"lost_messages"` // of algorithms to their coordinators
	Again    uint64            `json:"repeated_batches"`
	Refused  map[string]uint64 `json:"refused,omitempty"`
}

func (a *agent) known(now time.Time, revision uint64) Known {
	k := Known{Name: a.name, State: "fresh", Software: a.software, Heard: now.Sub(a.heard).Seconds(), Plan: a.plan == revision, Declined: a.declined,
		Windows: a.windows, Lost: a.lost, Own: a.own, Late: a.late, Skewed: a.skewed, Unheard: a.unheard, Again: a.again, Refused: maps.Clone(a.refused)}
	if a.silent {
		k.State = "silent"
	}
	if a.clock.Known {
		k.Ahead, k.Error = float64(a.ahead)/1e9, float64(a.clock.Error)/1e9
	}
	return k
}
