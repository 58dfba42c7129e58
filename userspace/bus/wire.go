// Package bus carries windows from agents to coordinators, and plans back. NATS transports the messages; this package numbers each of them
// and stores it until it was used, so that losses are counted, and no sender blocks on the network. An agent publishes batches, in order, on
// a subject with its name, and sends a hello periodically. The coordinator answers on the agent's other subject with the numbers of the last
// batch received and used. Batches that were not received are sent again from there on (go-back-N); used ones are dropped. The answer goes to
// the subject of the agent that the message's subject belongs to, never to a reply subject in a message, so that a sender cannot redirect
// answers. Package client is the agent's side, package server the NATS server inside a coordinator.
package bus

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// Version of the messages. Others are refused.
const Version = 2

// Limits of messages, in both directions.
const (
	MaxName         = 64
	MaxItems        = 256      // of a batch
	MaxMeasurements = 256      // of a plan
	DefaultMessage  = 1 << 20  // bytes
	MaxMessage      = 32 << 20 // maximum of a configuration
)

// Subjects: up and down, each with the agent's name as a token, in which = replaces dots.
const (
	upPrefix   = "xdpmon.up."
	downPrefix = "xdpmon.down."
	dataSuffix = ".data"
	hiSuffix   = ".hello"
	// UpAll is the subject that a coordinator subscribes to.
	UpAll = upPrefix + "*.*"
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// CheckName refuses invalid names of agents.
func CheckName(name string) error {
	if !nameForm.MatchString(name) || strings.Contains(name, "..") || strings.HasSuffix(name, ".") {
		return fmt.Errorf("name %q: 1 to %d letters, digits, dots, - and _", name, MaxName)
	}
	return nil
}

func token(name string) string { return strings.ReplaceAll(name, ".", "=") }

// DataSubject is the subject of an agent's windows.
func DataSubject(name string) string { return upPrefix + token(name) + dataSuffix }

// HelloSubject is the subject of an agent's hellos.
func HelloSubject(name string) string { return upPrefix + token(name) + hiSuffix }

// DownSubject is the subject of answers to an agent.
func DownSubject(name string) string { return downPrefix + token(name) }

// Kind of a message to a coordinator.
type Kind int

// Kinds of messages.
const (
	DataKind Kind = iota
	HelloKind
	FindingsKind
)

var kinds = map[string]Kind{dataSuffix: DataKind, hiSuffix: HelloKind, findingsSuffix: FindingsKind}

// Sender is the agent of a subject, and the kind of its messages; ok is false for other subjects.
func Sender(subject string) (name string, kind Kind, ok bool) {
	rest, up := strings.CutPrefix(subject, upPrefix)
	if !up {
		return "", 0, false
	}
	name, suffix, _ := strings.Cut(rest, ".")
	name = strings.ReplaceAll(name, "=", ".")
	kind, ok = kinds["."+suffix]
	return name, kind, ok && CheckName(name) == nil
}

// Batch is a message with windows and messages of an agent.
type Batch struct {
	Version     uint8  `cbor:"v"`
	Incarnation uint64 `cbor:"life"`   // drawn when the agent starts
	Number      uint64 `cbor:"number"` // from 1, without gaps except for lost batches
	Oldest      uint64 `cbor:"oldest"` // number of the oldest batch still stored: older ones that have not arrived are lost
	Clock       Clock  `cbor:"clock"`
	Items       []Item `cbor:"items"`
}

// Clock is the measured offset of an agent's clock to its coordinator's.
type Clock struct {
	Known  bool  `cbor:"known"`
	Offset int64 `cbor:"offset"` // the coordinator's clock (ns since 1970) less the clock of windows
	Error  int64 `cbor:"error"`  // bound of the offset's error, ns
}

// Item is a window or a message of an algorithm: one of Snapshot, Message and Begins is set.
type Item struct {
	Measurement string `cbor:"measurement"` // the rule
	Instance    string `cbor:"instance"`    // the rule, or the rule and one of its interfaces
	Algorithm   string `cbor:"algorithm"`
	Snapshot    []byte `cbor:"snapshot,omitempty"` // of a window
	Message     []byte `cbor:"message,omitempty"`  // to the algorithm's own coordinator
	Begins      bool   `cbor:"begins,omitempty"`   // the instance has no state from its coordinator
	Number      uint64 `cbor:"number,omitempty"`   // of a message of the instance: from 1 in every incarnation of the agent, without gaps but for what was lost
	Time        int64  `cbor:"time,omitempty"`     // when the message was sent, on the clock of windows
}

// Hello reports that an agent is alive, and measures its clock.
type Hello struct {
	Version     uint8             `cbor:"v"`
	Incarnation uint64            `cbor:"life"`
	Time        int64             `cbor:"time"`     // when it was sent, on the agent's clock
	Number      uint64            `cbor:"number"`   // the last batch so far
	Oldest      uint64            `cbor:"oldest"`   // as in Batch
	Revision    uint64            `cbor:"revision"` // of the plan that the agent has
	Lost        uint64            `cbor:"lost"`     // windows that never became part of a batch, or left the buffer unsent
	Software    string            `cbor:"software"`
	Wall        int64             `cbor:"wall"` // the agent's own wall clock less Time
	Clock       Clock             `cbor:"clock"`
	Refused     map[string]string `cbor:"refused,omitempty"` // measurements of the plan that the agent cannot run, with the reason
}

// Answer is a coordinator's message to an agent.
type Answer struct {
	Version     uint8     `cbor:"v"`
	Run         uint64    `cbor:"run"`            // drawn when the coordinator starts to lead
	Incarnation uint64    `cbor:"life"`           // of the agent that it is for
	Asked       int64     `cbor:"asked"`          // Hello.Time; 0: this answers no hello
	Time        int64     `cbor:"time"`           // the coordinator's clock
	Received    uint64    `cbor:"received"`       // number of the last batch received without a gap
	Used        uint64    `cbor:"used"`           // number of the last batch whose windows are all reported
	Plan        *Plan     `cbor:"plan,omitempty"` // if the agent has another revision
	Messages    []Message `cbor:"messages,omitempty"`
	Sent        uint64    `cbor:"told"`                // number of messages to this incarnation of the agent in this run, including these
	Complaint   string    `cbor:"complaint,omitempty"` // reason of the last refusal
}

// Message is a message of an algorithm's coordinator part to the algorithm.
type Message struct {
	Instance  string `cbor:"instance"`
	Algorithm string `cbor:"algorithm"`
	Data      []byte `cbor:"data"`
}

// Plan is the list of measurements that agents share.
type Plan struct {
	Revision     uint64        `cbor:"revision"`
	Measurements []Measurement `cbor:"measurements"`
}

// Measurement is a rule whose windows can be merged over all hosts.
type Measurement struct {
	Name       string   `cbor:"name"`
	WindowNS   int64    `cbor:"window_ns"`
	Seed       uint64   `cbor:"seed"`
	CRC        bool     `cbor:"crc,omitempty"`
	Decap      bool     `cbor:"decap,omitempty"`
	Algorithms []Chosen `cbor:"algorithms"`
}

// Chosen is an algorithm with all of its parameters as text.
type Chosen struct {
	Name   string            `cbor:"name"`
	Params map[string]string `cbor:"params"`
	// WindowNS is the length of its windows; 0: that of the measurement.
	WindowNS int64 `cbor:"window_ns,omitempty"`
}

// Find returns the measurement of a name.
func (p *Plan) Find(name string) (Measurement, bool) {
	if p != nil {
		for _, m := range p.Measurements {
			if m.Name == name {
				return m, true
			}
		}
	}
	return Measurement{}, false
}

// EncodePlan encodes a plan for a file.
func EncodePlan(p *Plan) ([]byte, error) {
	b, err := encoding.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	return b, nil
}

// DecodePlan decodes a plan from a file.
func DecodePlan(b []byte) (*Plan, error) {
	p, err := decode[Plan](b)
	return &p, err
}

// Errors of Decode.
var (
	ErrMalformed = errors.New("malformed message")
	ErrVersion   = errors.New("message of another version")
)

var (
	encoding = mode(cbor.CoreDetEncOptions().EncMode())
	decoding = mode(cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, MaxNestedLevels: 8,
		MaxMapPairs: 4096, MaxArrayElements: 4096, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive}.DecMode())
)

func mode[T any](m T, err error) T {
	if err != nil {
		panic("bus: " + err.Error()) // options that are constant
	}
	return m
}

// Encode writes a message.
func Encode[T Batch | Hello | Answer | Findings](m T) ([]byte, error) {
	b, err := encoding.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return b, nil
}

// DecodeBatch decodes a batch; malformed ones are refused.
func DecodeBatch(b []byte) (Batch, error) {
	m, err := decode[Batch](b)
	switch {
	case err != nil:
		return m, err
	case m.Version != Version:
		return m, fmt.Errorf("%w: %d, this one reads %d", ErrVersion, m.Version, Version)
	case m.Number == 0 || m.Oldest == 0 || m.Oldest > m.Number || len(m.Items) > MaxItems:
		return m, fmt.Errorf("%w: batch %d of %d items, the oldest is %d", ErrMalformed, m.Number, len(m.Items), m.Oldest)
	}
	for _, i := range m.Items {
		kinds := 0
		for _, there := range []bool{len(i.Snapshot) > 0, len(i.Message) > 0, i.Begins} {
			if there {
				kinds++
			}
		}
		if kinds != 1 || (i.Number == 0) != (len(i.Message) == 0) || len(i.Measurement) > MaxName || len(i.Instance) > 2*MaxName || len(i.Algorithm) > MaxName {
			return m, fmt.Errorf("%w: an item of %.80q", ErrMalformed, i.Instance)
		}
	}
	return m, nil
}

// DecodeHello reads a hello.
func DecodeHello(b []byte) (Hello, error) {
	m, err := decode[Hello](b)
	switch {
	case err != nil:
		return m, err
	case m.Version != Version:
		return m, fmt.Errorf("%w: %d, this one reads %d", ErrVersion, m.Version, Version)
	case m.Incarnation == 0 || m.Oldest > m.Number+1 || len(m.Refused) > MaxMeasurements || len(m.Software) > 128:
		return m, fmt.Errorf("%w: hello of incarnation %d, batches %d to %d", ErrMalformed, m.Incarnation, m.Oldest, m.Number)
	}
	return m, nil
}

// DecodeAnswer reads an answer.
func DecodeAnswer(b []byte) (Answer, error) {
	m, err := decode[Answer](b)
	switch {
	case err != nil:
		return m, err
	case m.Version != Version:
		return m, fmt.Errorf("%w: %d, this one reads %d", ErrVersion, m.Version, Version)
	case m.Used > m.Received || uint64(len(m.Messages)) > m.Sent || m.Plan != nil && len(m.Plan.Measurements) > MaxMeasurements:
		return m, fmt.Errorf("%w: %d of %d batches used", ErrMalformed, m.Used, m.Received)
	}
	return m, nil
}

func decode[T any](b []byte) (m T, err error) {
	if err := decoding.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return m, nil
}
