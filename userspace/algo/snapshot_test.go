package algo

import (
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// still is an instance with given answers.
type still struct {
	s   *snapshot.Snapshot
	err error
}

func (still) Configure(*ebpf.CollectionSpec) error { return nil }
func (still) Needs() maps.Need                     { return 0 }
func (still) Bind(*maps.Set) error                 { return nil }
func (i still) Read(report.Window, int) (*snapshot.Snapshot, error) {
	return i.s, i.err
}

// A live window's clock is that of the packets: plus the offset it is the time of day. A capture has the time of day already.
func TestReadRecordsTheClock(t *testing.T) {
	before := time.Now().UnixNano()
	live, err := Read(still{s: &snapshot.Snapshot{}}, report.Window{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	now := hostclock.Now() + live.Offset
	if after := time.Now().UnixNano(); now < before-int64(time.Second) || now > after+int64(time.Second) {
		t.Errorf("a packet of now arrived at %d, which is between %d and %d", now, before, after)
	}
	if s, err := Read(still{s: &snapshot.Snapshot{Head: snapshot.Head{Replay: true}}}, report.Window{}, 0); err != nil || s.Offset != 0 {
		t.Errorf("a capture's clock is off by %d, %v", s.Offset, err)
	}
	broken := errors.New("broken")
	if s, err := Read(still{err: broken}, report.Window{}, 0); s != nil || !errors.Is(err, broken) {
		t.Errorf("%v, %v", s, err)
	}
}
