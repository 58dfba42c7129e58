// Package page drives the page in a headless Chromium: with the results of a real run, and with malicious names.
package page

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// browser is a tab that records its errors.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	errors []string
}

// patience is the timeout of a view on a busy machine.
const patience = 30 * time.Second

// chromium is one browser for all tests of this package, each with separate tabs.
type chromium struct {
	ctx     context.Context
	profile string
	end     func()
	err     error
}

var (
	running = sync.OnceValue(start)
	started atomic.Bool
)

func start() (c *chromium) {
	started.Store(true)
	c = &chromium{end: func() {}}
	path, err := exec.LookPath("chromium")
	if err != nil {
		c.err = fmt.Errorf("chromium is missing (.ci/deps test): %w", err)
		return c
	}
	if c.profile, c.err = os.MkdirTemp("", "xdpmon-page"); c.err != nil {
		return c
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-component-update", true), chromedp.UserDataDir(c.profile), chromedp.WSURLReadTimeout(2*patience))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	c.ctx, c.end = ctx, func() {
		_ = chromedp.Cancel(ctx) // it waits for the browser; what it leaves is reported by stop
		cancel()
		end()
	}
	c.err = chromedp.Run(ctx) // the first context ends the browser with it
	return c
}

// stop ends the browser and removes what it wrote.
func (c *chromium) stop() (err error) {
	c.end()
	for range 100 { // its helpers may still write for a moment
		if err = os.RemoveAll(c.profile); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the browser's profile stays: %w", err)
}

func TestMain(m *testing.M) {
	code := m.Run()
	if started.Load() {
		if err := running().stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// open opens a tab.
func open(t *testing.T) *browser {
	t.Helper()
	c := running()
	if c.err != nil {
		t.Fatal(c.err)
	}
	id, err := target.CreateTarget("about:blank").WithNewWindow(true).Do(cdp.WithExecutor(c.ctx, chromedp.FromContext(c.ctx).Browser)) // the tabs of a window that are not in front are hidden
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(c.ctx, chromedp.WithTargetID(id))
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.listen)
	if err := chromedp.Run(ctx, cdplog.Enable(), network.Enable(), chromedp.EmulateViewport(1280, 900)); err != nil { // a tab ends with the context of its first action
		t.Fatal(err)
	}
	b.withAxe()
	return b
}

func (b *browser) listen(e any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, "exception: "+e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			b.errors = append(b.errors, fmt.Sprintf("console %s: %s", e.Type, e.Args[0].Value))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError || e.Entry.Level == cdplog.LevelWarning {
			b.errors = append(b.errors, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			b.errors = append(b.errors, fmt.Sprintf("%d for %s", e.Response.Status, e.Response.URL))
		}
	}
}

// quiet fails with the page's errors.
func (b *browser) quiet(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.errors {
		b.t.Errorf("%s: %s", where, text)
	}
	b.errors = nil
}

func (b *browser) do(what string, actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.text())
	}
}

// text is the page's text, for an error.
func (b *browser) text() (text string) {
	ctx, cancel := context.WithTimeout(b.ctx, time.Second)
	defer cancel()
	_ = chromedp.Run(ctx, chromedp.Evaluate(`document.body.innerText.slice(0, 1500)`, &text))
	return text
}

// until waits for an expression to be true.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	var now bool
	b.do(what, chromedp.Poll("Boolean("+expression+")", &now, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience)))
}

// dragUntil drags until the condition holds, at most five times: a new window moves the chart between finding it and pressing the button.
func (b *browser) dragUntil(what, selector, expression string) {
	b.t.Helper()
	for range 5 {
		b.drag(selector)
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			var now bool
			if b.do(what, chromedp.Evaluate("Boolean("+expression+")", &now)); now {
				return
			}
		}
	}
	b.t.Fatalf("%s: not after five drags", what)
}

func (b *browser) number(expression string) (n float64) {
	b.t.Helper()
	b.do(expression, chromedp.Evaluate(expression, &n))
	return n
}

// view is the address of one.
func view(base, name string, parameters ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		q.Set(parameters[i], parameters[i+1])
	}
	if len(q) == 0 {
		return base + "/#/" + name
	}
	return base + "/#/" + name + "?" + q.Encode()
}

// settled: every section of the view is drawn, and none reports a failure.
const settled = `document.querySelectorAll("main .section").length > 0 && [...document.querySelectorAll("main .section")].every(s => s.children.length > 0 && !s.querySelector(":scope > .waiting"))`

func (b *browser) visit(address string) {
	b.t.Helper()
	var there string
	b.do(address, chromedp.Location(&there))
	base, hash, _ := strings.Cut(address, "#")
	if strings.HasPrefix(there, base) { // as a link does it
		b.do(address, chromedp.Evaluate(fmt.Sprintf(`location.hash === %q || new Promise((done) => { addEventListener("hashchange", () => done(true), { once: true }); location.hash = %q; })`, "#"+hash, hash), nil,
			func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	} else {
		b.do(address, chromedp.Navigate(address))
	}
	b.until(address+" is drawn", settled)
	if n := b.number(`document.querySelectorAll("main [role=alert]").length`); n > 0 {
		b.t.Errorf("%s: %s", address, b.text())
	}
}

// inspect checks a view on a desktop and on a small telephone: for findings of axe-core, and for anything that is wider.
func (b *browser) inspect(where string) {
	b.t.Helper()
	b.accessible(where)
	b.shots(where)
	b.do("360 px", emulation.SetDeviceMetricsOverride(360, 800, 1, true))
	b.until(where+" at 360 px", `document.documentElement.clientWidth <= 360`)
	n := b.number(`document.documentElement.scrollWidth`)
	for range 40 { // charts resize when they are notified of their size
		if n <= 360 {
			break
		}
		time.Sleep(50 * time.Millisecond)
		n = b.number(`document.documentElement.scrollWidth`)
	}
	if n > 360 {
		var wide []string
		b.do("who", chromedp.Evaluate(`[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > 361 && !e.closest(".scroll")).slice(0, 5).map(e => e.tagName + "." + e.className)`, &wide))
		b.t.Errorf("%s: %v px wide at 360: %v", where, n, wide)
	}
	b.accessible(where + " at 360 px")
	b.shots(where + "-360")
	b.do("1280 px", chromedp.EmulateViewport(1280, 900))
}

// shots takes screenshots in both colours.
func (b *browser) shots(name string) {
	b.t.Helper()
	if os.Getenv("XDPMON_SCREENSHOTS") == "" {
		return
	}
	for _, theme := range []string{"dark", "light"} {
		b.repaint(theme)
		b.shot(name + "-" + theme)
	}
}

// repaint draws the view in other colours, as the button does.
func (b *browser) repaint(theme string) {
	b.t.Helper()
	b.do(theme, chromedp.Evaluate(fmt.Sprintf(`document.documentElement.dataset.theme = %q === "dark" ? "light" : "dark"; document.getElementById("theme").click()`, theme), nil))
	b.until(theme, `document.querySelector("form.login") || `+settled+` && (!location.hash.includes("instance") || document.querySelector("main details.fold"))`)
}

// shot keeps a picture where XDPMON_SCREENSHOTS names a folder.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("XDPMON_SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	b.do("picture", chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// drag moves the mouse over a chart, which zooms.
func (b *browser) drag(selector string) {
	b.t.Helper()
	var box [4]float64
	b.do("where the chart is", chromedp.ScrollIntoView(selector), chromedp.Evaluate(fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.left, r.top, r.width, r.height] })()`, selector), &box))
	y, from, to := box[1]+box[3]/2, box[0]+box[2]*.58, box[0]+box[2]*.98
	mouse := func(kind input.MouseType, x float64) chromedp.Action {
		return input.DispatchMouseEvent(kind, x, y).WithButton(input.Left).WithButtons(1).WithClickCount(1)
	}
	b.do("drag", mouse(input.MouseMoved, from), mouse(input.MousePressed, from), mouse(input.MouseMoved, (from+to)/2), mouse(input.MouseMoved, to), mouse(input.MouseReleased, to))
}
