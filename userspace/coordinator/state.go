package coordinator

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// state is what a coordinator needs after a restart, or to take over from another one: the position up to which each agent's batches and
// each stream were used, so that no window is reported twice and losses are counted.
type state struct {
	Agents  map[string]agentState `cbor:"agents"`
	Streams []streamState         `cbor:"streams"`
	Parts   []partState           `cbor:"parts"`
	Term    uint64                `cbor:"term"` // increases with every saved state
}

// partState is the checkpoint of an algorithm's part. It is stored in pieces of its own.
type partState struct {
	Measurement string `cbor:"measurement"`
	Algorithm   string `cbor:"algorithm"`
	Mark        uint64 `cbor:"mark"` // hash of the measurement: with another one the part starts over
	Pieces      int    `cbor:"pieces"`
	data        []byte
}

// numberState is the number of the last message received from an instance.
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
	Messengers   []numberState `cbor:"spoken,omitempty"`
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
