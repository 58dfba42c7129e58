// Package capture reads packet captures as a stream of frames: pcap (micro- and nanoseconds, both byte orders) and
// pcapng, plain or gzipped, from a file or from standard input.
//
// It reads the containers itself instead of through gopacket's pcapgo, whose pcapng reader has no way to reach a
// packet's flags (where the direction is), scales binary time resolutions wrongly, divides by zero on a hostile
// one, and reports a file that was cut inside a packet as a file that ended. The tests compare the two on
// everything that pcapgo reads correctly.
//
// A capture is evidence: whatever can be read is delivered, and what cannot is counted under a name (Skipped) or ends the stream
// with an error that has the position (ErrTruncated).
package capture
