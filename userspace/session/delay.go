package session

import (
	"errors"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// ErrDelay is returned when second passes of several algorithms would have to be held back.
var ErrDelay = errors.New("second passes can be delayed for one algorithm only: replay it without the others that recirculate")

// recirculationDelay is how long second passes are held back: the driver keeps one request a packet.
func recirculationDelay(instances []algo.Instance) (int, error) {
	delay, recirculating := 0, 0
	for _, i := range instances {
		if d, ok := i.(algo.RecirculationDelayer); ok {
			delay = max(delay, d.RecirculationDelay())
		}
		if r, ok := i.(algo.Recirculator); ok && r.RecirculationShare() > 0 {
			recirculating++
		}
	}
	if delay > 0 && recirculating > 1 {
		return 0, ErrDelay
	}
	return delay, nil
}
