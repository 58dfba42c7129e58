package session

import (
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/capture"
)

type halfRead struct{ capture.Source }

func (halfRead) Progress() (read, total int64) { return 50, 100 }

// Progress tells packets a second since the start.
func TestProgress(t *testing.T) {
	var got []Progress
	r := &replayer{progress: func(p Progress) { got = append(got, p) }, source: halfRead{}, packets: 1000, started: time.Now().Add(-10 * time.Second)}
	r.report()
	if len(got) != 1 {
		t.Fatalf("told %d times", len(got))
	}
	p := got[0]
	if p.Packets != 1000 || p.Bytes != 50 || p.TotalBytes != 100 || p.Elapsed < 10*time.Second || p.Rate*p.Elapsed.Seconds() < 999.9 || p.Rate*p.Elapsed.Seconds() > 1000.1 {
		t.Errorf("%+v", p)
	}
	r.progress = nil
	r.report()
}
