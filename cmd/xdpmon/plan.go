package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const planLong = `Turns a load and a memory budget into the parameters of an algorithm and the error to expect. Nothing is loaded.
The answer ends with the command line to use.`

const planExample = `  xdpmon plan fridge --rate 1M/s --max-delay 4s --memory 1MiB
  xdpmon plan fridge --rate 200k/s --max-delay 500ms --memory 64KiB --set fridge.match=dns --output json
  xdpmon plan beaucoup -f queries.yaml --rate 500k/s
  xdpmon plan carpe --hosts 1000 --threshold 1000000 --rate 200k/s`

type planOptions struct {
	rate, memory string
	maxDelay     time.Duration
	set, extra   []string
	queries      selection // --query
	file         string
	hosts        string
	threshold    string
	answer       *answer
	changed      func(flag string) bool
}

func newPlan(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan NAME", Short: "Choose parameters for a load and a memory budget", Long: planLong, Example: planExample,
		Args:              cli.NeedArgs(1, 1, "the name of the algorithm"),
		ValidArgsFunction: completeName,
	}
	o := &planOptions{}
	f := cmd.Flags()
	f.StringVar(&o.rate, "rate", "100k/s", "the load of the algorithm (requests, packets; see algos NAME), a `RATE` like 1M/s")
	f.DurationVar(&o.maxDelay, "max-delay", 4*time.Second, "longest delay that must be measured (conquest's default: 8ms)")
	f.StringVar(&o.memory, "memory", "1MiB", "register memory `SIZE` to stay within, like 64KiB (lean: of a statistic, default 40000)")
	addSet(cmd, &o.set)
	f.StringArrayVar(&o.extra, "extra", nil, "further quantity that this algorithm plans with, `KEY=VALUE`; repeatable (see algos NAME)")
	f.StringVar(&o.hosts, "hosts", "", "hosts that report together (carpe), `N`")
	f.StringVar(&o.threshold, "threshold", "", "what makes a flow heavy in the whole network (carpe), `N` packets or bytes")
	addQueries(cmd, &o.queries)
	f.StringVarP(&o.file, "file", "f", "", "`FILE` of queries (beaucoup)")
	o.answer = addAnswer(env, cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		o.changed = f.Changed
		return plan(env, args[0], o)
	}
	return cmd
}

func plan(env *environment, name string, o *planOptions) error {
	d, err := lookup(name)
	if err != nil {
		return err
	}
	if !algo.Implements[algo.Planner](d) {
		return cli.UsageError("plan %s: there is nothing to plan for it; those with a plan are %s", name, orNone(planned()))
	}
	values, args, err := o.args(d)
	if err != nil {
		return err
	}
	body, err := d.Plan(values, args)
	if err != nil {
		return cli.AsUsage(err)
	}
	if o.answer.asJSON() {
		return env.printJSON(struct {
			Algorithm string       `json:"algorithm"`
			Plan      *report.Body `json:"plan"`
		}{name, body})
	}
	return env.printLines(report.BodyText(*body, nil, nil, env.style())...)
}

func planned() []string {
	var names []string
	for _, d := range algo.All() {
		if algo.Implements[algo.Planner](d) {
			names = append(names, d.Name)
		}
	}
	return names
}

func (o *planOptions) args(d *algo.Descriptor) (v algo.Values, args algo.PlanArgs, err error) {
	perSecond, err := cli.ParseRate(o.rate)
	if err != nil {
		return v, args, cli.UsageError("--rate: %w", err)
	}
	memory, err := algo.ParseSize(o.memory)
	if err != nil || memory == 0 {
		return v, args, cli.UsageError("--memory: %q is not a size like 64KiB or 1MiB", o.memory)
	}
	from := d.PlanDefaults()
	if !o.changed("memory") {
		memory = from.MemoryBytes
	}
	if !o.changed("max-delay") {
		o.maxDelay = time.Duration(from.MaxDelayNS)
	}
	if o.maxDelay <= 0 {
		return v, args, cli.UsageError("--max-delay %v: give a positive time like 500ms or 4s", o.maxDelay)
	}
	if err := o.useQueries(d.Name); err != nil {
		return v, args, err
	}
	set, err := parseSet(o.set, []string{d.Name})
	if err != nil {
		return v, args, err
	}
	if v, err = valuesOf(d, set[d.Name]); err != nil {
		return v, args, err
	}
	extra, err := parseExtra(o.extra)
	if err != nil {
		return v, args, err
	}
	for key, text := range map[string]string{"hosts": o.hosts, "threshold": o.threshold} {
		if text != "" {
			extra[key] = text
		}
	}
	return v, algo.PlanArgs{RatePerSecond: perSecond, MaxDelayNS: int64(o.maxDelay), MemoryBytes: memory, Extra: extra}, err
}

func parseExtra(list []string) (map[string]string, error) {
	extra := map[string]string{}
	for _, text := range list {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, cli.UsageError("--extra %q: write KEY=VALUE", text)
		}
		extra[key] = value
	}
	return extra, nil
}

// sortedKeys lists the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
