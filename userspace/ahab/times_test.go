package ahab

import (
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// TestTimes: what auto is. Limits are slow where live TCP is dropped at a small capacity, and nowhere else.
func TestTimes(t *testing.T) {
	const fast, slow = "4ms 1ms", "800ms 400ms"
	for _, c := range []struct {
		set    map[string]string
		replay bool
		want   string
		notice string
	}{
		{map[string]string{"capacity": "200Mbit"}, false, slow, "averaged over 800ms"},
		{map[string]string{"capacity": "200000008bit"}, false, fast, ""},
		{map[string]string{"capacity": "200Mbit"}, true, fast, ""},
		{map[string]string{}, false, fast, ""},
		{map[string]string{"capacity": "60Mbit", "act": "pace"}, false, fast, ""},
		{map[string]string{"capacity": "60Mbit", "form": "table"}, false, fast, ""},
		{map[string]string{"capacity": "60Mbit", "update": "aimd"}, false, fast, ""},
		{map[string]string{"capacity": "60Mbit", "tau": "4ms"}, false, fast, ""},
		{map[string]string{"capacity": "60Mbit", "tau": "500us"}, false, "500µs 500µs", ""},
		{map[string]string{"capacity": "60Mbit", "epoch": "1ms"}, false, "800ms 1ms", "every 1ms"},
		{map[string]string{"config": `{"capacity":"60Mbit","slices":[{"name":"all"}]}`}, false, fast, "--set ahab.tau=800ms --set ahab.epoch=400ms"},
		{map[string]string{"config": `{"capacity":"201Mbit","slices":[{"name":"all"}]}`}, false, fast, ""},
	} {
		v, err := algo.NewValues(Name, params, c.set)
		if err != nil {
			t.Fatal(err)
		}
		made, err := descriptor().New(v, algo.Env{Setup: algo.Setup{Replay: c.replay}})
		if err != nil {
			t.Fatal(err)
		}
		i := made.(*instance)
		if got := i.tau.String() + " " + i.epoch.String(); got != c.want {
			t.Errorf("%v, replay %v: %s, want %s", c.set, c.replay, got, c.want)
		}
		if got := i.timesText(); (got == "") != (c.notice == "") || !strings.Contains(got, c.notice) {
			t.Errorf("%v, replay %v: notice %q, want %q", c.set, c.replay, got, c.notice)
		}
	}
	for set, want := range map[string]string{"tau=499us": "from 500µs to 10s", "tau=11s": "from 500µs to 10s", "epoch=99us": "from 100µs to 1s", "epoch=2s": "from 100µs to 1s", "tau=fast": "auto and durations"} {
		key, value, _ := strings.Cut(set, "=")
		v, err := algo.NewValues(Name, params, map[string]string{key: value})
		if err == nil {
			_, err = newConfig(v, algo.Setup{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}
