package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Result of a measurement.
type Result struct {
	Machine Machine `json:"machine"`
	Packets uint32  `json:"packets"` // a run
	Rounds  int     `json:"rounds"`
	Flows   uint32  `json:"flows"`
	Rows    []Row   `json:"rows"`
}

// Machine is what the figures depend on.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
}

func newResult(opts Options, rows []Row) *Result {
	return &Result{Machine: machine(), Packets: opts.Packets, Rounds: opts.Rounds, Flows: opts.Flows, Rows: rows}
}

func machine() Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU()}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		m.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return m
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "model name"); ok {
			m.CPU = strings.TrimLeft(name, "\t :")
			break
		}
	}
	return m
}

// Row finds a subject.
func (r *Result) Row(subject string) (Row, bool) {
	for _, row := range r.Rows {
		if row.Subject == subject {
			return row, true
		}
	}
	return Row{}, false
}

// PerRegister is what one more register costs: the third over the first, halved, on average over all packets.
func (r *Result) PerRegister() (float64, bool) {
	one, ok1 := r.Row("one_register")
	three, ok3 := r.Row("three_registers")
	sum := 0.0
	for _, c := range Cases {
		sum += (three.Cells[c.Name].NS - one.Cells[c.Name].NS) / 2
	}
	return sum / float64(len(Cases)), ok1 && ok3
}

// WriteJSON writes the result as one object.
func (r *Result) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

const (
	nameWidth = 20
	cellWidth = 11
)

// WriteTable writes the result for people.
func (r *Result) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "nanoseconds a packet over the mutator; best of %d x %d packets, %d flows\n", r.Rounds, r.Packets, r.Flows)
	fmt.Fprintf(&b, "%s, %d cores, Linux %s\n\n%-*s", r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel, nameWidth, "")
	for _, c := range Cases {
		fmt.Fprintf(&b, "%*s", cellWidth, c.Name)
	}
	b.WriteString("\n")
	group := ""
	for _, row := range r.Rows {
		if row.Group != group {
			group = row.Group
			fmt.Fprintf(&b, "%s\n", group)
		}
		writeRow(&b, row)
	}
	if ns, ok := r.PerRegister(); ok {
		fmt.Fprintf(&b, "\none more register: %.1f ns\n", ns)
	}
	for _, c := range Cases {
		fmt.Fprintf(&b, "%s: %s\n", c.Name, c.What)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeRow shows the mutator's own time where it is what is subtracted.
func writeRow(b *strings.Builder, row Row) {
	fmt.Fprintf(b, "  %-*s", nameWidth-2, row.Subject)
	for _, c := range Cases {
		cell := row.Cells[c.Name]
		text := fmt.Sprintf("%.1f", cell.NS)
		if cell.NS == 0 {
			text = fmt.Sprintf("(%.1f)", cell.Total)
		}
		fmt.Fprintf(b, "%*s", cellWidth, text)
	}
	fmt.Fprintf(b, "  %s%s\n", row.What, matched(row))
}

func matched(row Row) string {
	cell := row.Cells["response"]
	if cell.Matched == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f %% of the responses matched)", 100*cell.Matched)
}
