package session

import (
	"context"
	"errors"
	"sync"

	"github.com/xdpmon/xdpmon/loader/attach"
)

// liveEach is Live with one session per interface, each with its own registers, windows and reports.
func liveEach(ctx context.Context, cfg LiveConfig) error {
	list, err := openEach(ctx, cfg)
	if cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Duration)
		defer cancel()
	}
	if err == nil {
		waitForAny(ctx, list)
	}
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, s := range list { // concurrently, so that the last windows end together
		all.Go(func() { errs[i] = s.Close() })
	}
	all.Wait()
	return errors.Join(append(errs, err)...)
}

// openEach opens the sessions one after the other; Started is called when the last one measures.
func openEach(ctx context.Context, cfg LiveConfig) (list []*Session, err error) {
	var attached []*attach.Attachment
	for _, name := range cfg.Interfaces {
		one := cfg
		one.Name, one.Interfaces = name, []string{name}
		one.Started = func(a []*attach.Attachment) { attached = append(attached, a...) }
		s, err := Open(ctx, one)
		if err != nil {
			return list, err
		}
		list = append(list, s)
	}
	if cfg.Started != nil {
		cfg.Started(attached)
	}
	return list, nil
}

// waitForAny returns when ctx or one of the sessions has ended: all have the same duration, and an error of one ends the run.
func waitForAny(ctx context.Context, list []*Session) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, s := range list {
		go func() {
			select {
			case <-s.Done():
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	<-ctx.Done()
}
