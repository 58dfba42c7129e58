package topverb

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/top/client"
)

// notices signals that it was written to.
type notices struct {
	once    sync.Once
	written chan string
}

func (n *notices) Write(p []byte) (int, error) {
	n.once.Do(func() { n.written <- string(p) })
	return len(p), nil
}

// A process that accepts connections and does not answer is named while it is waited for, and Ctrl-C ends that.
func TestNoAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	n := &notices{written: make(chan string, 1)}
	ended := make(chan error, 1)
	go func() { ended <- try(ctx, client.Socket(path), n) }()
	if text := <-n.written; !strings.Contains(text, path) || !strings.Contains(text, "Ctrl-C") {
		t.Errorf("%q", text)
	}
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "ended before "+path) {
		t.Error(err)
	}
}
