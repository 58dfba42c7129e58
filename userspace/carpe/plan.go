package carpe

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// ErrPlan is wrapped when a plan cannot be made.
var ErrPlan = errors.New("a plan for carpe")

// Measured costs of a coordinator with mutual TLS on two cores: docs/coordinator.md.
const (
	messageCost = 23e-6   // CPU seconds of a message
	agentMemory = 155_000 // bytes
	helloEvery  = 2       // seconds
	reportBytes = 18      // of a 5-tuple over IPv4
	batchBytes  = 120     // of a message without its reports
)

// load is the traffic that a plan is made for.
type load struct {
	hosts, observers int
	window           time.Duration
	threshold        string
}

func (c *config) readLoad(a algo.PlanArgs) (load, error) {
	l := load{hosts: 100, window: 10 * time.Second, threshold: c.values.Text("threshold")}
	for key, text := range a.Extra {
		var err error
		switch key {
		case "hosts":
			l.hosts, err = strconv.Atoi(text)
		case "observers":
			l.observers, err = strconv.Atoi(text)
		case "window":
			l.window, err = time.ParseDuration(text)
		case "threshold":
			l.threshold = text
		default:
			err = errors.New("known are hosts, observers, threshold, window")
		}
		if err == nil && (l.hosts < 1 || l.observers < 0 || l.window <= 0) {
			err = errors.New("it must be positive")
		}
		if err != nil {
			return l, fmt.Errorf("%w: %s=%s: %w", ErrPlan, key, text, err)
		}
	}
	if l.observers == 0 {
		l.observers = l.hosts
	}
	if !(a.RatePerSecond > 0) {
		return l, fmt.Errorf("%w: the rate must be positive", ErrPlan)
	}
	return l, nil
}

// Plan implements algo.Planner: the entries of hosts, the messages they send, and the coordinator's load.
func (c *config) Plan(a algo.PlanArgs) (*report.Body, error) {
	l, err := c.readLoad(a)
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	for _, p := range params {
		set[p.Key] = c.values.Text(p.Key)
	}
	set["threshold"] = l.threshold
	fit, err := fitting(set, l)
	if err != nil {
		return nil, err
	}
	return fit.planned(a, l), nil
}

// fitting chooses the smallest s from 1/1024 to 1, unless s is given, for which the wait for the first sample, 1/s, is at most a
// quarter of a bundle with all observers counted.
func fitting(set map[string]string, l load) (c *config, err error) {
	given, last := set["s"], error(nil)
	for n := int64(1 << 10); n >= 1; n /= 2 {
		if given != defaultOf("s") {
			n = 1
		} else {
			set["s"] = fmt.Sprintf("1/%d", n)
		}
		v, err := algo.NewValues(Name, params, set)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPlan, err)
		}
		if c, last = newConfig(v, algo.Setup{}); last == nil && (4*c.start <= c.tau(c.advertised(l.observers)) || n == 1) {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrPlan, last)
}

func defaultOf(key string) string {
	for _, p := range params {
		if p.Key == key {
			return p.Default
		}
	}
	return ""
}

func (c *config) planned(a algo.PlanArgs, l load) *report.Body {
	observers := c.advertised(l.observers)
	seconds := l.window.Seconds()
	total := a.RatePerSecond * float64(l.hosts) // units a second of all hosts
	reports := total / c.weight(observers)      // if all of them were of flows that are reported
	elephants := total * seconds * float64(c.span) / c.threshold
	deviation := math.Sqrt(c.epsilon*(1-1/float64(observers)) + c.epsilon*math.Pow(float64(c.start)/float64(c.tau(observers)), 2))
	entries := min(a.RatePerSecond*seconds/float64(c.start), float64(3*65536))
	messages := min(float64(l.hosts)*10, reports) + float64(l.hosts)/helloEvery + float64(l.hosts)/seconds
	cpu := messages * messageCost
	b := &report.Body{Values: []report.Value{
		{Name: "threshold", Value: c.threshold, Unit: c.unit(), Help: "of all hosts, within carpe.span windows"},
		{Name: "s", Value: c.values.Text("s"), Kind: report.Info, Help: "carpe.s: the wait for the first sample is at most a quarter of a bundle, where possible"},
		{Name: "observers", Value: int64(observers), Unit: report.Count, Help: "hosts that a group is counted for: --extra observers=, rounded down to a power of two, at most what carpe.s allows"},
		{Name: "tau", Value: int64(c.tau(observers)), Unit: c.unit(), Help: "of a bundle at each of them"},
		{Name: "reports_per_elephant", Value: c.reports(observers), Unit: report.Count, Help: "R, whatever the number of hosts"},
		{Name: "standard_error", Value: deviation, Unit: report.Ratio, Help: "of the count of a flow at the threshold, without what is in bundles that are not full"},
		{Name: "unfinished", Value: c.weight(observers) / 2, Unit: c.unit(), Help: "of a flow in bundles that are not full, on average, if every observer sees it"},
		{Name: "entries", Value: entries, Unit: report.Count, Help: "carpe.entries that a host fills at most, if all of its flows are small"},
		{Name: "elephants_at_most", Value: elephants, Unit: report.Flows, Help: "flows of the threshold that this traffic has room for"},
		{Name: "reports_per_second", Value: reports, Unit: report.PerSecond, Help: "of all hosts, if all traffic was of flows that are reported: mice are not"},
		{Name: "wire_bytes_per_second", Value: reports*reportBytes + messages*batchBytes, Unit: report.PerSecond, Help: "bytes of all hosts to the coordinator, without windows (docs/carpe.md)"},
		{Name: "coordinator_messages_per_second", Value: messages, Unit: report.PerSecond, Help: "batches of reports (ten a second and host at most), hellos and windows"},
		{Name: "coordinator_cpu_cores", Value: math.Round(1000*cpu) / 1000, Help: "at 23 us of CPU a message, as measured"},
		{Name: "coordinator_memory", Value: int64(l.hosts) * agentMemory, Unit: report.Bytes, Help: "at 155 kB an agent, as measured"},
	}}
	b.Notes = []string{fmt.Sprintf("use it: coordinator.yaml: algorithms: {carpe: {threshold: %s, epsilon: %s, s: %s}}, window: %v", c.values.Text("threshold"), c.values.Text("epsilon"), c.values.Text("s"), l.window)}
	if int(observers) < l.observers/2 {
		b.Notes = append(b.Notes, fmt.Sprintf("tau would fall to 1/s with more than %d observers: a group with more is counted as if it had that many, which costs reports and no accuracy. A larger threshold, epsilon or s raises the limit.", observers))
	}
	if cpu > 1 {
		b.Notes = append(b.Notes, fmt.Sprintf("one coordinator on two cores is too small for %.1f: use a cluster of NATS servers (bus.external), or longer batches", cpu))
	}
	return b
}
