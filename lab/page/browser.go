package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/profiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take.
const patience = time.Minute

// chromium is a browser.
type chromium struct {
	ctx context.Context
	end func()
}

func launch(ctx context.Context) (*chromium, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("chromium is missing (.ci/deps test): %w", err)
	}
	profile, err := os.MkdirTemp("", "xdpmon-page")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-component-update", true),
		chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(patience))
	allocator, stop := chromedp.NewExecAllocator(ctx, options...)
	tab, cancel := chromedp.NewContext(allocator)
	c := &chromium{tab, func() {
		_ = chromedp.Cancel(tab)
		cancel()
		stop()
		for range 100 {
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}}
	if err := chromedp.Run(tab); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// open opens a window: the tabs of one that are not in front are hidden, and a hidden page asks for nothing. Each has a browser context, as another person's
// browser has: all windows of one share six connections to a host.
func (c *chromium) open() (context.Context, func(), error) {
	browser := cdp.WithExecutor(c.ctx, chromedp.FromContext(c.ctx).Browser)
	person, err := target.CreateBrowserContext().Do(browser)
	if err != nil {
		return nil, nil, err
	}
	id, err := target.CreateTarget("about:blank").WithNewWindow(true).WithBrowserContextID(person).Do(browser)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := chromedp.NewContext(c.ctx, chromedp.WithTargetID(id))
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 900)); err != nil {
		cancel()
		return nil, nil, err
	}
	return ctx, cancel, nil
}

// loaded is how long a page took, ms.
type loaded struct {
	Paint   float64 // anything
	Content float64 // the list of instances
	Bytes   float64 // on the wire before anything of the API
	Range   float64 // from the choice of a week until its charts are drawn
	Asked   float64 // the longest question of it
}

// watch notes when the list of instances is in the page.
const watch = `new MutationObserver((_, o) => { if (document.querySelector("table.instances tbody a")) { window.shown = performance.now(); o.disconnect(); } }).observe(document, { childList: true, subtree: true });`

// load opens the page as one that has never seen it, and then a week of an instance.
func (c *chromium) load(address, key string) (l loaded, err error) {
	ctx, cancel, err := c.open()
	if err != nil {
		return l, err
	}
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	await := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	err = chromedp.Run(ctx, network.Enable(), network.SetCacheDisabled(true),
		chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(watch).Do(ctx)
			return err
		}),
		chromedp.Navigate(address), chromedp.Poll(`window.shown > 0 && performance.getEntriesByName("first-contentful-paint").length > 0`, nil, chromedp.WithPollingInterval(20*time.Millisecond)),
		chromedp.Evaluate(`({Paint: performance.getEntriesByName("first-contentful-paint")[0].startTime, Content: window.shown,
			Bytes: performance.getEntriesByType("navigation")[0].transferSize + performance.getEntriesByType("resource").filter((e) => !e.name.includes("/api/")).reduce((n, e) => n + e.transferSize, 0)})`, &l))
	if err != nil {
		return l, fmt.Errorf("open the page: %w", err)
	}
	hash := "#/instance?" + url.Values{"key": {key}, "algorithm": {"fridge"}}.Encode()
	ready := `document.querySelectorAll("[data-distribution] canvas").length >= 2`
	if err := chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf(`location.hash = %q`, hash), nil), chromedp.Poll(ready, nil, chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		return l, fmt.Errorf("open an instance: %w", err)
	}
	var chosen struct {
		Range, Asked float64
		Rows         int
		Questions    []string
	}
	if err := startProfile(ctx); err != nil {
		return l, err
	}
	err = chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf(`new Promise((done) => {
		performance.clearResourceTimings();
		const begun = performance.now(), select = document.getElementById("range");
		select.value = "168h";
		select.dispatchEvent(new Event("change"));
		setTimeout(() => new MutationObserver((_, o) => {
			if (!(%s)) return;
			o.disconnect();
			requestAnimationFrame(() => setTimeout(() => {
				const asked = performance.getEntriesByType("resource").filter((e) => e.name.includes("/windows"));
				done({ Range: performance.now() - begun, Asked: Math.max(...asked.map((e) => e.duration)),
					Questions: performance.getEntriesByType("resource").map((e) => [(e.startTime - begun).toFixed(0), "to", (e.responseEnd - begun).toFixed(0), "ms,", e.transferSize, "bytes:", e.name.slice(0, 120)].join(" ")),
					Rows: document.querySelector("[data-distribution] .chart").plot.data[0].length });
			}));
		}).observe(document.getElementById("main"), { childList: true, subtree: true }));
	})`, ready), &chosen, await))
	err = errors.Join(err, endProfile(ctx))
	if err == nil && chosen.Rows < 100 {
		err = fmt.Errorf("%d windows of a week", chosen.Rows)
	}
	if err != nil {
		return l, fmt.Errorf("choose a week: %w", err)
	}
	l.Range, l.Asked = chosen.Range, chosen.Asked
	if *profile != "" {
		log.Printf("a week in %.0f ms:\n  %s", l.Range, strings.Join(chosen.Questions, "\n  "))
	}
	return l, nil
}

// startProfile and endProfile write what the page's scripts do while a week is loaded, if -profile names a file.
func startProfile(ctx context.Context) error {
	if *profile == "" {
		return nil
	}
	return chromedp.Run(ctx, profiler.Enable(), profiler.SetSamplingInterval(200), profiler.Start())
}

func endProfile(ctx context.Context) error {
	if *profile == "" {
		return nil
	}
	return chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		p, err := profiler.Stop().Do(ctx)
		if err != nil {
			return err
		}
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		return os.WriteFile(*profile, text, 0o600)
	}))
}

// follow opens a view and keeps it.
func (c *chromium) follow(address string) (func(), error) {
	ctx, cancel, err := c.open()
	if err != nil {
		return nil, err
	}
	wait, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if err := chromedp.Run(wait, chromedp.Navigate(address), chromedp.Poll(`document.getElementById("status")?.textContent.startsWith("live, last window")`, nil)); err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("open %s", address), err)
	}
	return cancel, nil
}
