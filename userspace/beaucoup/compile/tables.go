package compile

import (
	"errors"
	"fmt"
	"time"

	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/maps"
)

// Tables are the program's two halves of rules; one word selects the half that packets use.
type Tables struct {
	active, Attributes, coupons, queries *maps.Array
	Half                                 uint32
}

// NewTables finds the tables of a loaded program.
func NewTables(set *maps.Set) (*Tables, error) {
	t := &Tables{}
	for name, a := range map[string]**maps.Array{"beaucoup_active": &t.active, "beaucoup_attributes": &t.Attributes,
		"beaucoup_coupons": &t.coupons, "beaucoup_queries": &t.queries} {
		array, err := set.Array(name)
		if err != nil {
			return nil, err
		}
		*a = array
	}
	return t, nil
}

// Install exchanges the queries atomically: it writes the half that is not in use, then the word, and waits for running programs,
// so that at the next exchange no program reads the half that is written.
func (t *Tables) Install(p *Program, seed, epoch uint64) error {
	half := t.Half ^ 1
	for i := range p.Attributes {
		if err := put(t.Attributes, half*MaxAttributes+uint32(i), p.attributeRow(i, seed, epoch)); err != nil {
			return err
		}
	}
	for step, coupon := range p.coupons() {
		if err := put(t.coupons, half*couponSteps+uint32(step), coupon); err != nil {
			return err
		}
	}
	for i := range p.Queries {
		c := &p.Queries[i]
		if err := put(t.queries, half*MaxQueries+uint32(c.ID), p.queryRow(c, seed, epoch)); err != nil {
			return err
		}
	}
	if err := put(t.active, 0, half|p.activeBits()); err != nil {
		return err
	}
	t.Half = half
	return await()
}

// activeBits is the part of the word for packets: the number of attributes, and whether packets must be numbered.
func (p *Program) activeBits() uint32 {
	bits := uint32(len(p.Attributes)) << 8
	for _, a := range p.Attributes {
		if a.Mask[WordPacket] != 0 {
			bits |= 1 << 16
		}
	}
	if p.tables > 1 {
		bits |= p.firstOf(1)<<17 | p.firstOf(2)<<22
	}
	return bits
}

// await returns when no running program has read the old word.
func await() error {
	b, err := maps.NewBarrier()
	if err != nil {
		return err
	}
	return errors.Join(b.Wait(), b.Close())
}

func put[T any](a *maps.Array, key uint32, value T) error {
	return a.SetElement(key, &value)
}

func (p *Program) attributeRow(i int, seed, epoch uint64) bpf.BeaucoupBeaucoupAttribute {
	a := &p.Attributes[i]
	return bpf.BeaucoupBeaucoupAttribute{
		Mask: a.Mask, Salt: Salt(seed, epoch, "attribute", a.Definition()),
		FilterMask: a.filter.Mask, FilterValue: a.filter.Value,
		Limit: uint32(a.limit), Shift: uint32(32 - a.Grain), Base: uint32(a.base), Valid: uint16(a.valid), Used: 1,
	}
}

func (p *Program) queryRow(c *Compiled, seed, epoch uint64) bpf.BeaucoupBeaucoupQuery {
	return bpf.BeaucoupBeaucoupQuery{
		Mask: c.Key.Mask, Salt: Salt(seed, epoch, c.Definition()), Window: Ticks(c.Window), Horizon: p.Horizon(),
		N: uint32(c.Collector.N), Id: uint32(c.ID), Valid: uint16(c.Key.Valid),
	}
}

// Definition is the text that a query's coupons depend on. A query that is removed and added again within its window continues
// its collectors if its coupons are unchanged, and starts new ones otherwise.
func (c *Compiled) Definition() string {
	return fmt.Sprintf("query %s %d %d %g %g", c.Text(), c.Collector.M, c.Collector.N, c.Collector.P, c.Start)
}

// Horizon is the longest remaining time of a collector, in ticks. Windows of removed queries count, too; half an hour is the
// maximum.
func (p *Program) Horizon() uint32 {
	longest := uint32(0)
	for _, q := range p.Queries {
		longest = max(longest, Ticks(q.Window))
	}
	return max(longest, p.longest) + clockSlack
}

// Ticks of a duration.
func Ticks(d time.Duration) uint32 { return uint32(int64(d) >> Tick) }

const (
	Tick       = 10 // beaucoup_tick: ticks are 2^10 ns
	ReplayRing = 16 << 20
	// clockSlack is how far the clocks of two cores, or a capture's timestamps, may go back, in ticks (67 ms).
	clockSlack = 1 << 16
)
