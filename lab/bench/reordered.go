package bench

// reordered are packets that meet something else than the default does. The benchmark's flows arrive in the order of their
// addresses, 256 of a /24 in a row: all but the first find the record of the flow before them, which is not stale yet, and
// leave it. With a prefix for each address nearly every packet takes another record's place.
func reordered() (list []Subject, err error) {
	for _, c := range []struct {
		name, what string
		set        map[string]string
	}{
		{"reorder_evicts", "reorder, every address a prefix: most packets take another record's place", map[string]string{"prefix": "32"}},
		{"reorder_hybrid", "reorder.method=hybrid, x = 0.2, d = 2", map[string]string{"method": "hybrid"}},
	} {
		s, err := Configured("reorder", c.set)
		if err != nil {
			return nil, err
		}
		s.Name, s.object, s.What = c.name, "reorder", c.what
		list = append(list, s)
	}
	return list, nil
}
