// Package verdict holds no code but tests of what a chain does to packets: drops, ECN marks, and who sees a packet first.
package verdict
