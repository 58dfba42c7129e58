package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/userspace/store"
)

const (
	every    = 10 * time.Second // a window of the week
	loads    = 5                // of the page, each in a new browser context without a cache
	storeMax = 8 << 30
)

// week opens the page of an agent whose store has a week of 20 instances.
func (r *rig) week(ctx context.Context) ([]row, error) {
	path := filepath.Join(r.dir, "week.db")
	if _, err := os.Stat(path); err != nil {
		if err := r.fill(ctx, path); err != nil {
			return nil, err
		}
	}
	a, all, err := r.measured(ctx, every, "listen: "+address, fmt.Sprintf("store: {path: %s, max_age: 400h, max_bytes: %d}", path, int64(storeMax)))
	if err != nil {
		return nil, err
	}
	defer a.stop() //nolint:errcheck // what it ends with is of no interest here
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	c, err := launch(ctx)
	if err != nil {
		return nil, err
	}
	defer c.end()
	var first, shown, loaded, ranged, asked []float64
	for n := range loads {
		l, err := c.load(base+"/", all.Instances[n].Key)
		if err != nil {
			return nil, err
		}
		first, shown, loaded, ranged, asked = append(first, l.Paint), append(shown, l.Content), append(loaded, l.Bytes), append(ranged, l.Range), append(asked, l.Asked)
	}
	note := fmt.Sprintf("median and longest of %d", loads)
	return []row{
		{fmt.Sprintf("store with a week of %d instances (%.1f GB): first paint", interfaces, float64(info.Size())/1e9), "1 s", times(first) + ", " + note},
		{"the list of instances is drawn", "1 s", times(shown)},
		{"on the wire before data", "200 kB", fmt.Sprintf("%.0f kB", slices.Max(loaded)/1e3)},
		{"a range of a week: from the choice to two charts that are drawn", "300 ms", times(ranged)},
		{"of which the longest answer of the API", "", times(asked)},
	}, nil
}

func times(ms []float64) string {
	s := slices.Sorted(slices.Values(ms))
	return fmt.Sprintf("%.0f ms, %.0f ms", s[len(s)/2], s[len(s)-1])
}

// fill lets an agent make a window of each instance, and stores a week of such windows.
func (r *rig) fill(ctx context.Context, path string) error {
	small := filepath.Join(r.dir, "small.db")
	defer os.Remove(small)
	a, err := r.start(ctx, time.Second, "listen: "+address, fmt.Sprintf("store: {path: %s}", small))
	if err != nil {
		return err
	}
	_, err = r.measuring(ctx)
	time.Sleep(5 * time.Second)
	if err := cmp.Or(err, a.stop()); err != nil {
		return err
	}
	s, err := store.Open(small, store.Options{})
	if err != nil {
		return err
	}
	latest := map[string]store.Record{}
	err = s.Each(store.Query{}, func(one store.Record) error {
		if one.Key != "" && json.Valid(one.Line) {
			one.Line = slices.Clone(one.Line)
			latest[one.Key+" "+one.Algorithm] = one
		}
		return nil
	})
	if err := cmp.Or(err, s.Close()); err != nil {
		return err
	}
	if len(latest) < 2*interfaces {
		return fmt.Errorf("windows of %d, want %d", len(latest), 2*interfaces)
	}
	return repeat(ctx, path, latest)
}

var ends = regexp.MustCompile(`"window":\{"start":\d+,"end":\d+`)

// repeat stores a window of each every 10 s, from a week ago until now. It continues where an earlier run was ended.
func repeat(ctx context.Context, path string, latest map[string]store.Record) error {
	part := path + ".part"
	s, err := store.Open(part, store.Options{MaxBytes: storeMax, MaxAge: *past + 24*time.Hour})
	if err != nil {
		return err
	}
	defer s.Close()
	now, begun := time.Now().Truncate(every), time.Now()
	var batch []store.Record
	from := now.Add(-*past)
	err = s.Each(store.Query{Newest: true, Limit: 1}, func(one store.Record) error { from = one.End.Add(every); return nil })
	if err != nil {
		return err
	}
	for at := from; !at.After(now) && ctx.Err() == nil; at = at.Add(every) {
		for _, one := range latest {
			one.End = at
			one.Line = ends.ReplaceAll(one.Line, fmt.Appendf(nil, `"window":{"start":%d,"end":%d`, at.Add(-every).UnixNano(), at.UnixNano()))
			batch = append(batch, one)
		}
		if len(batch) > 20_000 {
			if err := s.Append(batch...); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if err := cmp.Or(ctx.Err(), s.Append(batch...)); err != nil {
		return err
	}
	log.Printf("a week is stored after %v", time.Since(begun).Round(time.Second))
	return cmp.Or(s.Close(), os.Rename(part, path))
}
