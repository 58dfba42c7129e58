package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"
)

// The encoding: eight magic bytes, a version, two lengths, and one zstd frame of CBOR (RFC 8949), whose word arrays are typed arrays
// of little-endian 64-bit integers (RFC 8746). CBOR, because its fields have names, as snapshots that are stored for years need,
// without a schema for each algorithm; zstd, because most registers are zero or small; and both lengths first, so that data that are
// truncated, have trailing bytes or decompress to more are refused before they are read.
const (
	magic      = "xdpmsnap"
	version    = 1
	headLength = len(magic) + 4 + 4 + 4 // version, length of the CBOR, length of the frame
)

// MagicLength is the number of bytes that IsSnapshot needs.
const MagicLength = len(magic)

// MaxBytes bounds a snapshot, as CBOR: the words of everything that can be configured for some hundred CPUs fit.
const MaxBytes = 64 << 20

// Errors of Decode, in addition to ErrDamaged.
var (
	ErrFormat  = errors.New("not a snapshot of xdpmon")
	ErrVersion = errors.New("the snapshot was written by another version of xdpmon")
	ErrSize    = errors.New("the snapshot is too large")
)

// littleWords is the tag of RFC 8746 for arrays of 64-bit integers in little-endian order.
const littleWords = 71

// MarshalCBOR implements cbor.Marshaler.
func (w Words) MarshalCBOR() ([]byte, error) {
	b := make([]byte, 0, 8*len(w))
	for _, word := range w {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return encoding.Marshal(cbor.Tag{Number: littleWords, Content: b})
}

// UnmarshalCBOR implements cbor.Unmarshaler.
func (w *Words) UnmarshalCBOR(data []byte) error {
	var raw cbor.RawTag
	if err := decoding.Unmarshal(data, &raw); err != nil {
		return err
	}
	var b []byte
	if raw.Number != littleWords {
		return fmt.Errorf("words with tag %d", raw.Number)
	}
	if err := decoding.Unmarshal(raw.Content, &b); err != nil {
		return err
	}
	if len(b)%8 != 0 {
		return fmt.Errorf("words of %d bytes", len(b))
	}
	*w = make(Words, len(b)/8)
	for i := range *w {
		(*w)[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return nil
}

var (
	encoding = mode(cbor.CoreDetEncOptions().EncMode())
	decoding = mode(cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, MaxNestedLevels: 8,
		MaxMapPairs: 4096, MaxArrayElements: 1 << 20, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive}.DecMode())

	// One of each for the process: they keep their memory between snapshots and are safe for concurrent use.
	compressor = sync.OnceValue(func() *zstd.Encoder {
		return mode(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true)))
	})
	decompressor = sync.OnceValue(func() *zstd.Decoder {
		return mode(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBytes), zstd.WithDecoderMaxWindow(8<<20),
			zstd.WithDecodeAllCapLimit(true)))
	})
)

func mode[T any](m T, err error) T {
	if err != nil {
		panic("snapshot: " + err.Error()) // options that are constant
	}
	return m
}

// Encode writes a snapshot.
func (s *Snapshot) Encode() ([]byte, error) {
	tooLarge := func(n int) ([]byte, error) {
		return nil, fmt.Errorf("encode snapshot of %s: %w: %d bytes, at most %d", s.Algorithm, ErrSize, n, MaxBytes)
	}
	size := 0
	for _, w := range s.Words {
		size += 8 * len(w)
	}
	if size > MaxBytes {
		return tooLarge(size)
	}
	plain, err := encoding.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode snapshot of %s: %w", s.Algorithm, err)
	}
	if len(plain) > MaxBytes {
		return tooLarge(len(plain))
	}
	out := make([]byte, headLength, headLength+len(plain)/8)
	copy(out, magic)
	out = compressor().EncodeAll(plain, out)
	fields := out[len(magic):]
	binary.LittleEndian.PutUint32(fields, version)
	binary.LittleEndian.PutUint32(fields[4:], uint32(len(plain)))
	binary.LittleEndian.PutUint32(fields[8:], uint32(len(out)-headLength))
	return out, nil
}

// IsSnapshot reports whether these are the first bytes of a snapshot's file.
func IsSnapshot(b []byte) bool { return bytes.HasPrefix(b, []byte(magic)) }

// Decode decodes the result of Encode. Whatever the data, it needs at most a few times MaxBytes of memory. Whether the words
// match the algorithm is checked by the algorithm.
func Decode(data []byte) (*Snapshot, error) {
	plain, err := unpack(data)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{}
	if err := decoding.Unmarshal(plain, s); err != nil {
		return nil, fmt.Errorf("read snapshot: %w: %w", ErrDamaged, err)
	}
	if s.Parts < 1 || s.Window.End < s.Window.Start || s.WindowNS < 0 {
		return nil, fmt.Errorf("read snapshot of %q: %w: %d parts, from %d to %d ns", s.Algorithm, ErrDamaged, s.Parts, s.Window.Start, s.Window.End)
	}
	return s, nil
}

func unpack(data []byte) ([]byte, error) {
	if len(data) < headLength || !IsSnapshot(data) {
		return nil, fmt.Errorf("read snapshot: %w", ErrFormat)
	}
	fields, frame := data[len(magic):headLength], data[headLength:]
	if v := binary.LittleEndian.Uint32(fields); v != version {
		return nil, fmt.Errorf("read snapshot: %w: encoding %d, this one reads %d", ErrVersion, v, version)
	}
	length, packed := binary.LittleEndian.Uint32(fields[4:]), binary.LittleEndian.Uint32(fields[8:])
	if length > MaxBytes {
		return nil, fmt.Errorf("read snapshot: %w: %d bytes, at most %d", ErrSize, length, MaxBytes)
	}
	if have := uint64(len(frame)); have < uint64(packed) {
		return nil, fmt.Errorf("read snapshot: %w: truncated: %d bytes of %d", ErrDamaged, have, packed)
	} else if have > uint64(packed) {
		return nil, fmt.Errorf("read snapshot: %w: %d bytes after its end", ErrDamaged, have-uint64(packed))
	}
	var h zstd.Header
	if err := h.Decode(frame); err != nil || h.HasFCS && h.FrameContentSize != uint64(length) {
		return nil, fmt.Errorf("read snapshot: %w: its frame is not of the %d bytes that it claims", ErrDamaged, length)
	}
	plain, err := decompressor().DecodeAll(frame, make([]byte, 0, length)) // no more than that: WithDecodeAllCapLimit
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w: %w", ErrDamaged, err)
	}
	if len(plain) != int(length) {
		return nil, fmt.Errorf("read snapshot: %w: %d bytes, it claims %d", ErrDamaged, len(plain), length)
	}
	return plain, nil
}
