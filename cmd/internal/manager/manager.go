// Package manager reports the state of the service to the service manager, if there is one.
package manager

import (
	"net"
	"os"
	"strings"
	"time"
)

// Timeouts for a service manager that does not read. READY is sent only once, and without it the manager stops the service.
const (
	notifyPatience = 100 * time.Millisecond
	readyPatience  = 5 * time.Second
)

// Notify sends a state. daemon.SdNotify would block until the manager reads, so a stopped manager would block the
// service, even its end. A state that is not read in time is dropped.
func Notify(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return // without a service manager there is nothing to notify
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
