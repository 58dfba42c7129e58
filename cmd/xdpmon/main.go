// Command xdpmon measures delays, losses, reorderings, heavy flows, bursts and unfair users where the packets are.
package main

import (
	"os"

	_ "github.com/xdpmon/xdpmon/userspace/all"
)

func main() { os.Exit(run(osEnvironment())) }
