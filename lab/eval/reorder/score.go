package reorder

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// score is what section 4.2 measures, and the share of packets that passed twice.
type score struct{ accuracy, wrong, sent, twice float64 }

// setting is a configuration; with c, only prefixes with a share above c times epsilon count as put out.
type setting struct {
	name       string
	definition int
	set        map[string]string
	c          []float64 // nil: whatever the program puts out
}

func (s setting) config() bytecode.Config {
	set := map[string]string{"definition": strconv.Itoa(s.definition), "epsilon": fmt.Sprint(epsilon[s.definition]),
		"Rshare": fmt.Sprint(epsilon[s.definition]), "top": "10000"}
	if s.c != nil {
		set["report"], set["c"] = "all", "0.001" // every prefix that saw anything; the rest is decided here
	}
	maps.Copy(set, s.set)
	return bytecode.Config{Algorithm: "reorder", Set: set}
}

// judge compares what was put out with the truth.
func (t *truth) judge(l report.Line, definition int, least float64) score {
	want, allowed := t.heavy(definition, beta), t.heavy(definition, alpha+1)
	found, wrong := 0, 0
	for _, row := range l.Report.Tables[0].Rows {
		name, _ := row[0].(string)
		if share, _ := report.Number(row[3]); share <= least {
			continue
		}
		if want[name] {
			found++
		}
		if !allowed[name] {
			wrong++
		}
	}
	return score{accuracy: float64(found) / float64(len(want)), wrong: float64(wrong) / float64(len(allowed)),
		sent: number(l, "reports_per_packet"), twice: number(l, "second_pass_share")}
}

func number(l report.Line, name string) float64 {
	i := slices.IndexFunc(l.Report.Values, func(v report.Value) bool { return v.Name == name })
	if i < 0 {
		return 0
	}
	f, _ := report.Number(l.Report.Values[i].Value)
	return f
}

// scores of one line: by c, or one.
func (s setting) scores(t *truth, l report.Line) (list []score) {
	if s.c == nil {
		return []score{t.judge(l, s.definition, -1)}
	}
	for _, c := range s.c {
		list = append(list, t.judge(l, s.definition, c*epsilon[s.definition]))
	}
	return list
}

// results are scores by chain, place in the chain, c and seed.
type results [][][][]score

// seeds of model and hashes; five, as in the paper.
func seeds(p *eval.Page) int { return eval.Pick(p, 5, 1) }

// run replays the model of every seed through chains of settings. A chain of one is what a figure is made of: in longer
// ones a packet has one second pass for all of them.
func run(ctx context.Context, p *eval.Page, chains [][]setting) (results, error) {
	n := seeds(p)
	all := make(results, len(chains))
	for i, chain := range chains {
		all[i] = make([][][]score, len(chain))
		for k, s := range chain {
			all[i][k] = make([][]score, max(len(s.c), 1))
			for c := range all[i][k] {
				all[i][k][c] = make([]score, n)
			}
		}
	}
	var lock sync.Mutex
	return all, bytecode.Parallel(ctx, n, func(ctx context.Context, seed int) error {
		t, err := model(p, uint64(seed)+1)
		if err != nil {
			return err
		}
		for i, chain := range chains {
			lines, err := t.replay(ctx, uint64(seed)+1, chain)
			if err != nil {
				return err
			}
			lock.Lock()
			for k, s := range chain {
				for c, score := range s.scores(t.truth, lines[k]) {
					all[i][k][c][seed] = score
				}
			}
			lock.Unlock()
		}
		p.Log("seed %d", seed+1)
		return nil
	})
}

func (t *trace) replay(ctx context.Context, seed uint64, chain []setting) ([]report.Line, error) {
	configs := make([]bytecode.Config, len(chain))
	for k, s := range chain {
		configs[k] = s.config()
	}
	return bytecode.Replay(ctx, t.source(), seed, configs)
}

// alone makes a chain of each setting.
func alone(list []setting) (chains [][]setting) {
	for _, s := range list {
		chains = append(chains, []setting{s})
	}
	return chains
}

// summary is a score over seeds.
type summary struct{ accuracy, wrong, sent, twice spread }

func summarize(list []score) summary {
	pick := func(f func(score) float64) spread {
		values := make([]float64, len(list))
		for i, s := range list {
			values[i] = f(s)
		}
		return spreadOf(values)
	}
	return summary{pick(func(s score) float64 { return s.accuracy }), pick(func(s score) float64 { return s.wrong }),
		pick(func(s score) float64 { return s.sent }), pick(func(s score) float64 { return s.twice })}
}

func (s summary) cells() []string {
	return []string{s.accuracy.String(), s.wrong.String(), s.sent.String(), s.twice.String()}
}
