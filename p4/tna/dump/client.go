package dump

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// Operator is what a plan leaves to the operator of the switch.
type Operator struct {
	Tables map[string]func(t *run.Table) error                                  // content of tables, by object
	Rules  func(command string) ([]byte, error)                                 // output of a command
	Port   uint16                                                               // of sessions without a port in the plan
	CPU    uint16                                                               // port
	Filter func(decay time.Duration) func(held, value, now, last uint64) uint64 // arithmetic of filters; nil: the model's
}

// Client is a control plane on a modelled switch, which uses nothing of a twin but its plan.
type Client struct {
	plan     *Plan
	sw       *run.Switch
	operator Operator
}

// rules is the output of commands that a client executes: entries, defaults and filters.
type rules struct {
	Entries []struct {
		Table  string
		Match  []struct{ Value, Mask uint64 }
		Action string
		Args   []uint64
	}
	Filters []struct {
		Name    string
		DecayNS int64 `json:"decay_ns"`
	}
}

// NewClient fills a switch according to its plan. Optional objects are filled if the operator has their content.
func NewClient(plan *Plan, sw *run.Switch, o Operator) (*Client, error) {
	c := &Client{plan, sw, o}
	sw.Sessions, sw.Loops = map[uint64]run.Session{}, map[uint16]bool{}
	for i := range plan.Fill {
		if err := c.fill(&plan.Fill[i]); err != nil {
			return nil, fmt.Errorf("fill %s: %w", plan.Fill[i].Object, err)
		}
	}
	for _, name := range plan.Learn {
		if !slices.Contains(sw.Learns, strings.TrimPrefix(name, "IngressDeparser.")) {
			return nil, fmt.Errorf("learn %s: %w", name, ErrNoObject)
		}
	}
	return c, c.SetBank(0)
}

func (c *Client) fill(f *twin.Fill) error {
	switch f.Kind {
	case twin.FillSession:
		c.session(f.Session)
	case twin.FillCPU:
		c.sw.CPUPort = c.operator.CPU
	case twin.FillTable:
		return c.table(f)
	case twin.FillRules:
		return c.rules(f)
	case twin.FillMeter:
		if !f.Optional {
			return fmt.Errorf("a meter without a rate: %w", ErrNoObject)
		}
	default:
		return fmt.Errorf("kind %q: %w", f.Kind, ErrNoObject)
	}
	return nil
}

func (c *Client) session(s *twin.Session) {
	port := s.Port
	if port == 0 {
		port = c.operator.Port
	}
	c.sw.Sessions[s.Number] = run.Session{Port: port, Bytes: s.Bytes}
	if s.Loops {
		c.sw.Loops[port] = true
	}
}

func (c *Client) table(f *twin.Fill) error {
	t, err := tableOf(c.sw, f.Object)
	if err != nil {
		return err
	}
	if write := c.operator.Tables[f.Object]; write != nil {
		return write(t)
	}
	return nil
}

func (c *Client) rules(f *twin.Fill) error {
	if f.Optional {
		return nil
	}
	text, err := c.operator.Rules(f.Object)
	if err != nil {
		return err
	}
	var r rules
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	for _, e := range r.Entries {
		t, err := tableOf(c.sw, e.Table)
		if err != nil {
			return err
		}
		if e.Match == nil {
			err = t.SetDefault(e.Action, e.Args...)
		} else {
			match := make([]run.Match, len(e.Match))
			for i, m := range e.Match {
				match[i] = run.Match{Value: m.Value, Mask: m.Mask}
			}
			err = t.Add(match, e.Action, e.Args...)
		}
		if err != nil {
			return err
		}
	}
	for _, of := range r.Filters {
		i := slices.IndexFunc(c.sw.Filters, func(l *run.Lpf) bool { return c.sw.Full(l.Name) == of.Name })
		if i < 0 {
			return fmt.Errorf("filter %s: %w", of.Name, ErrNoObject)
		}
		c.sw.Filters[i].Filter = run.Filter{Rate: true, Decay: float64(of.DecayNS)}
		if c.operator.Filter != nil {
			c.sw.Filters[i].Step = c.operator.Filter(time.Duration(of.DecayNS))
		}
	}
	return nil
}

// SetBank selects the bank that packets count into.
func (c *Client) SetBank(bank int) error {
	if c.plan.Flip == nil {
		return nil
	}
	t, err := tableOf(c.sw, c.plan.Flip.Table)
	if err != nil {
		return err
	}
	return t.SetDefault(c.plan.Flip.Action, c.plan.Flip.Banks[bank]...)
}

// Clear resets what the plan resets at the end of a window: the closed bank of banked registers, and counters.
func (c *Client) Clear(closed int) error {
	for i := range c.plan.Registers {
		if err := c.clear(&c.plan.Registers[i], closed); err != nil {
			return err
		}
	}
	for _, counter := range c.plan.Counters {
		t, err := tableOf(c.sw, counter.Path)
		if err != nil {
			return err
		}
		for _, row := range append(slices.Clone(t.Rows), t.Default) {
			if row != nil {
				row.Packets = 0
			}
		}
	}
	return nil
}

func (c *Client) clear(p *RegisterPlan, closed int) error {
	i := slices.IndexFunc(c.sw.Registers, func(r *run.Register) bool { return c.sw.Full(r.Path) == p.Path })
	if i < 0 {
		return fmt.Errorf("register %s: %w", p.Path, ErrNoObject)
	}
	from, to := 0, p.Entries
	switch {
	case !p.Banked || p.Bank != nil && *p.Bank != closed:
		return nil
	case p.Bank == nil:
		from, to = closed*p.Entries/2, (closed+1)*p.Entries/2
	}
	for at := from * p.Words; at < to*p.Words; at++ {
		c.sw.Registers[i].Data[at] = p.Initial[at%p.Words]
	}
	return nil
}
