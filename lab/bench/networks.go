package bench

// networked are hhh's forms beside its default.
func networked() (list []Subject, err error) {
	for _, c := range []struct {
		name, what string
		set        map[string]string
	}{
		{"hhh_whole", "hhh.method=whole, hhh.level=bit", map[string]string{"level": "bit"}},
		{"hhh_bits", "hhh.method=random-prefix, hhh.level=bit", map[string]string{"level": "bit", "method": "random-prefix"}},
		{"hhh_stacking", "hhh.method=stacking, IPv4 by byte", map[string]string{"method": "stacking"}},
	} {
		s, err := Configured("hhh", c.set)
		if err != nil {
			return nil, err
		}
		s.Name, s.object, s.What = c.name, "hhh", c.what
		list = append(list, s)
	}
	return list, nil
}
