package manager

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A service manager that does not read blocks nothing; one that reads gets the states.
func TestNotify(t *testing.T) {
	Notify("READY=1") // there is none
	path := filepath.Join(t.TempDir(), "notify")
	t.Setenv("NOTIFY_SOCKET", path)
	Notify("READY=1") // the manager has ended
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	Notify("READY=1")
	buffer := make([]byte, 100)
	if n, err := manager.Read(buffer); err != nil || string(buffer[:n]) != "READY=1" {
		t.Errorf("read %q, %v", buffer[:n], err)
	}
	conn, err := net.Dial("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for err == nil {
		if err = conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)); err == nil {
			_, err = conn.Write([]byte("STATUS=x"))
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	Notify("STOPPING=1") // returns
}
