package coordinator

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// keyValue is the state that survives a restart, in JetStream's key-value store: seeds, used windows, and which of several coordinators
// leads. Each of three coordinators has a copy; two are enough for a quorum.
type keyValue struct {
	kv   jetstream.KeyValue
	name string // of this coordinator
	log  *slog.Logger
}

const (
	bucketName = "xdpmon"
	stateKey   = "state"
	leaderKey  = "leader"
	seedKey    = "seed."
)

// Times of a leader's lease. A leader that could not renew its lease for resign stops. Another coordinator takes over when it has seen no
// renewal for takeover; it observes a renewal later than the leader made it, so two never lead at once.
const (
	renew    = time.Second
	resign   = 3 * time.Second
	takeover = 5 * time.Second
	call     = 2 * time.Second // of one operation
	opening  = 2 * time.Minute // for a cluster to form
)

// openKeyValue waits until the store is available: in a cluster, when two of three servers are.
func openKeyValue(ctx context.Context, conn *nats.Conn, name string, replicas int, log *slog.Logger) (*keyValue, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("open the bus' store: %w", err)
	}
	deadline := time.Now().Add(opening)
	for logged := false; ; {
		kv, err := attempt(ctx, js, replicas)
		if err == nil {
			return &keyValue{kv, name, log}, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("open the bus' store: %w; of a cluster two of three are needed", err)
		}
		if !logged {
			log.Info("waiting for the bus' store", "error", err)
			logged = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func attempt(ctx context.Context, js jetstream.JetStream, replicas int) (jetstream.KeyValue, error) {
	one, cancel := context.WithTimeout(ctx, 2*call)
	defer cancel()
	kv, err := js.KeyValue(one, bucketName)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = js.CreateKeyValue(one, jetstream.KeyValueConfig{Bucket: bucketName, History: 1, Storage: jetstream.FileStorage, Replicas: replicas})
	}
	return kv, err
}

// seed returns the seed of a measurement, which the first coordinator has drawn.
func (k *keyValue) seed(ctx context.Context, measurement string) (uint64, error) {
	for range 5 {
		seed, err := k.trySeed(ctx, measurement)
		if err == nil {
			return seed, nil
		}
		k.log.Warn("read seed failed", "measurement", measurement, "error", err)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	return 0, fmt.Errorf("the seed of measurement %s cannot be stored", measurement)
}

func (k *keyValue) trySeed(ctx context.Context, measurement string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, call)
	defer cancel()
	drawn, err := draw()
	if err != nil {
		return 0, err
	}
	key := seedKey + measurement
	_, err = k.kv.Create(ctx, key, binary.LittleEndian.AppendUint64(nil, drawn))
	if err == nil {
		return drawn, nil
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return 0, err
	}
	e, err := k.kv.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	if len(e.Value()) != 8 {
		return 0, fmt.Errorf("a seed of %d bytes", len(e.Value()))
	}
	return binary.LittleEndian.Uint64(e.Value()), nil
}

func (k *keyValue) load(ctx context.Context) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*call)
	defer cancel()
	e, err := k.kv.Get(ctx, stateKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	var h header
	if err := cbor.Unmarshal(e.Value(), &h); err != nil {
		return state{}, fmt.Errorf("read state: %w", err)
	}
	data, err := k.pieces(ctx, stateKey, h.Term, h.Pieces)
	if err != nil {
		return state{}, err
	}
	s, err := decodeState(data)
	if err != nil {
		return state{}, err
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		if p.data, err = k.pieces(ctx, p.key(), h.Term, p.Pieces); err != nil {
			return state{}, err
		}
	}
	return s, nil
}

// header describes the pieces that the state is stored in.
type header struct {
	Term   uint64 `cbor:"term"`
	Pieces int    `cbor:"pieces"`
}

func (p partState) key() string { return fmt.Sprintf("part.%s.%s", p.Measurement, p.Algorithm) }

// piece is the key of the n-th piece. States alternate between two sets of keys, so that the pieces of one state are complete until
// the header names those of the next.
func piece(key string, term uint64, n int) string { return fmt.Sprintf("%s.%d.%d", key, term%2, n) }

func (k *keyValue) pieces(ctx context.Context, key string, term uint64, n int) (data []byte, err error) {
	for i := range n {
		e, err := k.kv.Get(ctx, piece(key, term, i))
		if err != nil {
			return nil, fmt.Errorf("read piece %d of %d of %s: %w", i, n, key, err)
		}
		data = append(data, e.Value()...)
	}
	return data, nil
}

func (k *keyValue) put(ctx context.Context, key string, term uint64, data []byte) (n int, err error) {
	for some := range slices.Chunk(data, pieceBytes) {
		if _, err := k.kv.Put(ctx, piece(key, term, n), some); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (k *keyValue) save(s state) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*call)
	defer cancel()
	for i := range s.Parts {
		p := &s.Parts[i]
		if p.Pieces, err = k.put(ctx, p.key(), s.Term, p.data); err != nil {
			return err
		}
	}
	data, err := s.encode()
	if err != nil {
		return err
	}
	h := header{Term: s.Term}
	if h.Pieces, err = k.put(ctx, stateKey, s.Term, data); err != nil {
		return err
	}
	text, err := cbor.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	_, err = k.kv.Put(ctx, stateKey, text)
	return err
}

// pieceBytes fits the smallest limits.message.
const pieceBytes = 48 << 10

// leader is the entry that names the leading coordinator.
type leader struct {
	Name string `cbor:"name"` // "": none
	Run  uint64 `cbor:"run"`
}

// campaign takes over leadership whenever it is free, and sends the number of the term, or 0 when the term ends.
func (k *keyValue) campaign(ctx context.Context, leads chan<- uint64) {
	var (
		run  uint64 // number of the running term; 0: this coordinator does not lead
		last = sighting{since: time.Now()}
	)
	for ctx.Err() == nil {
		if run != 0 {
			began := time.Now()
			next, err := k.claim(ctx, leader{k.name, run}, last.revision)
			switch {
			case err == nil:
				last.revision, last.since = next, began
			case ctx.Err() != nil:
			case errors.Is(err, jetstream.ErrKeyExists) || wrongRevision(err) || time.Since(last.since) > resign:
				run, last.since = 0, time.Now()
				send(ctx, leads, 0)
			}
		} else if e, err := k.get(ctx); err == nil {
			if e.revision != last.revision {
				last = sighting{e, time.Now()}
			}
			if began := time.Now(); last.free(k.name, began) {
				if term, err := draw(); err == nil {
					if next, err := k.claim(ctx, leader{k.name, term}, last.revision); err == nil {
						run, last.revision, last.since = term, next, began
						send(ctx, leads, run)
					}
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(renew / 2):
		}
	}
	if run != 0 { // release the lease, so that the next leader need not wait
		end, cancel := context.WithTimeout(context.Background(), call)
		defer cancel()
		_, _ = k.claim(end, leader{}, last.revision)
	}
}

// sighting is the leader's entry when last read, and since when it is unchanged.
type sighting struct {
	entry
	since time.Time
}

// free reports whether a coordinator may try to lead: there was no leader yet, the last one has resigned, it was this one, or its lease has expired.
func (s sighting) free(name string, now time.Time) bool {
	return s.revision == 0 || s.Name == "" || s.Name == name || now.Sub(s.since) > takeover
}

func send(ctx context.Context, ch chan<- uint64, v uint64) {
	select {
	case ch <- v:
	case <-ctx.Done():
	}
}

type entry struct {
	leader
	revision uint64
}

func (k *keyValue) get(ctx context.Context) (entry, error) {
	ctx, cancel := context.WithTimeout(ctx, call)
	defer cancel()
	e, err := k.kv.Get(ctx, leaderKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, err
	}
	var l leader
	if err := cbor.Unmarshal(e.Value(), &l); err != nil {
		return entry{}, err
	}
	return entry{l, e.Revision()}, nil
}

// claim writes the leader's entry, if it is unchanged since revision.
func (k *keyValue) claim(ctx context.Context, l leader, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, call)
	defer cancel()
	data, err := cbor.Marshal(l)
	if err != nil {
		return 0, err
	}
	if revision == 0 {
		return k.kv.Create(ctx, leaderKey, data)
	}
	return k.kv.Update(ctx, leaderKey, data, revision)
}

// wrongRevision reports whether another coordinator has written the entry.
func wrongRevision(err error) bool {
	api := (*jetstream.APIError)(nil)
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}
