package page

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"sync"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axePacked is axe-core (testdata/axe-core), which finds what a screen reader or a weak eye cannot use.
//
//go:embed testdata/axe-core/axe.min.js.gz
var axePacked []byte

var axeScript = sync.OnceValues(func() (string, error) {
	r, err := gzip.NewReader(bytes.NewReader(axePacked))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), err
})

// withAxe loads axe-core into every page of a tab.
func (b *browser) withAxe() {
	b.t.Helper()
	script, err := axeScript()
	if err != nil {
		b.t.Fatal(err)
	}
	b.do("load axe-core", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdppage.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	}))
}

// check runs rules (all if none is given) on the displayed page and fails with their findings. Of a table three rows are checked: the others have the same markup, and a
// thousand of them take minutes.
func (b *browser) check(where string, rules ...string) {
	b.t.Helper()
	var found []string
	b.hold(true) // a window that ends would replace the checked content
	defer b.hold(false)
	options := `{resultTypes: ["violations"]}`
	if len(rules) > 0 {
		options = fmt.Sprintf(`{resultTypes: ["violations"], runOnly: {type: "rule", values: ["%s"]}}`, strings.Join(rules, `", "`))
	}
	b.do("axe-core", chromedp.Evaluate(`axe.run({exclude: [["tbody tr:nth-child(n+4)"]]}, `+options+`).then(r => r.violations.map(v => v.impact + " " + v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(" | ")))`, &found,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, text := range found {
		b.t.Errorf("%s: %s", where, text)
	}
}

// hold pauses drawing, as a pressed mouse button does.
func (b *browser) hold(on bool) {
	b.t.Helper()
	b.do("hold", chromedp.Evaluate(fmt.Sprintf(`dispatchEvent(new Event(%v ? "pointerdown" : "pointerup"))`, on), nil))
}

// theme chooses one without a click, which would draw the view again.
func (b *browser) theme(name string) {
	b.t.Helper()
	b.do(name, chromedp.Evaluate(`document.documentElement.dataset.theme = "`+name+`"`, nil))
}

// accessible checks a view: all rules in light colours, in dark ones those of colours.
func (b *browser) accessible(where string) {
	b.t.Helper()
	b.theme("light")
	b.check(where + ", light")
	b.theme("dark")
	b.check(where+", dark", "color-contrast")
	b.theme("light")
}
