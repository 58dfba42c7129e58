// Package cause judges for whom a connection waits: the receiver, the path or the server.
package cause

import "math"

// Kind of a wait, as enum waits_kind numbers them.
type Kind int

// Window: a receiver's window is closed. Ack: an ACK is late. Handshake: one of its legs. Answer: the first segment after a request.
const (
	Window Kind = iota
	Ack
	Handshake
	Answer
	Kinds
)

var kindNames = [Kinds]string{"window", "ack", "handshake", "answer"}

func (k Kind) String() string { return kindNames[k] }

// Role is an end of a connection.
type Role int

// Client opens the connection.
const (
	Client Role = iota
	Server
	Roles
)

// Wait is what was waited for an end in a window, ns; High is NaN where no bound is known.
type Wait struct {
	Number        float64
	NS, Low, High float64
}

// Plus adds up waits.
func (w Wait) Plus(o Wait) Wait {
	return Wait{w.Number + o.Number, w.NS + o.NS, w.Low + o.Low, w.High + o.High}
}

// split divides waits at ns each: the part of the path, and what is longer. ns is known to within tick.
func (w Wait) split(ns float64) (path, rest Wait) {
	if w.Number == 0 {
		return path, rest
	}
	each := min(w.Number*ns, w.NS)
	path = Wait{w.Number, each, max(0, min(each, w.Low)-w.Number*tick), min(w.High, each+w.Number*tick)}
	rest = Wait{w.Number, w.NS - each, max(0, w.Low-each-w.Number*tick), max(0, w.High-each+w.Number*tick)}
	if math.IsNaN(w.High) {
		path.High = w.High
	}
	return path, rest
}

// Connection is what is known of one in a window.
type Connection struct {
	Waits [Kinds][Roles]Wait // by the end that was waited for
	Legs  [Roles]float64     // delay of the handshake on that end's side, ns; NaN: not seen
}

// Cause is for whom a connection waits.
type Cause string

// Undecided: nobody saw the handshake, so that ACKs or answers may be late because of the path.
const (
	Receiver  Cause = "receiver"
	Path      Cause = "path"
	Slow      Cause = "server"
	Undecided Cause = "undecided"
)

// Verdict is the cause for which a connection has waited longest.
type Verdict struct {
	Cause Cause
	End   Role // that was waited for
	Wait
}

// tick is how exactly a leg is known, ns.
const tick = 1 << 14

// Judge adds the waits up by cause. A leg of the handshake is what the path and the kernel of its end take; only what an ACK or an answer takes
// longer is the receiver's or the server's.
func (c *Connection) Judge() Verdict {
	var best Verdict
	consider := func(cause Cause, end Role, w Wait) {
		if w.Number > 0 && w.NS > best.NS {
			best = Verdict{cause, end, w}
		}
	}
	for end := range Roles {
		late, shut, leg := c.Waits[Ack][end], c.Waits[Window][end], c.Legs[end]
		answers := Wait{}
		if end == Server {
			answers = c.Waits[Answer][Server]
		}
		path := c.Waits[Handshake][end]
		if math.IsNaN(leg) {
			consider(Receiver, end, shut)
			consider(Path, end, path)
			consider(Undecided, end, late.Plus(answers))
			continue
		}
		lateThere, lateHere := late.split(leg)
		answersThere, answersHere := answers.split(leg)
		consider(Receiver, end, shut.Plus(lateHere))
		consider(Slow, end, answersHere)
		consider(Path, end, path.Plus(lateThere).Plus(answersThere))
	}
	return best
}
