// Package windows holds no code but tests of what happens between packets and userspace while traffic flows: banks that
// are flipped, chains that are exchanged, and all cores on one set of keys. Packets are counted where they are made
// (tests/mutator), and everything behind must come to the same number.
package windows
