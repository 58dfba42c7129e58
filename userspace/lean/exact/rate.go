package exact

// Rate is a statistic's rate of a flow in a window, as the report with lean.by=rate has it, and of how many packets: the mean delay in ns, or the share of
// the packets that were affected.
func (t *Tally) Rate(statistic string) (rate float64, packets uint64) {
	share := func(events float64, of uint64) float64 { return max(0, events) / float64(max(of, 1)) }
	switch statistic {
	case "latency":
		return share(float64(t.Latency), t.Answered), t.Requests
	case "loss":
		return share(float64(t.Holes), t.Numbered), t.Numbered
	case "ooo":
		return share(float64(t.OutOfOrder), t.Data), t.Data
	}
	return share(float64(t.Again), t.Data), t.Data
}
