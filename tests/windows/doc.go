// Package windows contains only tests of what happens between packets and userspace while traffic flows: banks that
// are flipped, chains that are exchanged, and all cores on one set of keys. Packets are counted where they are made
// (tests/mutator), and all counters must be equal to the number sent.
package windows
