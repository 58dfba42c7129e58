package conquest

import (
	"github.com/xdpmon/xdpmon/userspace/conquest"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// Windows answers as the bytecode would that had a counter of its own for each flow, with any number of snapshots of 2^shift ns: a program may use 64 maps,
// which 16 snapshots of two rows and a total take all but two of. TestWindows compares both where both can be asked.
func (s *Stream) Windows(reading string, snapshots, shift int) []Answer {
	w := windows{paper: reading == "inner" || reading == "outer", reading: reading, snapshots: int64(snapshots), shift: shift, of: map[int64]*window{}}
	model, answers := conquest.NewModel(s.Rate, s.Buffer), make([]Answer, 0, len(s.Truth))
	for i := range s.Packets {
		p := &s.Packets[i]
		way := model.Pass(p.Time, p.Len)
		if way.Dropped {
			continue
		}
		key, _ := spec.Of(p)
		if way.Delay() >= s.Tau {
			a := Answer{Departure: way.Departure, Delay: way.Delay()}
			a.Size, a.Total = w.sums(key, way)
			answers = append(answers, a)
		}
		w.depart(key, way.Departure, uint64(p.Len))
	}
	return answers
}

// window is what left in one.
type window struct {
	all   uint64
	flows map[heavy.Key]uint64
}

type windows struct {
	reading   string
	paper     bool
	snapshots int64
	shift     int
	of        map[int64]*window
}

func (w *windows) depart(key heavy.Key, time int64, n uint64) {
	number := time >> w.shift
	one := w.of[number]
	if one == nil {
		one = &window{flows: map[heavy.Key]uint64{}}
		w.of[number] = one
		delete(w.of, number-w.snapshots)
	}
	one.all += n
	one.flows[key] += n
}

// reach is how many windows before the one of the departure are read, and how much of the oldest counts, in 2^-16.
func (w *windows) reach(way conquest.Passage) (reach int64, edge uint64) {
	length := int64(1) << w.shift
	since := way.Arrival & (length - 1)
	most := w.snapshots - 1
	reach, edge = way.Departure>>w.shift-way.Arrival>>w.shift, 1<<16
	if w.paper {
		most--
	}
	if w.reading == "inner" && since > 0 && reach > 0 {
		reach--
	}
	switch {
	case reach > most:
		reach = most
	case w.reading == "overlap":
		edge = uint64(length-since) << 16 >> w.shift
	case w.reading == "nearest" && length-since < length/2 && reach > 0:
		reach--
	}
	if w.paper {
		reach = max(1, reach)
	}
	return reach, edge
}

func (w *windows) sums(key heavy.Key, way conquest.Passage) (size, total uint64) {
	reach, edge := w.reach(way)
	number := way.Departure >> w.shift
	for back := range reach + 1 {
		one := w.of[number-back]
		if one == nil || back == 0 && w.paper {
			continue
		}
		weight := uint64(1 << 16)
		if back > 0 && back == reach {
			weight = edge
		}
		size += one.flows[key] * weight >> 16
		total += one.all * weight >> 16
	}
	return size, total
}
