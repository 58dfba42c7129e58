package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// talkative sends given messages, and records received ones.
type talkative struct {
	jealous
	list  [][]byte
	heard []string
	fail  error
}

func (k *talkative) Send(int64) ([][]byte, error) { return k.list, k.fail }

func (k *talkative) Receive(data []byte) error {
	k.heard = append(k.heard, string(data))
	if len(data) == 0 {
		return errors.New("nothing")
	}
	return nil
}

// An algorithm's messages are passed on, within bounds; those beyond are counted with the next message, and a beginning is first.
func TestSend(t *testing.T) {
	var published, logged []string
	k := &talkative{}
	r := &runner{cfg: Config{Notice: func(format string, args ...any) { logged = append(logged, fmt.Sprintf(format, args...)) }, Publish: func(s Message) {
		published = append(published, fmt.Sprintf("%s at %d: begins %v, %d lost, %d bytes", s.Algorithm, s.Time, s.Begins, s.Lost, len(s.Data)))
	}}}
	s := r.messenger(memberOf("k", k))
	for n, c := range []struct {
		list [][]byte
		want []string
	}{
		{nil, []string{"k at 0: begins true, 0 lost, 0 bytes"}},
		{[][]byte{make([]byte, 1), {}, make([]byte, algo.MaxMessage+1), make([]byte, algo.MaxMessage)}, []string{"k at 1: begins false, 0 lost, 1 bytes", "k at 1: begins false, 2 lost, 32768 bytes"}},
		{make([][]byte, 1), nil},
		{[][]byte{{1}}, []string{"k at 3: begins false, 1 lost, 1 bytes"}},
	} {
		published, k.list = nil, c.list
		if err := s.send(int64(n)); err != nil || strings.Join(published, "; ") != strings.Join(c.want, "; ") {
			t.Errorf("time %d: %q, %v; want %q", n, published, err, c.want)
		}
	}
	published, k.list = nil, nil
	for range algo.MaxMessages + 3 {
		k.list = append(k.list, []byte{1})
	}
	if err := s.send(9); err != nil || len(published) != algo.MaxMessages || s.lost != 3 {
		t.Errorf("%d messages, %d lost, %v", len(published), s.lost, err)
	}
	k.fail = errors.New("broken")
	if err := s.send(9); !errors.Is(err, k.fail) {
		t.Errorf("%v", err)
	}
	s.deliver([]byte("x"))
	if s.deliver(nil); len(k.heard) != 2 || len(logged) != 1 || logged[0] != "k refuses its coordinator's settings: nothing" {
		t.Errorf("received %q, logged %q", k.heard, logged)
	}
	for n := range maxReceived + 1 {
		if s.receive([]byte("y")); s.missed.Load() != (n == maxReceived) {
			t.Errorf("%d messages wait, one is missed: %v", n+1, s.missed.Load())
		}
	}
	if k := r.messenger(memberOf("mute", &jealous{})); k != nil || k.send(1) != nil || k.received() != nil {
		t.Error("one without messages")
	}
}
