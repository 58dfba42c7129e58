package coordinator

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// state is what a coordinator must know after a restart, or when another one takes over: how far everything was used, so that nothing is
// answered twice and what is lost is known.
type state struct {
	Agents  map[string]agentState `cbor:"agents"`
	Streams []streamState         `cbor:"streams"`
	Parts   []partState           `cbor:"parts"`
	Term    uint64                `cbor:"term"` // goes up with every state that is kept
}

// partState is what an algorithm's own part keeps. The store has it in pieces, beside the rest.
type partState struct {
	Measurement string `cbor:"measurement"`
	Algorithm   string `cbor:"algorithm"`
	Mark        uint64 `cbor:"mark"` // of what is measured: a part of another plan starts over
	Pieces      int    `cbor:"pieces"`
	data        []byte
}

// numberState is the last message received of an instance.
type numberState struct {
	Instance  string `cbor:"instance"`
	Algorithm string `cbor:"algorithm"`
	Number    uint64 `cbor:"number"`
}

type agentState struct {
	Incarnation  uint64        `cbor:"life"`
	Incarnations []uint64      `cbor:"lives"`
	Used         uint64        `cbor:"used"`
	Lost         uint64        `cbor:"lost"`
	Hello        int64         `cbor:"heard"`
	Spoken       []numberState `cbor:"spoken,omitempty"`
	Missed       uint64        `cbor:"unheard,omitempty"`
	Midway       bool          `cbor:"midway,omitempty"`
}

type streamState struct {
	Measurement string           `cbor:"measurement"`
	Set         string           `cbor:"set"`
	Algorithm   string           `cbor:"algorithm"`
	Closed      int64            `cbor:"closed"`
	Number      int              `cbor:"number"`
	Members     map[string]int64 `cbor:"members"`
}

func (s streamState) of() stream { return stream{s.Measurement, s.Set, s.Algorithm} }

func (s state) encode() ([]byte, error) {
	b, err := cbor.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	return b, nil
}

func decodeState(b []byte) (s state, err error) {
	if err := cbor.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read state: %w", err)
	}
	return s, nil
}
