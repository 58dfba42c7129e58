// Package verdict contains only tests of what a chain does to packets: drops, ECN marks, and the order of algorithms.
package verdict
