package expect

// Share is the share of events among the packets that could be compared, one at least, with bounds of the share of all that were examined: the others may all have been
// affected, or none. There is no confidence interval: flows whose place another flow holds are no sample of all, and packets of a burst are lost together.
func Share(events, compared, examined uint64) (share, low, high float64) {
	examined = max(compared, examined)
	events = min(events, compared)
	all := float64(examined)
	return float64(events) / float64(compared), float64(events) / all, float64(events+examined-compared) / all
}
