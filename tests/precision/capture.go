package precision

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Capture is the stream of a capture's IPv4 packets, by 5-tuple. Aggregates of segments are left out: the baselines count
// them as one packet.
func Capture(path string) (*Stream, error) {
	source, err := capture.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	st, ranks, f := &Stream{taken: []packet.Frame{}}, map[heavy.Key]int32{}, packet.Frame{}
	for {
		if err := source.Next(&f); errors.Is(err, io.EOF) {
			st.count()
			return st, nil
		} else if err != nil {
			return nil, fmt.Errorf("read capture: %w", err)
		}
		st.take(&f, ranks)
	}
}

func (st *Stream) take(f *packet.Frame, ranks map[heavy.Key]int32) {
	var p packet.Packet
	packet.Decode(f, packet.DecodeOptions{}, &p)
	key, ok := Spec.Of(&p)
	if !ok || p.Segs != 1 {
		return
	}
	rank, known := ranks[key]
	if !known {
		rank = int32(len(st.Keys))
		ranks[key] = rank
		st.Keys = append(st.Keys, key)
	}
	st.Order = append(st.Order, rank)
	one := *f
	one.Data = slices.Clone(f.Data)
	st.taken = append(st.taken, one)
}
