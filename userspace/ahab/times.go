package ahab

import (
	"fmt"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const auto = "auto"

// Times where nothing else is asked for. The fast ones are the dissertation's: a limit follows demand within milliseconds. A TCP flow without a queue and
// with a short round trip sends what it may, loses, and waits for a time-out of 200 ms, in which a fast limit gives its share to others: slow ones
// average over several time-outs. Windows of fast links are large, and regain what they lose at the end of slow start too slowly for these.
const (
	fastTau, fastEpoch = 4 * time.Millisecond, time.Millisecond
	slowTau, slowEpoch = 800 * time.Millisecond, 400 * time.Millisecond
	slowCapacity       = 200_000_000 / 8
)

func (c *config) readTimes(v algo.Values, setup algo.Setup, capacity uint64) (err error) {
	tau, epoch := fastTau, fastEpoch
	if !setup.Replay && !c.pace && !c.aimd && !c.table && capacity > 0 && capacity <= slowCapacity {
		tau = slowTau
	}
	if c.tau, err = v.DurationOr("tau", tau, 500*time.Microsecond, 10*time.Second); err != nil {
		return err
	}
	if tau == slowTau && c.tau == slowTau {
		epoch = slowEpoch
	}
	c.epoch, err = v.DurationOr("epoch", min(epoch, c.tau), 100*time.Microsecond, time.Second)
	return err
}

// timesText is a message about the speed of limits, where TCP with short round trips depends on it.
func (i *instance) timesText() string {
	switch largest := i.largest(); {
	case i.replay || i.values.Text("tau") != auto:
		return ""
	case i.tau == slowTau:
		return fmt.Sprintf("ahab.tau=auto: rates are averaged over %v, and a limit moves every %v, for TCP flows that wait for time-outs; new users have their "+
			"shares within two seconds. --set ahab.tau=%v follows demand within milliseconds", i.tau, i.epoch, fastTau)
	case i.path != "" && !i.pace && !i.table && !i.aimd && largest > 0 && largest <= slowCapacity:
		return fmt.Sprintf("no slice has more than %s: TCP flows with short round trips get less than their shares where limits follow demand within milliseconds. "+
			"--set ahab.tau=%v --set ahab.epoch=%v averages over their time-outs", report.Human(8*slowCapacity, report.BitRate), slowTau, slowEpoch)
	}
	return ""
}
