package pisa

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
)

// WriteJSON writes the report as one indented JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText writes the report as tables for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	r.textArrays(tab)
	r.textWrites(tab)
	for i := range r.Targets {
		r.Targets[i].text(tab)
	}
	return tab.Flush()
}

func (r *Report) textArrays(w io.Writer) {
	fmt.Fprintln(w, "ARRAY\tKIND\tSTAGE\tWIDTH\tENTRIES\tBANKS\tBITS\tKERNEL BYTES\tTOUCHES\tACCESS\tPROGRAMS")
	for _, a := range r.Arrays {
		stage, touches := "-", "-"
		if a.Stage != nil {
			stage, touches = fmt.Sprint(*a.Stage), fmt.Sprint(a.Touches)
		}
		name := a.Name
		if a.Algorithm != "" {
			name = a.Algorithm + "/" + a.Name
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", name, a.Kind, stage, a.WidthBits, a.Entries, a.Banks,
			a.Bits, a.KernelBytes, touches, a.access(), strings.Join(a.Programs, " "))
	}
	fmt.Fprintf(w, "\nKernel bytes of per-CPU arrays are those of %d CPUs.\n", r.PossibleCPUs)
}

func (a Array) access() string {
	out := ""
	for _, part := range []struct {
		on   bool
		name string
	}{{a.Read, "read"}, {a.Write, "write"}, {a.Atomic, "atomic"}} {
		if part.on {
			out += "+" + part.name
		}
	}
	if out == "" {
		return "-"
	}
	return out[1:]
}

func (r *Report) textWrites(w io.Writer) {
	if len(r.OtherWrites) == 0 {
		return
	}
	fmt.Fprintln(w, "\nOTHER WRITES\tKIND\tPROGRAMS")
	for _, o := range r.OtherWrites {
		fmt.Fprintf(w, "%s\t%s\t%s\n", o.Name, o.Kind, strings.Join(o.Programs, " "))
	}
}

func (t *Target) text(w io.Writer) {
	verdict := "fits"
	if !t.Fits {
		verdict = "DOES NOT FIT: " + t.Reason
	}
	fmt.Fprintf(w, "\n%s: %s, %d of %d stages\n", t.Name, verdict, t.StagesUsed, t.Stages)
	for _, note := range t.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
	if len(t.Use) == 0 {
		return
	}
	fmt.Fprintf(w, "STAGE\tSTATEFUL ALUS OF %d\tSRAM OF %d\tMAP RAM OF %d\tARRAYS\n", stageALUs, stageSRAM, declared.StageMapRAM)
	for _, u := range t.Use {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%s\n", u.Stage, u.ALUs, u.SRAM, u.MapRAM, strings.Join(u.Arrays, " "))
	}
}
