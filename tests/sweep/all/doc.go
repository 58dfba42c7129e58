// Package all registers every algorithm, for tests and benchmarks that run over all of them. The list is the one that
// cmd/xdpmon generates from the folders.
package all

//go:generate sh -c "go run github.com/xdpmon/xdpmon/cmd/xdpmon/internal/genalgos -root ../../.. -out /dev/stdout | sed 's/^package main$/package all/' >algorithms_gen.go"
