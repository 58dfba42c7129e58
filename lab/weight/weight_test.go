package main

import (
	"strings"
	"testing"
	"time"
)

// TestJudge: only windows that began and ended within the time count; one that took 5 % longer than asked is late.
func TestJudge(t *testing.T) {
	const text = `{"schema":1}
{"algorithm":"fridge","interface":"a","packets":{"seen":7},"window":{"start_time":"2026-11-27T10:00:01Z","end_time":"2026-11-27T10:00:11Z"}}
{"algorithm":"lean","interface":"a","packets":{"seen":7},"window":{"start_time":"2026-11-27T10:00:01Z","end_time":"2026-11-27T10:00:11.6Z"}}
{"algorithm":"fridge","interface":"b","packets":{"seen":5},"window":{"start_time":"2026-11-27T09:59:59Z","end_time":"2026-11-27T10:00:09Z"}}
{"algorithm":"fridge","interface":"b","packets":{"seen":5},"window":{"start_time":"2026-11-27T10:00:09Z","end_time":"2026-11-27T10:00:19Z"}}
{"algorithm":"fridge","interface":"b","packets":{"seen":5},"window":{"start_time":"2026-11-27T10:00:52Z","end_time":"2026-11-27T10:01:02Z"}}
`
	from := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	got, err := judge([]byte(text), from, from.Add(time.Minute))
	if want := (windows{lines: 3, late: 1, longest: 10600 * time.Millisecond, packets: 12, interfaces: 2}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := judge([]byte("{"), from, from); err == nil || !strings.Contains(err.Error(), "read") {
		t.Errorf("half a line: %v", err)
	}
}
