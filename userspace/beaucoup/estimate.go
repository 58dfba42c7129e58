package beaucoup

import "github.com/xdpmon/xdpmon/userspace/beaucoup/compile"

// estimator computes the report of one snapshot.
type estimator struct {
	*config
	counts    []uint64
	alive     int
	evicted   uint64
	changes   uint64
	trouble   []string
	offset    int64               // added to the packets' clock gives ns since 1970
	queries   []*compile.Compiled // of the window: running ones, and removed ones with events
	names     map[uint64]string   // by their hash
	effective map[*compile.Compiled]compile.Collector
	marks     map[*compile.Compiled]uint64
	active    map[*compile.Compiled]bool
	events    []tagged
	have      map[*compile.Compiled][65]int // number of collectors by coupons, of queries with alerts
	last      []Alert
	counted   []total  // collectors that have alerted
	earlier   []*total // ... in earlier windows
	vectors   []vector
	spans     []spanned // of a merged snapshot
}

// vector is an exported collector, with its coupons.
type vector struct {
	query     *compile.Compiled
	effective compile.Collector
	key       compile.Words
	coupons   uint64
	start     int64
}

// take converts the events of a window to alerts and exported collectors.
func (i *estimator) take() (alerts []Alert, vectors []vector) {
	type name struct {
		query string
		key   compile.Words
	}
	at, held := map[name]int{}, map[name]int{}
	for k := range i.events {
		e := &i.events[k]
		c, n := e.query, name{e.query.Text(), e.Key}
		if i.export {
			start := int64(e.Time) - int64(e.Age)
			if h, ok := held[n]; ok && vectors[h].start+int64(c.Window) >= int64(e.Time) {
				vectors[h].coupons |= e.Coupons
			} else {
				held[n] = len(vectors)
				vectors = append(vectors, vector{c, e.effective, e.Key, e.Coupons, start})
			}
		}
		if e.Alert == 0 {
			continue
		}
		if a, ok := at[n]; ok {
			alerts[a].Times++
			continue
		}
		at[n] = len(alerts)
		alerts = append(alerts, i.alert(e))
	}
	return alerts, vectors
}

func (i *estimator) alert(e *tagged) Alert {
	c := e.query
	a := Alert{Query: c, Key: e.Key, Time: int64(e.Time), Age: int64(e.Age), Times: 1, Text: c.Key.Name(e.Key, i.names)}
	a.Draws = e.effective.Draws()
	return a
}
