package lean

import (
	"math"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// chance is the share p of segments that the fridge follows. With p=auto it goes with the load: few records are overwritten
// before their ACK comes, and a busy link reads its clock for few packets only.
type chance struct {
	auto     bool
	p        float64
	requests uint64 // of this bank at the last look
	at       int64  // time of it, ns
	array    *maps.Array
}

const (
	leastP = 1.0 / 1024
	// pressure is how many requests may come into the fridge while one of them waits for its ACK, in parts of the fridge.
	pressure = 0.5
	// typical is the delay that this is meant for, in seconds: most round trips are shorter.
	typical = 0.1
)

func newChance(v algo.Values) (*chance, error) {
	const allowed = "auto, or a share from 1/1024 to 1"
	if v.Text("p") == "auto" {
		return &chance{auto: true, p: 1}, nil
	}
	p, err := algo.ParseFloat(v.Text("p"))
	if err != nil || !(p >= leastP && p <= 1) {
		return nil, v.Error("p", allowed)
	}
	return &chance{p: p}, nil
}

// bind writes the first p.
func (c *chance) bind(set *maps.Set) (err error) {
	if c.array, err = set.Array("lean_lat_p"); err != nil {
		return err
	}
	return c.publish()
}

func (c *chance) publish() error {
	admit := uint64(math.Round(c.p * (1 << 16)))
	log := uint64(math.Round(-math.Log2(float64(admit)/(1<<16)) * logUnits))
	return c.array.Write(0, []uint64{log<<32 | admit})
}

// follow looks at how many requests have come in this bank so far. closed: the bank starts from 0 next time.
func (c *chance) follow(now int64, requests uint64, slots int, closed bool) error {
	came, passed := float64(requests-min(c.requests, requests)), float64(now-c.at)/1e9
	known := c.at != 0 && passed > 0
	c.requests, c.at = requests, now
	if closed {
		c.requests = 0
	}
	if !c.auto || !known {
		return nil
	}
	p := share(came/passed, slots)
	if p == c.p || p == 2*c.p && c.p < 1 && p < 1 { // a change costs a little: not for a factor of two upwards
		return nil
	}
	c.p = p
	return c.publish()
}

// share is the power of two that keeps the pressure for a rate of requests a second.
func share(rate float64, slots int) float64 {
	if rate <= 0 {
		return 1
	}
	most := pressure * float64(slots) / typical / rate
	return min(1, max(leastP, math.Exp2(math.Floor(math.Log2(most)))))
}
