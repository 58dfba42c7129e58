package prom

import (
	"errors"
	"io"
	"log"
	"net"
	"os"
	"testing"
	"time"
)

// An idle client is disconnected when the server closes.
func TestCloseLetsClientsGo(t *testing.T) {
	s, err := Serve("127.0.0.1:0", Handler(NewStore(time.Now), log.New(io.Discard, "", 0)), log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(3 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server is closed, and its connection is open")
	}
}
