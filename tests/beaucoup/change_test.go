package beaucoup

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// changeable is what a running instance of beaucoup can do.
type changeable interface {
	algo.Instance
	Update([]compile.Query) error
}

const stays = "stays: count distinct dst by src > 300 in 10m"

// One hundred exchanges of the other queries while packets arrive: every packet is counted, the query that stays alerts for
// every key as it would alone, and nothing that no key has done is reported.
func TestChangesUnderLoad(t *testing.T) {
	const keys, changes = 100, 100
	selection := selected(t, map[string]string{"queries": stays + "; first: count distinct sport by dport > 5000 in 10m"})
	objects, instances, err := session.Objects(session.Config{Algorithms: []session.Selected{selection}, Seed: 5}, true)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := loader.Load(objects, loader.Options{Replay: true, Fixed: true, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	set, err := inst.Set(beaucoup.Name)
	if err != nil {
		t.Fatal(err)
	}
	running := instances[0].(changeable)
	if err := running.Bind(set); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() { done <- keepChanging(running, changes, stop) }()
	fed := feedUntil(t, inst, &scans{keys: keys, each: 2000, gap: 1000}, done)
	close(stop)
	bank, err := inst.Control().Flip()
	if err != nil {
		t.Fatal(err)
	}
	result, err := algo.Window(running, report.Window{End: traffic.Start + fed*1000}, bank)
	if err != nil {
		t.Fatal(err)
	}
	if result.Used != uint64(fed) {
		t.Errorf("%d packets were fed and %d counted", fed, result.Used)
	}
	if got := number(t, &result.Body, "query_changes"); got != changes {
		t.Errorf("%g changes, want %d", got, changes)
	}
	if n := column(t, &result.Body, "queries", "stays", "alerts"); n < keys-1 {
		t.Errorf("the query that stays alerted for %g of %d keys", n, keys)
	}
	if n := len(result.Body.Tables[0].Rows); n > keys {
		t.Errorf("%d alerts, but only %d keys have done anything", n, keys)
	}
}

// keepChanging exchanges the queries beside the one that stays.
func keepChanging(i changeable, changes int, stop chan struct{}) error {
	for n := range changes {
		// by few keys: 200,000 of them would fill the table, and what finds its place taken collects nothing, changes or not
		queries, err := compile.ParseQueries(fmt.Sprintf("%s; q%d: count distinct src by dst/16 > %d in 10m; r%d: count distinct src+dst by dport > 60000 in 1s",
			stays, n, 1000+n, n))
		if err != nil {
			return err
		}
		if err := i.Update(queries); err != nil {
			return err
		}
		select {
		case <-stop:
			return errors.New("packets ended before the changes")
		default:
		}
	}
	return nil
}

// feedUntil sends a model's packets, repeatedly with other destinations, until done has a value and the model has ended once.
func feedUntil(t *testing.T, inst *loader.Instance, m *scans, done chan error) (fed int64) {
	t.Helper()
	feed, err := replay.New(inst, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	changed, ended := false, false
	for !changed || !ended {
		src := traffic.Frames(&scans{keys: m.keys, each: m.each, gap: m.gap})
		for {
			var f packet.Frame
			if err := src.Next(&f); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if err := feed.Feed(&f); err != nil {
				t.Fatal(err)
			}
			fed++
		}
		ended = true
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			changed = true
		default:
		}
	}
	if err := feed.Flush(); err != nil {
		t.Fatal(err)
	}
	return fed
}
