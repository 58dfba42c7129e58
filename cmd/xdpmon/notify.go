package main

import (
	"net"
	"os"
	"time"
)

// notifyPatience with a service manager that does not read.
const notifyPatience = 100 * time.Millisecond

// notify tells the service manager, if there is one. daemon.SdNotify waits until it is read: one that is stopped would hold up everything, the end
// included. What is not read in time is not said.
func notify(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return // nobody to tell is no trouble
	}
	defer conn.Close()
	if conn.SetWriteDeadline(time.Now().Add(notifyPatience)) == nil {
		_, _ = conn.Write([]byte(state))
	}
}
