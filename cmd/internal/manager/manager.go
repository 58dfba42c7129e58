// Package manager tells the service manager how the service is, if there is one.
package manager

import (
	"net"
	"os"
	"strings"
	"time"
)

// Patience with a service manager that does not read. READY is said once, and without it the manager gives the service up.
const (
	notifyPatience = 100 * time.Millisecond
	readyPatience  = 5 * time.Second
)

// Notify tells it. daemon.SdNotify waits until it is read: one that is stopped would hold up everything, the end
// included. What is not read in time is not said.
func Notify(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return // nobody to tell is no trouble
	}
	defer conn.Close()
	patience := notifyPatience
	if strings.HasPrefix(state, "READY=") {
		patience = readyPatience
	}
	if conn.SetWriteDeadline(time.Now().Add(patience)) == nil {
		_, _ = conn.Write([]byte(state))
	}
}
