package coordinator

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Why a message of an agent is refused. Each refusal is counted by reason (xdpmon_coordinator_refused_messages_total, /healthz) and logged;
// refuse also answers its sender with the reason.
const (
	malformed = "malformed" // it cannot be decoded or merged, or is of another version of the protocol (engine, findings, parts)
	foreign   = "foreign"   // it does not match the plan: another measurement, algorithm, geometry or seed (engine, parts)
	replayed  = "replayed"  // it is of an earlier incarnation of the agent, or was received before (engine, findings, parts)
	oversized = "oversized" // more than limits.message (gate; with the server inside, the server refuses it first)
	flood     = "flood"     // more than limits.rate, or than fits its mailbox (gate, inbox), or too many instances (parts)
	stranger  = "stranger"  // its sender has sent no hello, or limits.agents is reached (gate, engine, findings)
	untimely  = "untimely"  // its window is too old, or in the future (engine, parts)
)

// Refusals lists the reasons.
var Refusals = []string{malformed, foreign, replayed, oversized, flood, stranger, untimely}

// refuse counts a refused message, and stores the reason for the answer to its sender.
func (e *engine) refuse(a *agent, reason string, err error) {
	a.refused[reason]++
	a.reason, a.due = fmt.Sprintf("%s: %.300s", reason, err), true
	e.refusals.log(a.name, reason, err)
}

// refuseUnknown counts a refused message of a sender that is no agent, and gets no answer.
func (e *engine) refuseUnknown(name, reason string, err error) {
	e.refused[reason]++
	e.refusals.log(name, reason, err)
}

// Errors of refusals that are decided without reading the message.
var (
	errNoHello  = errors.New("its sender has sent no hello to this coordinator")
	errAgents   = errors.New("limits.agents is reached")
	errTooLarge = errors.New("it is larger than limits.message")
	errRate     = errors.New("its sender exceeds limits.rate, or its mailbox is full")
)

// byGate are the errors of the gate's reasons.
var byGate = map[string]error{stranger: errAgents, oversized: errTooLarge, flood: errRate}

const (
	refusalEvery = time.Minute // a sender's refusals for one reason are logged at most so often: a hostile agent cannot fill the log
	refusalsMost = 4096        // senders and reasons remembered
)

// refusals logs refused messages, within bounds.
type refusals struct {
	to *slog.Logger

	mu     sync.Mutex
	logged map[refusal]time.Time
}

type refusal struct{ sender, reason string }

func newRefusals(to *slog.Logger) *refusals {
	return &refusals{to: to, logged: map[refusal]time.Time{}}
}

func (r *refusals) log(sender, reason string, err error) {
	if r.first(refusal{sender, reason}, time.Now()) {
		r.to.Warn("message refused; further ones for this reason are counted, and logged once a minute", "agent", sender, "reason", reason, "error", err)
		return
	}
	r.to.Debug("message refused", "agent", sender, "reason", reason, "error", err)
}

func (r *refusals) first(of refusal, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.logged[of]; ok && now.Sub(at) < refusalEvery {
		return false
	}
	if len(r.logged) >= refusalsMost {
		for key, at := range r.logged {
			if now.Sub(at) >= refusalEvery {
				delete(r.logged, key)
			}
		}
	}
	if len(r.logged) >= refusalsMost {
		return false
	}
	r.logged[of] = now
	return true
}
