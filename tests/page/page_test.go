package page

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
	"github.com/xdpmon/xdpmon/userspace/web"
)

var algorithms = []string{"fridge", "lean", "reorder", "precision", "hhh", "beaucoup", "conquest", "ahab", "rtt-array"}

// demo runs the program on generated traffic, and returns the address of its page.
func demo(t *testing.T) (base string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a run of its own needs root")
	}
	path := filepath.Join(t.TempDir(), "xdpmon")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/xdpmon/xdpmon/cmd/xdpmon").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(path, "demo", strings.Join(algorithms, ","), "--rate", "200/s", "--window", "1s", "--duration", "0", "--listen", "127.0.0.1:0", "--output", "json")
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("demo ended with %v", err)
		}
	})
	lines := bufio.NewScanner(stderr)
	for at := regexp.MustCompile(`the page is at (http://\S+)/`); lines.Scan(); {
		if m := at.FindStringSubmatch(lines.Text()); m != nil {
			go io.Copy(io.Discard, stderr) //nolint:errcheck // it ends with the program
			return m[1]
		}
	}
	t.Fatal("demo names no page")
	return ""
}

// TestPictures keeps pictures of every view of a run that is there: XDPMON_SCREENSHOTS=DIR XDPMON_PAGE=http://127.0.0.1:9400 go test ./tests/page -run Pictures.
// Without one it runs the demo.
func TestPictures(t *testing.T) {
	base := os.Getenv("XDPMON_PAGE")
	if base == "" {
		return // TestViewsOfARun checks the same views
	}
	b := open(t)
	for _, name := range []string{"", "hosts", "parameters"} {
		b.visit(view(base, name))
		b.quiet("view " + name)
		b.inspect("view-" + name)
	}
	for _, i := range ask(base).Instances {
		for _, a := range i.Algorithms {
			b.visit(view(base, "instance", "key", i.Key, "algorithm", a.Name))
			b.until(a.Name+" has its window", `document.querySelector("main p.window")`)
			b.quiet(i.Key + " " + a.Name)
			b.inspect(i.Key + "-" + a.Name)
		}
	}
}

// ask requests the instances; none if there is no answer.
func ask(base string) (all api.Instances) {
	answer, err := http.Get(base + api.Prefix + "/instances")
	if err != nil {
		return all
	}
	defer answer.Body.Close()
	if json.NewDecoder(answer.Body).Decode(&all) != nil {
		return api.Instances{}
	}
	return all
}

// measuring waits until every algorithm has a window.
func measuring(t *testing.T, base string) (key string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if all := ask(base); len(all.Instances) == 1 && len(all.Instances[0].Algorithms) == len(algorithms) {
			return all.Instances[0].Key
		}
	}
	t.Fatal("no windows of all algorithms")
	return ""
}

// Every view shows what a real run measures: without an error, live, zoomed, filtered, and on a small telephone.
func TestViewsOfARun(t *testing.T) {
	t.Parallel()
	base := demo(t)
	b := open(t)
	key := measuring(t, base)

	b.visit(view(base, ""))
	b.until("the list of instances", `document.querySelector("table.instances tbody a")`)
	b.quiet("findings")
	before := b.number(`Number(document.querySelector("table.instances tbody td.n").textContent.length)`)
	if before == 0 {
		t.Error("no rate")
	}
	for _, name := range algorithms {
		b.visit(view(base, "instance", "key", key, "algorithm", name))
		b.until(name+" has its window", `document.querySelector("main p.window")`)
		b.until(name+" has its fold", `document.querySelector("main details.fold")`)
		b.quiet(name)
		b.inspect(name)
	}
	for _, name := range []string{"", "hosts", "parameters"} {
		b.visit(view(base, name))
		b.quiet("view " + name)
		b.inspect("view-" + name)
	}
	live(b, base, key)
	zoom(b, base, key)
	filter(b, base, key)
}

// live: a window that closes is shown without a question of the person's.
func live(b *browser, base, key string) {
	b.visit(view(base, "instance", "key", key, "algorithm", "fridge"))
	b.until("a chart with its lines", `document.querySelector("[data-distribution] .u-over") && document.querySelectorAll("[data-distribution] canvas").length >= 2`)
	b.do("which window", chromedp.Evaluate(`window.before = document.querySelector("main p.window").textContent`, nil))
	b.until("the next window", `document.querySelector("main p.window")?.textContent !== window.before`)
	b.until("the status is live", `document.getElementById("status").textContent.startsWith("live, last window")`)
	b.quiet("live")
	b.shot("instance")
	b.do("dark", chromedp.Click("#theme"))
	b.until("dark", `document.documentElement.dataset.theme === "dark" && document.querySelector("main details.fold")`)
	b.shot("dark")
	b.do("light", chromedp.Click("#theme"))
}

// zoom: dragging over a chart selects a range, which is a part of the address; the button returns to live.
func zoom(b *browser, base, key string) {
	b.visit(view(base, "instance", "key", key, "algorithm", "fridge", "range", "5m"))
	b.until("a chart", `document.querySelector("[data-distribution] .u-over")`)
	b.do("light", chromedp.Evaluate(`document.querySelector("[data-distribution]").scrollIntoView()`, nil))
	b.dragUntil("the range in the address", "[data-distribution] .u-over", `/from=\d+&to=\d+/.test(location.hash)`)
	b.until("the chosen range is drawn", `document.querySelector("[data-distribution] .u-over") && document.getElementById("live").getAttribute("aria-pressed") === "false"`)
	if n := b.number(`(() => { const q = new URLSearchParams(location.hash.split("?")[1]); return (q.get("to") - q.get("from")) / 1000 })()`); n <= 0 || n > 120 {
		b.t.Errorf("four tenths of five minutes or less are %v s", n)
	}
	b.do("live", chromedp.Click("#live"))
	b.until("live again", `!location.hash.includes("from=") && document.getElementById("live").getAttribute("aria-pressed") === "true"`)
	b.quiet("zoom")
}

// filter: only the rows with the typed text remain.
func filter(b *browser, base, key string) {
	b.visit(view(base, "instance", "key", key, "algorithm", "precision"))
	b.until("rows of flows", `document.querySelectorAll("[data-table=flows] tbody tr").length > 5`)
	b.do("type", chromedp.SendKeys("[data-table=flows] input[type=search]", "no such flow"))
	b.until("no row is left", `document.querySelectorAll("[data-table=flows] tbody tr").length === 0`)
	b.do("sort", chromedp.Evaluate(`(() => { const i = document.querySelector("[data-table=flows] input"); i.value = ""; i.dispatchEvent(new Event("input")); i.blur(); document.querySelector("[data-table=flows] th button").click() })()`, nil))
	b.until("rows are sorted", `document.querySelector("[data-table=flows] th[aria-sort=descending]") && document.querySelectorAll("[data-table=flows] tbody tr").length > 5`)
	b.quiet("filter")
}

// harm is a name that is an element if it is interpreted as markup, clears a terminal, and reverses text.
const harm = `<img src=x onerror="document.title='harmed'">"'&` + "\x1b[2J\u202eevil\u05d0"

// staged is a coordinator's window with everything that a special picture shows, and every name chosen to do harm.
func staged(n int) report.Line {
	ms := int64(time.Millisecond)
	end := time.Now().Add(-time.Minute).UnixNano() + int64(n)*1e9
	share := report.Column{Name: "share", Unit: report.Ratio}
	return report.Line{Algorithm: "hhh", Identity: report.Identity{Instance: harm, Interfaces: []string{harm}, Guest: report.Guest{Kind: known.GuestDomain, Name: harm}},
		Window: report.Window{Start: end - 1e9, End: end, Number: n}, Packets: report.Packets{Seen: 1000}, Lost: map[string]uint64{harm: 1},
		Hosts: &report.Hosts{Known: 3, Merged: 2, Missing: 1, MissingNames: []string{harm}},
		Report: report.Body{Notes: []string{harm}, Values: []report.Value{{Name: "use", Value: .5, Low: .4, High: .6, Unit: report.Ratio, Help: harm}, {Name: "mode", Value: harm, Kind: report.Info}},
			Tables: []report.Table{
				{Name: "prefixes", Title: harm, Columns: []report.Column{{Name: "prefix", Label: true}, share, {Name: "who", Label: true}},
					Rows: [][]any{{"10.1.2.0/24", .2, harm}, {"10.0.0.0/8", .5, harm}, {"10.1.0.0/16", .3, harm}, {"2001:db8::/32", .1, harm}, {"192.168.0.0/16", .1, harm}, {"10.1.2.3", .05, harm}}},
				{Name: "slices", Settings: true, Columns: []report.Column{{Name: "slice", Label: true}, {Name: "demand", Unit: report.BitRate, History: true}, {Name: "limit", Unit: report.BitRate, History: true}, {Name: "fairness", Unit: report.Ratio}},
					Rows: [][]any{{harm, 1e6 * float64(n), 5e6, .9}}},
				{Name: "log", Columns: []report.Column{{Name: "length_ns", Unit: report.Nanosecond}, {Name: "peak_ns", Unit: report.Nanosecond}, {Name: "culprit"}, {Name: "begin_ns", Unit: report.Nanosecond, JSON: true}},
					Rows: [][]any{{ms, 2 * ms, harm, end}, {3 * ms, 5 * ms, harm, end + 20*ms}}}}}}
}

// stage serves such windows.
func stage(t *testing.T) string {
	t.Helper()
	var hub feed.Hub
	f := finding.Finding{ID: harm, State: finding.GoesOn, Kind: finding.SlowNetwork, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Prefix, Name: harm}, Interface: harm,
		Since: time.Now().Add(-time.Minute).UnixNano(), Value: finding.Estimate{Value: 1e6, Low: 9e5, High: 2e6, Unit: report.Nanosecond}, Because: harm, Next: harm, What: "median delay", Evidence: []string{"hhh.slices"}}
	over := f
	over.ID, over.State, over.Until = "over", finding.Ends, time.Now().UnixNano()
	a := api.New(api.Options{Hub: &hub, Clock: func() report.Clock { return report.Clock{Name: "unix"} }, Findings: func() []finding.Finding { return []finding.Finding{f} },
		Health: func() (any, bool) {
			return map[string]any{"status": "degraded", "reasons": []string{harm}, "agents": []map[string]any{{"name": harm, "state": "silent", "refused": map[string]int{harm: 1}}}}, false
		}})
	a.Start(report.Run{Version: harm, Command: "coordinator"})
	for n := range 20 {
		a.Add(staged(n))
	}
	a.Found(over)
	server := httptest.NewServer(a.Front(api.Guard{Loopback: true}, web.Front(http.NotFoundHandler())))
	t.Cleanup(func() { hub.Close(); server.Close() })
	return server.URL
}

// Malicious names are text everywhere; elements that only pictures show are included: tree, slices, bursts, time line, missing hosts.
func TestNamesAreText(t *testing.T) {
	t.Parallel()
	base := stage(t)
	b := open(t)
	sound := func(where string) {
		t.Helper()
		if n := b.number(`document.querySelectorAll("img, main script").length + Number(document.title === "harmed")`); n != 0 {
			t.Errorf("%s: a name became an element", where)
		}
		b.quiet(where)
		b.inspect("hostile-" + where)
	}
	b.visit(view(base, ""))
	b.until("the finding, its time line and the instance", `document.querySelector("article.finding.warning") && document.querySelectorAll("svg.timeline rect").length === 2 && document.querySelector("table.instances tbody a")`)
	sound("findings")
	b.shot("findings")
	b.do("follow the finding", chromedp.Click("article.finding.warning .links a"))
	b.until("the row of its subject", `location.hash.includes("algorithm=hhh") && document.querySelector("[data-table=slices] tr.found td")?.textContent.includes("<img")`)
	b.visit(view(base, "instance", "key", harm))
	b.until("the tree of prefixes", `[...document.querySelectorAll("[data-table=prefixes] tbody tr")].map(r => r.querySelector(".depth")?.getAttribute("aria-label") ?? "top").join() === "top,level 1,level 2,level 3,top,top"`)
	b.until("slices over time", `document.querySelector("[data-history=slices] canvas")`)
	b.until("bursts of the queue", `document.querySelectorAll("rect.burst").length === 2`)
	b.until("hosts that are missing", `document.querySelector("main p.error")?.textContent.includes("2 of 3 hosts; missing: <img")`)
	b.shot("hostile-instance")
	sound("instance")
	b.visit(view(base, "hosts"))
	b.until("hosts", `document.querySelector("main table")?.textContent.includes("<img")`)
	b.until("what turns text is an escape", `document.body.innerText.includes("\\u001b[2J\\u202eevil") && !/[\u001b\u202e]/.test(document.body.innerText)`)
	sound("hosts")
}

// Loss, reordering and retransmission are one table by the sender's network, in the view of lean and in that of reorder.
func TestByNetwork(t *testing.T) {
	t.Parallel()
	var hub feed.Hub
	a := api.New(api.Options{Hub: &hub, Clock: func() report.Clock { return report.Clock{Name: "unix"} }, Findings: func() []finding.Finding { return nil }})
	server := httptest.NewServer(a.Front(api.Guard{Loopback: true}, web.Front(http.NotFoundHandler())))
	t.Cleanup(func() { hub.Close(); server.Close() })
	a.Start(report.Run{Command: "attach"})
	flows := func(name, column string, rows ...[]any) report.Table {
		columns := []report.Column{{Name: column, Least: column + "_at_least"}, {Name: column + "_at_least"}}
		return report.Table{Name: name, Columns: append([]report.Column{{Name: "src", Label: true}, {Name: "sport", Label: true}, {Name: "dst", Label: true}, {Name: "dport", Label: true}, {Name: "proto", Label: true}}, columns...), Rows: rows}
	}
	for algorithm, body := range map[string]report.Body{
		"lean": {Tables: []report.Table{
			flows("loss", "lost", []any{"10.1.2.3", 80, "192.0.2.1", 4000, "tcp", 7, 5}, []any{"10.1.2.99", 443, "192.0.2.1", 4001, "tcp", 2, 2}, []any{"2001:db8:0:1::7", 443, "2001:db8:9::1", 4002, "tcp", 1, nil}),
			flows("ooo", "out_of_order"),
			flows("retrans", "retransmitted", []any{"10.1.2.3", 80, "192.0.2.1", 4000, "tcp", 4, 4})}},
		"reorder": {Tables: []report.Table{{Name: "prefixes", Columns: []report.Column{{Name: "prefix", Label: true}, {Name: "share", Unit: report.Ratio, Least: "share_at_least", Most: "share_at_most"}, {Name: "share_at_least", Unit: report.Ratio}, {Name: "share_at_most", Unit: report.Ratio}},
			Rows: [][]any{{"10.1.2.0/24", .25, .2, .3}, {"198.51.100.0/24", .125, .1, .15}}}}},
	} {
		end := time.Now().UnixNano()
		a.Add(report.Line{Algorithm: algorithm, Identity: report.Identity{Instance: "eth0", Interfaces: []string{"eth0"}}, Window: report.Window{Start: end - 1e9, End: end, Number: 1}, Report: body})
	}
	b := open(t)
	for _, algorithm := range []string{"lean", "reorder"} {
		b.visit(view(server.URL, "instance", "key", "eth0", "algorithm", algorithm))
		b.until("the table of networks", `document.querySelectorAll("[data-table=networks] tbody tr").length === 3`)
		var rows []string
		b.do("rows", chromedp.Evaluate(`[...document.querySelectorAll("[data-table=networks] tbody tr")].map(r => [...r.cells].map(c => c.textContent.trim()).join("|"))`, &rows))
		if want := []string{"10.1.2.0/24|2|9 (at least 7)|-|4 (at least 4)|25 % [20 .. 30]", "2001:db8::/48|1|1|-|-|-", "198.51.100.0/24|-|-|-|-|12.5 % [10 .. 15]"}; !slices.Equal(rows, want) {
			t.Errorf("%s: %q, want %q", algorithm, rows, want)
		}
		b.quiet(algorithm)
	}
	b.inspect("networks")
}

// Without web.auth a listener elsewhere shows no page of data; with a token it asks for it.
func TestToken(t *testing.T) {
	t.Parallel()
	var hub feed.Hub
	a := api.New(api.Options{Hub: &hub, Clock: func() report.Clock { return report.Clock{} }})
	const token = "0123456789abcdef"
	server := httptest.NewServer(a.Front(api.Guard{Token: func() string { return token }}, web.Front(http.NotFoundHandler())))
	defer server.Close()
	defer hub.Close()
	b := open(t)
	b.do("open", chromedp.Navigate(server.URL))
	b.until("the form", `document.querySelector("form.login input")`)
	b.inspect("login")
	b.do("give the token", chromedp.SendKeys("form.login input", token), chromedp.Submit("form.login input"), chromedp.WaitVisible("main .section h2"))
	b.until("the page", `document.querySelector("main h2")?.textContent.startsWith("Nothing is wrong")`)
}

// first is what the browser loads before any data: 200 kB at most.
func TestFirstBytes(t *testing.T) {
	server := httptest.NewServer(web.Front(http.NotFoundHandler()))
	defer server.Close()
	get := func(path string) string {
		answer, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(answer.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Fatalf("%s: %d, %v, %v", path, answer.StatusCode, answer.Header, err)
		}
		return string(text)
	}
	seen, total := map[string]bool{}, 0
	var load func(path string)
	load = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		text := get(path)
		total += len(text)
		for _, m := range regexp.MustCompile(`(?:src|href|from) ?=? ?"(\.?/(?:static/)?[a-z]+\.(?:js|css|svg))"`).FindAllStringSubmatch(text, -1) {
			load("/static/" + filepath.Base(m[1]))
		}
	}
	load("/")
	if len(seen) < 10 || total > 200_000 {
		t.Errorf("%d files with %d bytes", len(seen), total)
	}
	for _, bad := range []string{"style=", "<style", "onclick=", "javascript:"} {
		if strings.Contains(get("/"), bad) {
			t.Errorf("the page has %s, which its policy forbids", bad)
		}
	}
}
