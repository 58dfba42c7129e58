package attach

// Place is where one program of an attachment is attached.
type Place struct {
	Hook      Hook
	Mode      Mode // XDP only
	Direction Direction
	Via       string // "xdp", "tcx" or "clsact"
}

// Each calls fn with the programs of the attachment, ingress first, until it fails.
func (a *Attachment) Each(fn func(Point) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.points {
		if err := fn(p); err != nil {
			return err
		}
	}
	return nil
}

// Places lists the programs of the attachment, ingress first; empty when it has ended.
func (a *Attachment) Places() []Place {
	a.mu.Lock()
	defer a.mu.Unlock()
	places := make([]Place, len(a.points))
	for i, p := range a.points {
		places[i] = Place{Hook: p.Hook, Mode: p.Mode, Direction: p.Direction, Via: p.Via}
	}
	return places
}
