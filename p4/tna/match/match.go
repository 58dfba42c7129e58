// Package match matches a packet's keys with the entries of a table, and finds the first that matches.
package match

// One is an entry's condition on one key: value under mask, or the range from Value to High.
type One struct {
	Value, Mask, High uint64
	Range             bool
}

// fits compares one key: 1 yes, 0 no, -1 undefined bits decide.
func (w *One) fits(v, undef uint64) int {
	if w.Range {
		if undef != 0 {
			if w.Value == 0 && w.High >= v|undef {
				return 1
			}
			return -1
		}
		if v < w.Value || v > w.High {
			return 0
		}
		return 1
	}
	if (v^w.Value)&w.Mask&^undef != 0 {
		return 0
	}
	if undef&w.Mask != 0 {
		return -1
	}
	return 1
}

// Fits compares all keys: 1 yes, 0 no, -1 undefined bits decide.
func Fits(wants []One, vals, undefs []uint64) int {
	all := 1
	for i := range wants {
		switch wants[i].fits(vals[i], undefs[i]) {
		case 0:
			return 0
		case -1:
			all = -1
		}
	}
	return all
}

// defined reports whether all keys match, none of which has undefined bits.
func defined(wants []One, vals []uint64) bool {
	for i := range wants {
		w := &wants[i]
		if w.Range {
			if vals[i] < w.Value || vals[i] > w.High {
				return false
			}
		} else if (vals[i]^w.Value)&w.Mask != 0 {
			return false
		}
	}
	return true
}
