// Command xdpmon measures delays, losses, reorderings, heavy flows, bursts and unfair users where the packets are.
//
//go:generate go run ./internal/genalgos -root ../.. -out algorithms_gen.go
package main

import "os"

func main() { os.Exit(run(osEnvironment())) }
