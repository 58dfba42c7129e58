// Package queue tests what the start of transmission tells of a host's queues, on real packets.
package queue

import (
	"testing"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/tests/lab"
	"github.com/xdpmon/xdpmon/tests/queue/departures"
)

func TestMain(m *testing.M) { lab.Main(m) }

func load(t *testing.T, told bool) *loader.Instance {
	t.Helper()
	object, err := departures.Object(told)
	lab.NoError(t, err)
	inst, err := loader.Load([]loader.Object{object}, loader.Options{Seed: 7, Lazy: true})
	lab.NoError(t, err)
	t.Cleanup(func() { inst.Close() })
	return inst
}

func counts(t *testing.T, inst *loader.Instance) loader.Counts {
	t.Helper()
	bank, err := inst.Control().Flip()
	lab.NoError(t, err)
	c, err := inst.Counts(bank)
	lab.NoError(t, err)
	return c
}

func TestCarried(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	inst := load(t, true)
	a, err := attach.Attach(inst, lab.Near, attach.Options{Notice: t.Logf})
	lab.NoError(t, err)
	defer a.Close()
	lab.NoError(t, lab.SendUDP(lab.FarIP, 100))
	c := counts(t, inst)
	if q := c.Queue; q == nil || q.Carried != 100 || q.Sent != 100 || q.Missed != 0 {
		t.Errorf("%+v", q)
	}
}
