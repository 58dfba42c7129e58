// Package store stores finished windows on disk, for queries and the page. It is one bbolt file: a window is stored completely or
// not at all, however the process ended, and age and size are bounded.
package store

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// ErrBusy is returned by Open when another process has the file.
var ErrBusy = errors.New("the store is in use")

// Options of a store.
type Options struct {
	MaxAge   time.Duration // windows that ended longer ago are dropped
	MaxBytes int64         // of the file
	// Now is the clock that age is measured with; nil: time.Now.
	Now func() time.Time
	// Notice is called when an unreadable file is renamed.
	Notice func(format string, args ...any)
}

// Smallest and default bounds.
const (
	MinBytes      = 1 << 20
	DefaultBytes  = 256 << 20
	DefaultMaxAge = 7 * 24 * time.Hour
)

// Record is one window of one algorithm, as its JSON line.
type Record struct {
	End       time.Time
	Algorithm string
	// Whose window it is: report.Identity.
	Instance   string
	Interfaces []string
	Key        string
	Line       json.RawMessage
	Snapshot   []byte // encoded snapshot of the line's window; nil if snapshots are not stored
}

// Store is open until Close; it is safe for concurrent use.
type Store struct {
	db      *bolt.DB
	opts    Options    // complete
	mu      sync.Mutex // of its bounds
	dropped atomic.Uint64
	failed  atomic.Uint64
}

var windows = []byte("windows-1") // the number is the version of the layout: an older one is not read or changed

// lockWait is how long Open waits for another process to release the file.
const lockWait = 2 * time.Second

// Open opens or creates the file (0600) and its folder (0700). An unreadable file is renamed, with a notice, because failing to
// start for the sake of old windows would be worse.
func Open(path string, o Options) (*Store, error) {
	o.complete()
	if o.MaxBytes < MinBytes {
		return nil, fmt.Errorf("open store %s: %d bytes are too few: %d or more", path, o.MaxBytes, MinBytes)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	db, err := open(path)
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("open store %s: %w by another process (fuser %s)", path, ErrBusy, path)
	}
	if err != nil && !os.IsPermission(err) {
		aside := fmt.Sprintf("%s.unreadable-%d", path, o.Now().Unix())
		if e := os.Rename(path, aside); e != nil {
			return nil, fmt.Errorf("open store %s: %w", path, errors.Join(err, e))
		}
		o.Notice("the store %s is unreadable (%v): it is renamed to %s, and a new one is created", path, err, aside)
		db, err = open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	s := &Store{db: db, opts: o}
	if err := s.trim(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", path, err), db.Close())
	}
	return s, nil
}

func (o *Options) complete() {
	if o.MaxAge <= 0 {
		o.MaxAge = DefaultMaxAge
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Notice == nil {
		o.Notice = func(string, ...any) {}
	}
}

// open also checks every page, so that damage is found at the start and not days later.
func open(path string) (db *bolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a truncated file is mapped beyond its end
	defer func() {
		if r := recover(); r != nil { // bbolt panics on invalid pages
			if db != nil {
				_ = db.Close()
			}
			db, err = nil, fmt.Errorf("it is damaged: %v", r)
		}
	}()
	db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockWait})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(windows)
		if err != nil {
			return err
		}
		err = b.ForEach(func(k, v []byte) error {
			if len(k) != keyBytes || len(v) == 0 {
				return errors.New("a record has no key")
			}
			return nil
		})
		return errors.Join(err, walk(tx))
	})
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// Close ends the use of the file.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Limit sets other bounds; records beyond them are removed with the next Append.
func (s *Store) Limit(age time.Duration, bytes int64) {
	o := Options{MaxAge: age, MaxBytes: bytes}
	o.complete()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.MaxAge, s.opts.MaxBytes = o.MaxAge, max(o.MaxBytes, MinBytes)
}

func (s *Store) bounds() (age time.Duration, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts.MaxAge, s.opts.MaxBytes
}

// keyBytes: end of the window (ns since 1970), then a number that distinguishes windows of the same time. Keys sort by time.
const keyBytes = 16

func key(end time.Time, n uint64) []byte {
	k := binary.BigEndian.AppendUint64(make([]byte, 0, keyBytes), uint64(max(0, end.UnixNano())))
	return binary.BigEndian.AppendUint64(k, n)
}

// Append adds records in one transaction: all of them are on the disk when it returns, or none.
func (s *Store) Append(records ...Record) error {
	packed := make([][]byte, len(records))
	for i, r := range records {
		var err error
		if packed[i], err = pack(r); err != nil {
			return err
		}
	}
	err := s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(windows)
		for i, r := range records {
			n, err := b.NextSequence()
			if err != nil {
				return err
			}
			if err := b.Put(key(r.End, n), packed[i]); err != nil {
				return err
			}
		}
		return s.old(b)
	})
	if err != nil {
		s.failed.Add(uint64(len(records)))
		return fmt.Errorf("store %d windows: %w", len(records), err)
	}
	return s.trim()
}

// old drops records older than the configured age.
func (s *Store) old(b *bolt.Bucket) error {
	age, _ := s.bounds()
	limit := key(s.opts.Now().Add(-age), 0)
	c := b.Cursor()
	for k, _ := c.First(); k != nil && bytes.Compare(k, limit) < 0; k, _ = c.First() {
		if err := c.Delete(); err != nil {
			return err
		}
		s.dropped.Add(1)
	}
	return nil
}

// fill is the share of the file that records may fill before the oldest are removed: pages that are half empty and a transaction's
// copies take the rest.
const fill = 0.6

// trim drops the oldest records, a sixteenth at a time, until the rest fits.
func (s *Store) trim() error {
	_, most := s.bounds()
	for s.used() > int64(fill*float64(most)) {
		err := s.db.Update(func(tx *bolt.Tx) error {
			b := tx.Bucket(windows)
			c := b.Cursor()
			for n := b.Stats().KeyN/16 + 1; n > 0; n-- {
				if k, _ := c.First(); k == nil {
					return nil
				}
				if err := c.Delete(); err != nil {
					return err
				}
				s.dropped.Add(1)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("remove old windows from the store: %w", err)
		}
		if s.empty() {
			return nil
		}
	}
	return nil
}

func (s *Store) empty() bool {
	empty := true
	_ = s.db.View(func(tx *bolt.Tx) error {
		k, _ := tx.Bucket(windows).Cursor().First()
		empty = k == nil
		return nil
	})
	return empty
}

// used is the size of the pages that hold something.
func (s *Store) used() (n int64) {
	_ = s.db.View(func(tx *bolt.Tx) error {
		st := s.db.Stats()
		n = tx.Size() - int64(st.FreePageN+st.PendingPageN)*int64(s.db.Info().PageSize)
		return nil
	})
	return n
}

// Versions of a record's packing. Those with a snapshot have it compressed already. Before 0.1.0 a record had one name for instance and
// interface.
const (
	oneName             = 1
	oneNameWithSnapshot = 2
	version             = 3
	withSnapshot        = 4
)

// writers are reused: each needs more than a megabyte, and the windows of all algorithms arrive together.
var writers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is one of gzip's
	return z
}}

// pack writes a record: version, lengths and names, the snapshot and its length if there is one, then the line, compressed.
func pack(r Record) ([]byte, error) {
	whose := strings.Join(append([]string{r.Key, r.Instance}, r.Interfaces...), nameEnd)
	if len(r.Algorithm) > 255 || len(whose) > 65535 {
		return nil, fmt.Errorf("store a window of %.40q on %.40q: the names are too long", r.Algorithm, r.Key)
	}
	var b bytes.Buffer
	b.WriteByte(map[bool]byte{false: version, true: withSnapshot}[r.Snapshot != nil])
	b.WriteByte(byte(len(r.Algorithm)))
	b.WriteString(r.Algorithm)
	b.Write(binary.BigEndian.AppendUint16(nil, uint16(len(whose))))
	b.WriteString(whose)
	if r.Snapshot != nil {
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(r.Snapshot))))
		b.Write(r.Snapshot)
	}
	z := writers.Get().(*gzip.Writer)
	defer writers.Put(z)
	z.Reset(&b)
	if _, err := z.Write(r.Line); err != nil {
		return nil, fmt.Errorf("store a window: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("store a window: %w", err)
	}
	return b.Bytes(), nil
}

// nameEnd separates names; the kernel allows it in none.
const nameEnd = "\x00"

// named reads the names of a record.
func (r *Record) named(version byte, text string) bool {
	if version == oneName || version == oneNameWithSnapshot {
		r.Key = text
		instance, each, found := strings.Cut(text, "/")
		if r.Instance = instance; found {
			r.Interfaces = []string{each}
		}
		return true
	}
	names := strings.Split(text, nameEnd)
	if len(names) < 2 {
		return false
	}
	r.Key, r.Instance, r.Interfaces = names[0], names[1], names[2:]
	return true
}

var errRecord = errors.New("a record makes no sense")

// names reads the head of a record; rest is its line, compressed. The snapshot is a part of v.
func names(v []byte) (r Record, rest []byte, err error) {
	if len(v) < 2 || v[0] < oneName || v[0] > withSnapshot || len(v) < 4+int(v[1]) {
		return r, nil, errRecord
	}
	n := 2 + int(v[1])
	r.Algorithm = string(v[2:n])
	m := n + 2 + int(binary.BigEndian.Uint16(v[n:]))
	if len(v) < m || !r.named(v[0], string(v[n+2:m])) {
		return r, nil, errRecord
	}
	if rest = v[m:]; v[0] == version || v[0] == oneName {
		return r, rest, nil
	}
	if len(rest) < 4 || uint64(len(rest)-4) < uint64(binary.BigEndian.Uint32(rest)) {
		return r, nil, errRecord
	}
	end := 4 + int(binary.BigEndian.Uint32(rest))
	r.Snapshot = rest[4:end:end]
	return r, rest[end:], nil
}

// largestLine bounds the decompressed size of a record.
const largestLine = 64 << 20

func unpack(k, v []byte) (Record, error) {
	r, rest, err := names(v)
	if err != nil {
		return r, err
	}
	r.End = time.Unix(0, int64(binary.BigEndian.Uint64(k))).UTC()
	r.Line, err = inflate(rest)
	return r, err
}

// readers are reused: each needs about 40 kB, and a query of a week reads hundreds of records.
var readers = sync.Pool{New: func() any { return &gzip.Reader{} }}

// inflate decompresses a line. gzip ends with the length, which is used only as a hint of what to allocate.
func inflate(packed []byte) ([]byte, error) {
	z := readers.Get().(*gzip.Reader)
	defer readers.Put(z)
	if err := z.Reset(bytes.NewReader(packed)); err != nil || len(packed) < 4 {
		return nil, errRecord
	}
	length := int64(binary.LittleEndian.Uint32(packed[len(packed)-4:]))
	b := bytes.NewBuffer(make([]byte, 0, min(length, 1<<20)+bytes.MinRead))
	_, err := b.ReadFrom(io.LimitReader(z, largestLine))
	return b.Bytes(), err
}

// Query chooses records; zero fields choose all.
type Query struct {
	From, To  time.Time // of the window's end; To is not included
	Algorithm string
	Except    string // not of this algorithm
	Instance  string
	Key       string // report.Identity.Key
	Interface string // one of those that were measured
	Limit     int    // 0: no limit
	Newest    bool   // the newest first
	Snapshots bool   // those that have one only, with it
}

// chooses reports whether a query selects a record. Interface may also be a key (tenants/vnet0), which was its name before
// 0.1.0; that ends with 0.2.0.
func (q Query) chooses(r Record) bool {
	return (q.Algorithm == "" || q.Algorithm == r.Algorithm) && (q.Except == "" || q.Except != r.Algorithm) && (q.Instance == "" || q.Instance == r.Instance) && (q.Key == "" || q.Key == r.Key) &&
		(q.Interface == "" || slices.Contains(r.Interfaces, q.Interface) || q.Interface == r.Key) && (!q.Snapshots || r.Snapshot != nil)
}

// Each calls fn with the records that a query chooses, in order of time, until fn returns an error. A record that cannot be read
// is passed over and counted.
func (s *Store) Each(q Query, fn func(Record) error) error {
	return s.db.View(func(tx *bolt.Tx) error {
		return q.walk(tx.Bucket(windows).Cursor(), 0, fn, func() { s.failed.Add(1) })
	})
}

// Sample is Each with only the first record of every step of Unix time, the oldest first: a week is read without looking at every window of it.
// It is of use where the query chooses the windows of one algorithm and instance.
func (s *Store) Sample(q Query, step time.Duration, fn func(Record) error) error {
	q.Newest = false
	return s.db.View(func(tx *bolt.Tx) error {
		return q.walk(tx.Bucket(windows).Cursor(), step, fn, func() { s.failed.Add(1) })
	})
}

// cursor iterates over records by key; bbolt's is one.
type cursor interface {
	First() (k, v []byte)
	Last() (k, v []byte)
	Next() (k, v []byte)
	Prev() (k, v []byte)
	Seek(key []byte) (k, v []byte)
}

// walk calls fn with the chosen records; step 0 is every record. bad is called for unreadable records (may be nil).
func (q Query) walk(c cursor, step time.Duration, fn func(Record) error, bad func()) error {
	k, v, next := q.start(c)
	for found := 0; k != nil && q.inside(k) && (q.Limit == 0 || found < q.Limit); {
		r, chosen, err := q.take(k, v)
		if err != nil && bad != nil {
			bad()
		}
		if !chosen || err != nil {
			k, v = next()
			continue
		}
		found++
		if err := fn(r); err != nil {
			return err
		}
		if step <= 0 {
			k, v = next()
			continue
		}
		at := r.End.UnixNano()
		k, v = c.Seek(key(time.Unix(0, at-at%int64(step)+int64(step)), 0))
	}
	return nil
}

// take reads a record, if it is selected.
func (q Query) take(k, v []byte) (r Record, chosen bool, err error) {
	head, _, err := names(v)
	if err != nil || !q.chooses(head) {
		return head, false, err
	}
	if r, err = unpack(k, v); err != nil {
		return r, true, err
	}
	if q.Snapshots {
		r.Snapshot = bytes.Clone(r.Snapshot)
	} else {
		r.Snapshot = nil
	}
	return r, true, nil
}

// start is the first record in the query's direction, and the function that advances.
func (q Query) start(c cursor) (k, v []byte, next func() (k, v []byte)) {
	switch {
	case !q.Newest && q.From.IsZero():
		k, v = c.First()
		return k, v, c.Next
	case !q.Newest:
		k, v = c.Seek(key(q.From, 0))
		return k, v, c.Next
	case q.To.IsZero():
		k, v = c.Last()
		return k, v, c.Prev
	}
	if k, _ = c.Seek(key(q.To, 0)); k == nil {
		k, v = c.Last()
		return k, v, c.Prev
	}
	k, v = c.Prev()
	return k, v, c.Prev
}

func (q Query) inside(k []byte) bool {
	if q.Newest {
		return q.From.IsZero() || bytes.Compare(k, key(q.From, 0)) >= 0
	}
	return q.To.IsZero() || bytes.Compare(k, key(q.To, 0)) < 0
}

// Dropped is the number of records deleted by age or size since the store was opened.
func (s *Store) Dropped() uint64 { return s.dropped.Load() }

// Stats is the state of a store.
type Stats struct {
	Records        int
	Bytes          int64  // of the file
	Dropped        uint64 // records deleted by age or size since it was opened
	Failed         uint64 // records that could not be written or read
	Oldest, Newest time.Time
}

// Stats scans the store's pages.
func (s *Store) Stats() (Stats, error) {
	st := Stats{Dropped: s.dropped.Load(), Failed: s.failed.Load()}
	err := s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(windows)
		st.Records, st.Bytes = b.Stats().KeyN, tx.Size()
		if k, _ := b.Cursor().First(); k != nil {
			st.Oldest = time.Unix(0, int64(binary.BigEndian.Uint64(k))).UTC()
		}
		if k, _ := b.Cursor().Last(); k != nil {
			st.Newest = time.Unix(0, int64(binary.BigEndian.Uint64(k))).UTC()
		}
		return nil
	})
	return st, err
}
