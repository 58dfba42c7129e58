package fridge

import (
	"fmt"
	"math"
	"strconv"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// option is a configuration with its predicted errors.
type option struct {
	config    *config
	text      string // value of fridge.fridges
	bytes     int64
	histogram int64
	fits      bool
	errors    [3]float64 // relative, 95 % confidence, of planned percentiles
}

var planned = [3]float64{0.5, 0.95, 0.99}

func (o option) correction() string {
	if o.config.table {
		return "table"
	}
	return "exact"
}

func (o option) worst() float64 { return max(o.errors[0], o.errors[1], o.errors[2]) }

// Plan implements algo.Planner.
func (c *config) Plan(a algo.PlanArgs) (*report.Body, error) {
	l, err := readLoad(a)
	if err != nil {
		return nil, err
	}
	one, err := l.best(c, l.single)
	if err != nil {
		return nil, err
	}
	options := []option{one}
	for n := 2; n <= layout.Most; n++ {
		if more, err := l.best(c, l.several(n)); err == nil {
			options = append(options, more)
		}
	}
	return l.body(options), nil
}

// best fits a layout into the memory: of all resolutions and both corrections the one with the smallest error, with as many
// entries as the memory left by its histogram holds.
func (l *load) best(given *config, parts func(slots int) []layout.Part) (option, error) {
	var found option
	least := int64(math.MaxInt64)
	for _, c := range variants(given) {
		o, need := l.sized(c, parts)
		least = min(least, need)
		if o.fits && (!found.fits || o.worst() < found.worst()) {
			found = o
		}
	}
	if !found.fits {
		return found, fmt.Errorf("%w: %s do not hold a histogram on %d CPUs: give %s at least, or fewer rows, or legs=false",
			errPlan, report.Human(l.memory, report.Bytes), l.cpus, report.Human(least, report.Bytes))
	}
	return found, nil
}

// variants are the configurations that a plan chooses from; parameters that the user has set are fixed.
func variants(given *config) []config {
	var list []config
	for _, table := range []bool{false, true} {
		if given.values.Text("correction") != auto && given.table != table || !given.recorded && table {
			continue
		}
		for mantissa := finest; mantissa >= coarsest; mantissa-- {
			c := *given
			c.table = table
			if given.values.Text("resolution") == auto {
				c.mantissa = mantissa
			}
			list = append(list, c)
		}
	}
	return list
}

// sized finds the largest power of two of slots that fits; need is the memory of the smallest.
func (l *load) sized(c config, parts func(slots int) []layout.Part) (found option, need int64) {
	for slots := 4 * layout.LeastSlots; slots <= mostSlots; slots *= 2 {
		list := parts(slots)
		if list == nil {
			break
		}
		o := l.option(c, list)
		if need == 0 {
			need = o.bytes
		}
		if o.bytes > l.memory || !o.config.fitsStage() {
			break
		}
		o.fits = true
		found = o
	}
	return found, need
}

func (l *load) option(c config, parts []layout.Part) option {
	c.parts, c.slots = parts, 0
	_ = layout.Shard(c.parts, auto)
	o := option{config: &c, text: partsText(parts), bytes: c.registerBytes(l.cpus)}
	slots, shards := layout.Totals(parts)
	sizes := c.sizes()
	o.histogram = o.bytes - int64(slots*8+shards*4+sizes["fridge_survived"]*4+sizes["fridge_middle"]*4+sizes["fridge_volume"]*8)
	o.errors = l.errors(parts)
	for i, e := range o.errors {
		o.errors[i] = math.Hypot(e, inside*c.binWidth())
	}
	return o
}

// inside is the error of interpolation within a bin, as a share of the bin's width.
const inside = 1.0 / 8

// binWidth is the relative width of a bin: upper edge / lower edge - 1.
func (c *config) binWidth() float64 { return math.Exp2(1/math.Exp2(float64(c.mantissa))) - 1 }

func partsText(parts []layout.Part) string {
	text := ""
	for i, p := range parts {
		if i > 0 {
			text += ","
		}
		text += p.String()
		if len(parts) > 1 {
			text += ":" + strconv.FormatFloat(p.Share, 'g', 6, 64)
		}
	}
	return text
}

// single is one fridge whose lifetime is the number of requests within the longest delay (section 5.2).
func (l *load) single(slots int) []layout.Part {
	return []layout.Part{{Slots: slots, Share: 1, P: steps(min(1, float64(slots)/(l.rate*l.longest)))}}
}

// steps rounds a probability to a multiple of 2^-16, the data plane's resolution.
func steps(p float64) float64 { return max(1, math.Round(p*layout.One)) / layout.One }

// sizes of n fridges, the largest first: powers of two that make up all slots.
func sizes(n, slots int) []int {
	if n == 3 {
		return []int{slots / 2, slots / 4, slots / 4}
	}
	list := make([]int, n)
	for k := range list {
		list[k] = slots / n
	}
	return list
}

// several is n fridges: records of the last one live as long as the longest delay, those of each before it shorter by one factor, which is the
// one that minimises the worst percentile's error. The first fridge takes the requests that the others leave. nil: the delays do not span so many.
func (l *load) several(n int) func(slots int) []layout.Part {
	return func(slots int) (best []layout.Part) {
		least := math.Inf(1)
		for f := 2.0; l.longest/math.Pow(f, float64(n-1)) > l.shortest; f *= 2 {
			parts := l.lasting(sizes(n, slots), f)
			if e := (option{errors: l.errors(parts)}).worst(); e < least {
				best, least = parts, e
			}
		}
		return best
	}
}

// lasting fridges have lifetimes that differ by a factor of f.
func (l *load) lasting(slots []int, f float64) []layout.Part {
	parts := make([]layout.Part, len(slots))
	left, lifetime := 1.0, l.longest
	for k := len(parts) - 1; k > 0; k-- {
		share := steps(min(left/2, float64(slots[k])/(l.rate*lifetime)))
		parts[k] = layout.Part{Slots: slots[k], Share: share, P: 1}
		left, lifetime = left-share, lifetime/f
	}
	parts[0] = layout.Part{Slots: slots[0], Share: left, P: steps(min(1, float64(slots[0])/(l.rate*lifetime)/left))}
	return parts
}

// planSteps is how finely delays are integrated over.
const planSteps = 480

// errors predicts the relative errors of the planned percentiles for delays that are spread evenly on a logarithmic axis. Every
// answered request with a delay t is sampled with probability q(t) = sum of share*p*exp(-insertions(t)/M) and then counts 1/q,
// which adds 1/q - 1 to the variance. The standard error of the share below a percentile is the root of the variance, that of the
// percentile this over the density.
func (l *load) errors(parts []layout.Part) (out [3]float64) {
	span := math.Log(l.longest / l.shortest)
	var cumulative [planSteps + 1]float64
	for i := range planSteps {
		t := l.shortest * math.Exp(span*(float64(i)+0.5)/planSteps)
		cumulative[i+1] = cumulative[i] + (1/l.included(parts, t)-1)/planSteps
	}
	answers := l.rate * l.answered * l.window
	for i, q := range planned {
		below := cumulative[int(q*planSteps)]
		above := cumulative[planSteps] - below
		se := math.Sqrt(((1-q)*(1-q)*below + q*q*above) / answers)
		out[i] = math.Expm1(1.96 * se * span)
	}
	return out
}

func (l *load) included(parts []layout.Part, t float64) float64 {
	q := 0.0
	for _, p := range parts {
		q += p.Inclusion() * math.Exp(-l.rate*p.Inclusion()*t/float64(p.Slots))
	}
	return max(q, 1e-12)
}
