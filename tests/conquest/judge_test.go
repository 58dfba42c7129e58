package conquest

import (
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// alphas are those of figure 5.10.
var alphas = []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3}

// TestAccuracy: 65,536 bytes of snapshots name the packets of contributing flows for every alpha of figure 5.10. The paper's reading is
// beside it, to see that it is read as in the paper: recall falls where a flow has to have much of the queue.
func TestAccuracy(t *testing.T) {
	testutil.NeedRoot(t)
	m, err := traffic.NewBursty(traffic.BurstyOptions{Packets: 200_000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := NewStream(m, Link{Rate: 10e9, Buffer: 8 << 20, Tau: 800_000})
	for _, c := range []struct {
		set               map[string]string
		precision, recall float64 // least
		highest           float64 // recall at alpha = 30 %, at most
	}{
		{map[string]string{"snapshots": "4", "columns": "1024"}, 0.94, 0.93, 1},
		{map[string]string{"snapshots": "8", "columns": "512"}, 0.98, 0.97, 1},
		{map[string]string{"snapshots": "4", "columns": "1024", "reading": "nearest"}, 0.94, 0.93, 1},
		{map[string]string{"snapshots": "4", "columns": "1024", "reading": "inner"}, 0.90, 0.45, 0.75},
		{map[string]string{"snapshots": "4", "columns": "1024", "reading": "outer"}, 0.90, 0.45, 0.75},
	} {
		answers, err := s.Ask(c.set, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range answers {
			if a.Departure != s.Truth[i].Departure || a.Delay != s.Truth[i].Delay {
				t.Fatalf("%v: packet %d left at %d after %d ns, the truth is %d after %d", c.set, i, a.Departure, a.Delay, s.Truth[i].Departure, s.Truth[i].Delay)
			}
		}
		for _, alpha := range alphas {
			score := s.Judge(answers, alpha, s.Said(c.set, alpha))
			t.Logf("%v, alpha %g: precision %.3f, recall %.3f of %d", c.set, alpha, score.Precision(), score.Recall(), score.True)
			if score.Precision() < c.precision || score.Recall() < c.recall {
				t.Errorf("%v, alpha %g: precision %.3f, recall %.3f: want %.2f and %.2f", c.set, alpha, score.Precision(), score.Recall(), c.precision, c.recall)
			}
			if alpha == 0.3 && score.Recall() > c.highest {
				t.Errorf("%v: recall %.3f at alpha = 30 %%: is this the paper's reading?", c.set, score.Recall())
			}
		}
	}
}

// TestDecision: what the data plane decides itself follows from its numbers.
func TestDecision(t *testing.T) {
	testutil.NeedRoot(t)
	m, err := traffic.NewBursty(traffic.BurstyOptions{Packets: 60_000, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	s := NewStream(m, Link{Rate: 10e9, Buffer: 8 << 20, Tau: 800_000})
	for _, set := range []map[string]string{{"alpha": "1/32"}, {"alpha": "1/32", "reading": "inner"}, {"alpha": "1/32", "reading": "nearest", "snapshots": "8"}} {
		answers, err := s.Ask(set, 1)
		if err != nil {
			t.Fatal(err)
		}
		differ, culprits := 0, 0
		names := s.Said(set, 1.0/32)
		for _, a := range answers {
			if a.Culprit {
				culprits++
			}
			if a.Culprit != names(a) {
				differ++ // fractions of bytes, by snapshot
			}
		}
		if differ*1000 > len(answers) || culprits == 0 || culprits == len(answers) {
			t.Errorf("%v: of %d answers %d accuse, %d of them or of the others against their own numbers", set, len(answers), culprits, differ)
		}
	}
}

// TestShareBounds: the share of a packet's flow is between the ends that are printed, whatever the reading and however many flows collide.
func TestShareBounds(t *testing.T) {
	testutil.NeedRoot(t)
	m, err := traffic.NewBursty(traffic.BurstyOptions{Packets: 60_000, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := NewStream(m, Link{Rate: 10e9, Buffer: 8 << 20, Tau: 200_000})
	for _, set := range []map[string]string{{"columns": "1024"}, {"columns": "1024", "snapshots": "16"}, {"columns": "64"}, {"columns": "1024", "interval": "8ms"}} {
		answers, err := s.Ask(set, 1)
		if err != nil {
			t.Fatal(err)
		}
		below, above, width := 0, 0, 0.0
		for i, a := range answers {
			share := s.Truth[i].Share()
			width += (a.High - a.Low) / float64(len(answers))
			if share < a.Low-1e-9 {
				below++
			}
			if share > a.High+1e-9 {
				above++
			}
		}
		t.Logf("%v: of %d shares %d are below their lower end, %d above the upper; mean width %.3f", set, len(answers), below, above, width)
		if 50*(below+above) > len(answers) {
			t.Errorf("%v: of %d shares %d are below their lower end, %d above the upper: 2 %% are allowed", set, len(answers), below, above)
		}
	}
}
