package algo

import (
	"errors"
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// ErrNotSupported is wrapped when an algorithm does not implement an optional interface.
var ErrNotSupported = errors.New("not supported")

// as configures an algorithm for one of the optional interfaces.
func as[I any](d *Descriptor, what string, v Values, setup Setup) (I, error) {
	s, err := d.Configure(v, setup)
	if err != nil {
		var none I
		return none, err
	}
	c, ok := s.Config.(I)
	if !ok {
		return c, fmt.Errorf("%s %s: %w", what, d.Name, ErrNotSupported)
	}
	return c, nil
}

// New makes an instance from checked values.
func (d *Descriptor) New(v Values, env Env) (Instance, error) {
	s, err := d.Configure(v, env.Setup)
	if err != nil {
		return nil, err
	}
	return s.New(env)
}

// Plan calls a Planner.
func (d *Descriptor) Plan(v Values, args PlanArgs) (*report.Body, error) {
	c, err := as[Planner](d, "plan", v, Setup{Replay: true})
	if err != nil {
		return nil, err
	}
	return c.Plan(args)
}

// P4 calls a Twin.
func (d *Descriptor) P4(v Values) (map[string]string, error) {
	c, err := twin[Twin](d, v)
	if err != nil {
		return nil, err
	}
	return c.P4()
}

// P4Rules calls a TwinRules.
func (d *Descriptor) P4Rules(v Values) ([]byte, error) {
	c, err := twin[TwinRules](d, v)
	if err != nil {
		return nil, err
	}
	return c.P4Rules()
}

// Coordinate calls a CoordinatorProvider.
func (d *Descriptor) Coordinate(v Values, env Env) (Coordinator, error) {
	c, err := as[CoordinatorProvider](d, "coordinate", v, env.Setup)
	if err != nil {
		return nil, err
	}
	return c.Coordinate(env)
}
