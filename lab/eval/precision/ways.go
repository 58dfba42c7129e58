package precision

import (
	"context"
	"fmt"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

// Rows of figure 3.3: the program's ways, and those of plain Go.
var (
	programWays = []int{1, 2, 3, 4}
	plainWays   = []int{4, 8, 16}
)

// associativity is figure 3.3.
func associativity(ctx context.Context, p *eval.Page) error {
	var list []contender
	for _, d := range programWays {
		list = append(list, own(fmt.Sprintf("ways = %d", d), map[string]string{"ways": fmt.Sprint(d)}))
	}
	for _, d := range plainWays {
		list = append(list, plain(d))
	}
	p.Text("The program has four ways at most: each takes stages of its own. Eight and 16 are `tests/precision/plain.go`, whose one to four ways are the program's entry for " +
		"entry (`TestPlain`, `TestPlainWays`) where no second pass is refused; *ways = 4* is here both ways, and the program's budget of second passes, which starts empty, is the difference.")
	results, err := varied(ctx, p, "ways", list)
	if err != nil {
		return err
	}
	two, most := results[1], results[len(results)-1]
	p.Text("Entries that two ways need for the recall of %d, over the entries of these; straight lines between the sizes. The dissertation: up to twice as many.", plainWays[len(plainWays)-1])
	t := &figure.Table{Columns: []string{"entries"}}
	row := []string{"two ways need"}
	for i, entries := range sizes {
		needs, more := needed(two, mean(most[i].recall))
		cell := fmt.Sprintf("%.1f times", needs/float64(entries))
		if more {
			cell = "more than are here"
		}
		t.Columns, row = append(t.Columns, fmt.Sprint(entries)), append(row, cell)
	}
	t.Add(row...)
	p.Table(t)
	return nil
}
