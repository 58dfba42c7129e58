// Package parser contains only tests: they run packets through the real entry programs, read back the packet header
// vector, and compare it with what userspace/packet makes of the same bytes, over captures, crafted
// packets with all their truncations, and mutations of both.
package parser
