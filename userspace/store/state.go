package store

import (
	"bytes"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// State survives a restart, like the windows: named values, by kind. The store does not interpret them.
var states = []byte("states-1") // the number is the version of the layout

// stateShare is the part of the file that a kind of state may fill: 1/8.
const stateShare = 8

// StateRoom is the maximum of bytes of names and values for SetState.
func (s *Store) StateRoom() int {
	_, most := s.bounds()
	return int(most / stateShare)
}

// SetState replaces all values of a kind, in one transaction. Only changes are written.
func (s *Store) SetState(kind string, values map[string][]byte) error {
	size := 0
	for name, v := range values {
		size += len(name) + len(v)
	}
	if room := s.StateRoom(); size > room {
		return fmt.Errorf("store %s: %d bytes exceed the %d that a store of this size reserves for it", kind, size, room)
	}
	err := s.db.Update(func(tx *bolt.Tx) error {
		all, err := tx.CreateBucketIfNotExists(states)
		if err != nil {
			return err
		}
		b, err := all.CreateBucketIfNotExists([]byte(kind))
		if err != nil {
			return err
		}
		return replace(b, values)
	})
	if err != nil {
		return fmt.Errorf("store %s: %w", kind, err)
	}
	return s.trim()
}

func replace(b *bolt.Bucket, values map[string][]byte) error {
	var absent [][]byte
	err := b.ForEach(func(k, _ []byte) error {
		if _, there := values[string(k)]; !there {
			absent = append(absent, bytes.Clone(k))
		}
		return nil
	})
	for _, k := range absent {
		err = errors.Join(err, b.Delete(k))
	}
	for name, v := range values {
		if k := []byte(name); !bytes.Equal(b.Get(k), v) {
			err = errors.Join(err, b.Put(k, v))
		}
	}
	return err
}

// State calls fn with all values of a kind; they are fn's own.
func (s *Store) State(kind string, fn func(name string, value []byte)) error {
	return s.db.View(func(tx *bolt.Tx) error {
		if all := tx.Bucket(states); all != nil {
			if b := all.Bucket([]byte(kind)); b != nil {
				return b.ForEach(func(k, v []byte) error {
					fn(string(k), bytes.Clone(v))
					return nil
				})
			}
		}
		return nil
	})
}

// walk reads every page of the state: a damaged one is found at the start.
func walk(tx *bolt.Tx) error {
	all := tx.Bucket(states)
	if all == nil {
		return nil
	}
	return all.ForEachBucket(func(kind []byte) error {
		return all.Bucket(kind).ForEach(func([]byte, []byte) error { return nil })
	})
}
