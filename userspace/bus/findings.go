package bus

import (
	"fmt"
)

// Limits of Findings: an agent sends its most severe findings, which fit well into one message.
const (
	MaxFindings    = 64
	MaxFindingSize = 4 << 10 // bytes of one
	MaxSubjects    = 256     // networks and hosts that an agent could judge
	MaxSubjectSize = 64
)

const findingsSuffix = ".findings"

// FindingsSubject is the subject of an agent's findings.
func FindingsSubject(name string) string { return upPrefix + token(name) + findingsSuffix }

// Findings are all active findings of an agent. They are sent when they change and periodically, so that a lost message is replaced by the next one
// and none needs to be repeated.
type Findings struct {
	Version     uint8    `cbor:"v"`
	Incarnation uint64   `cbor:"life"`               // of the agent, as in Hello
	Number      uint64   `cbor:"number"`             // rises from message to message
	Items       [][]byte `cbor:"items,omitempty"`    // package finding's JSON, the most severe first
	More        uint64   `cbor:"more,omitempty"`     // number of findings beyond the limits
	Subjects    []string `cbor:"subjects,omitempty"` // networks and hosts of its latest windows, so that a coordinator knows which agents could have the same finding
}

// DecodeFindings decodes findings; what an agent of this version cannot have sent is refused. Items are not decoded.
func DecodeFindings(b []byte) (Findings, error) {
	m, err := decode[Findings](b)
	switch {
	case err != nil:
		return m, err
	case m.Version != Version:
		return m, fmt.Errorf("%w: %d, this one reads %d", ErrVersion, m.Version, Version)
	case m.Incarnation == 0 || m.Number == 0 || len(m.Items) > MaxFindings || len(m.Subjects) > MaxSubjects:
		return m, fmt.Errorf("%w: %d findings and %d subjects of incarnation %d, number %d", ErrMalformed, len(m.Items), len(m.Subjects), m.Incarnation, m.Number)
	}
	for _, i := range m.Items {
		if len(i) > MaxFindingSize {
			return m, fmt.Errorf("%w: a finding of %d bytes", ErrMalformed, len(i))
		}
	}
	for _, s := range m.Subjects {
		if len(s) > MaxSubjectSize {
			return m, fmt.Errorf("%w: a subject of %d bytes", ErrMalformed, len(s))
		}
	}
	return m, nil
}
