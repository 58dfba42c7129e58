// Package tune chooses the entry probabilities of a fridge from window to window (Zheng et al., "Unbiased Delay Measurement in the Data Plane",
// section 5.2: "re-calibrated whenever the traffic rate or the average delay changed more than 2x").
package tune

import (
	"fmt"
	"math"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Of bpf/fridge/fridge.bpf.c.
const (
	Planes    = 4 // SETTINGS: planes of a histogram, by settings modulo 4
	live      = 3 // LIVE_SETTINGS that are told apart
	classBits = 4
	most      = 1<<classBits - 1 // class: p = 2^-15
	numbers   = 16               // of settings: stored modulo 16
)

// Setting is the entry probabilities of the parts.
type Setting struct {
	Number  int   // settings before it
	Since   int64 // ns: end of the window after which it was chosen; 0 of the first
	Classes [layout.Most]int
}

// Plane of its samples in the histograms.
func (s Setting) Plane() int { return s.Number % Planes }

// P is the entry probability of a part.
func (s Setting) P(part int) float64 { return math.Exp2(-float64(s.Classes[part])) }

// Parts of a layout with these probabilities.
func (s Setting) Parts(quarters []layout.Part) []layout.Part {
	parts := append([]layout.Part{}, quarters...)
	for k := range parts {
		parts[k].P = s.P(k)
	}
	return parts
}

// Text is the setting as fridges: entries@probability of parts with the same.
func (s Setting) Text(quarters []layout.Part) string {
	var words []string
	for first := 0; first < len(quarters); {
		next, slots := first, 0
		for next < len(quarters) && s.Classes[next] == s.Classes[first] {
			slots += quarters[next].Slots
			next++
		}
		words = append(words, fmt.Sprintf("%d@%s", slots, layout.Fraction(s.P(first))))
		first = next
	}
	return strings.Join(words, ",")
}

// History holds the settings that the samples of a window may belong to, the present one last: four where it was changed at the window's start.
type History []Setting

// first is one fridge, and a quarter whose records live 64 times as long, so that a first window with slow responses or a high rate is not blind.
func first() History { return History{{Classes: [layout.Most]int{0, 0, 0, 6}}} }

// Now is the present setting.
func (h History) Now() Setting { return h[len(h)-1] }

// changed appends a setting.
func (h History) changed(classes [layout.Most]int, since int64) History {
	list := append(append(History{}, h...), Setting{Number: h.Now().Number + 1, Since: since, Classes: classes})
	return list[max(0, len(list)-Planes):]
}

// word of the data plane: fridge_setting.
func (h History) word() uint64 {
	w := uint64(h.Now().Number%numbers) << 32
	for k := range layout.Most {
		least := most
		for _, s := range h[max(0, len(h)-live):] {
			least = min(least, s.Classes[k])
		}
		w |= uint64(h.Now().Classes[k])<<(classBits*k) | uint64(least)<<(16+classBits*k)
	}
	return w
}

// Words of a snapshot: of each setting its number, its age at the end of the window in ns, and its classes. Ages are relative, since a snapshot's clock may
// become another one, and bounded, so that nothing changes while nothing happens.
const (
	words  = "settings"
	width  = 2 + layout.Most
	oldest = 1 << 50 // ns: 13 days
)

// Into stores the settings of a window.
func (h History) Into(s *snapshot.Snapshot) {
	var list []uint64
	for _, one := range h {
		age := int64(oldest)
		if one.Number > 0 {
			age = max(0, min(oldest, s.Window.End-one.Since))
		}
		list = append(list, uint64(one.Number), uint64(age))
		for _, c := range one.Classes {
			list = append(list, uint64(c))
		}
	}
	s.Words[words] = list
}

// HistoryOf reads the settings of a window that ended then.
func HistoryOf(r *snapshot.Reader, end int64) History {
	var h History
	rows := r.Rows(words, width)
	if len(rows) == 0 || len(rows) > Planes {
		r.Refuse("%d settings, 1 to %d are stored", len(rows), Planes)
		return first()
	}
	for _, row := range rows {
		s := Setting{Number: int(row[0]), Since: end - int64(min(row[1], oldest))}
		for k := range s.Classes {
			s.Classes[k] = int(min(row[2+k], most+1))
			if s.Classes[k] > most {
				r.Refuse("a class of %d, at most %d is stored", row[2+k], most)
			}
		}
		if row[0] > oldest || len(h) > 0 && (s.Number != h.Now().Number+1 || s.Since < h.Now().Since) {
			r.Refuse("settings that do not follow each other")
			return first()
		}
		h = append(h, s)
	}
	return h
}

// Shares of the requests with a delay of t ns, answered in a window from start to end, by the setting that they were admitted with.
func (h History) Shares(t float64, start, end int64) []float64 {
	shares := make([]float64, len(h))
	from, to := float64(start)-t, float64(end)-t
	for i := range h {
		low, high := math.Inf(-1), math.Inf(1)
		if i > 0 {
			low = float64(h[i].Since)
		}
		if i+1 < len(h) {
			high = float64(h[i+1].Since)
		}
		if to > from {
			shares[i] = max(0, min(to, high)-max(from, low)) / (to - from)
		} else if from >= low && from < high {
			shares[i] = 1
		}
	}
	return shares
}
