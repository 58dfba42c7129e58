package structure

import (
	"bufio"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/loader/pisa"
)

// List is the list of intended differences between a twin and its bytecode: p4/NAME/structure.txt. A paragraph starts with its reason, in lines that start
// with #, and has lines of the form
//
//	REGISTER[,REGISTER...] FACET SIDE SOURCE[,SOURCE...]
//
// where REGISTER may be a pattern of package path. Each named or matched register differs so in some form. A line
//
//	rename SIDE SOURCE = SOURCE
//
// gives a table of the control plane the same name on both sides.
type List struct {
	name    string
	entries []*entry
	renamed map[[2]string]string
	seen    map[string]bool // registers that were compared
}

type entry struct {
	line                  int
	register, facet, side string
	sources               []string
	used                  map[string]bool
	reason                string
}

// ListFile is the name of the list in a twin's folder.
const ListFile = "structure.txt"

// ReadList reads a twin's list; a twin without one has no differences.
func ReadList(files fs.FS, twin string) (*List, error) {
	l := &List{name: twin + "/" + ListFile, renamed: map[[2]string]string{}, seen: map[string]bool{}}
	f, err := files.Open(l.name)
	if err != nil {
		return nil, fmt.Errorf("read list of structural differences: %w", err)
	}
	defer f.Close()
	reason := ""
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		switch {
		case text == "":
			reason = ""
		case text[0] == '#':
			reason += strings.TrimSpace(text[1:]) + " "
		case strings.HasPrefix(text, "rename "):
			side, names, _ := strings.Cut(strings.TrimPrefix(text, "rename "), " ")
			from, to, ok := strings.Cut(names, " = ")
			if !ok || side != Host && side != Switch {
				return nil, fmt.Errorf("read list of structural differences: %s:%d: %q is not rename SIDE SOURCE = SOURCE", l.name, n, text)
			}
			l.renamed[[2]string{side, from}] = to
		default:
			list, err := newEntries(text, strings.TrimSpace(reason), n)
			if err != nil {
				return nil, fmt.Errorf("read list of structural differences: %s:%d: %w", l.name, n, err)
			}
			l.entries = append(l.entries, list...)
		}
	}
	return l, lines.Err()
}

// newEntries are the entries of a line, one per pattern.
func newEntries(text, reason string, line int) (list []*entry, err error) {
	fields := strings.SplitN(text, " ", 4)
	switch {
	case reason == "":
		return nil, fmt.Errorf("%q stands without a reason", text)
	case len(fields) != 4:
		return nil, fmt.Errorf("%q is not REGISTER FACET SIDE SOURCE", text)
	case !slices.Contains([]string{Missing, Width, Entries, Initial, Order, Condition, Index, Written, Unused, Uneven}, fields[1]):
		return nil, fmt.Errorf("%q is no facet", fields[1])
	case !slices.Contains([]string{Host, Switch, Both}, fields[2]):
		return nil, fmt.Errorf("%q is no side", fields[2])
	}
	for _, register := range strings.Split(fields[0], ",") {
		list = append(list, &entry{line: line, register: register, facet: fields[1], side: fields[2], sources: strings.Split(fields[3], ","),
			used: map[string]bool{}, reason: reason})
	}
	return list, nil
}

// Reason for a difference; ok is false if it is not on the list.
func (l *List) Reason(d Difference) (string, bool) {
	reason, listed := "", false
	for _, e := range l.entries {
		if match, err := path.Match(e.register, d.Register); err == nil && match && e.facet == d.Facet && e.side == d.Side && slices.Contains(e.sources, d.Source) {
			e.used[d.Register+" "+d.Source] = true
			reason, listed = e.reason, true
		}
	}
	return reason, listed
}

// Unused are the listed differences that no comparison has found, of compared registers.
func (l *List) Unused() (out []string) {
	for _, e := range l.entries {
		met := false
		for register := range l.seen {
			if match, err := path.Match(e.register, register); err != nil || !match {
				continue
			}
			met = true
			for _, s := range e.sources {
				if !e.used[register+" "+s] {
					out = append(out, fmt.Sprintf("%s:%d: %s %s %s %s", l.name, e.line, register, e.facet, e.side, s))
				}
			}
		}
		if !met {
			out = append(out, fmt.Sprintf("%s:%d: no register is called %s", l.name, e.line, e.register))
		}
	}
	slices.Sort(out)
	return out
}

// Differences between a twin and its bytecode, by the list's names, including those on the list.
func (l *List) Differences(host []pisa.Touch, twin []Touch) []Difference {
	host, twin = slices.Clone(host), slices.Clone(twin)
	for i := range host {
		h := &host[i]
		l.seen[h.Array] = true
		h.Condition, h.Index, h.Written = l.names(Host, h.Condition), l.names(Host, h.Index), l.names(Host, h.Written)
	}
	for i := range twin {
		t := &twin[i]
		l.seen[t.Register] = true
		t.Condition, t.Index, t.Written = l.names(Switch, t.Condition), l.names(Switch, t.Index), l.names(Switch, t.Written)
	}
	return Compare(host, twin)
}

// Unlisted are the differences that are not on the list.
func (l *List) Unlisted(host []pisa.Touch, twin []Touch) (out []Difference) {
	for _, d := range l.Differences(host, twin) {
		if _, ok := l.Reason(d); !ok {
			out = append(out, d)
		}
	}
	return out
}

func (l *List) names(side string, of []string) (out []string) {
	for _, s := range of {
		if to, ok := l.renamed[[2]string{side, s}]; ok {
			s = to
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
