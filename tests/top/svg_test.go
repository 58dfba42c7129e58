package top

import (
	"fmt"
	"html"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	top "github.com/xdpmon/xdpmon/userspace/top"
	"github.com/xdpmon/xdpmon/userspace/top/client"
)

// Sizes of a cell, and the colours of a terminal (those of the page in dark).
const (
	cellWidth, cellHeight = 8.4, 18
	back, front           = "#12171d", "#e8edf2"
)

// picture draws a grid of cells as SVG: text in runs of one style, so that it can be read, copied and searched.
func picture(rows [][]uv.Cell) string {
	width, height := float64(len(rows[0]))*cellWidth, float64(len(rows)*cellHeight)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14">`+"\n", width+16, height+16)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", back)
	for y, row := range rows {
		for x := 0; x < len(row); {
			n := x + 1
			for n < len(row) && row[n].Style.Equal(&row[x].Style) {
				n++
			}
			run(&b, row[x:n], float64(x)*cellWidth+8, float64(y*cellHeight)+8)
			x = n
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func run(b *strings.Builder, cells []uv.Cell, x, y float64) {
	text := ""
	for _, c := range cells {
		if c.Width > 0 || c.Content != "" {
			text += cmpOr(c.Content, " ")
		}
	}
	s := cells[0].Style
	fill, ground := shade(s.Fg, front), ""
	if s.Attrs&uv.AttrReverse != 0 {
		fill, ground = back, fill
	}
	wide := float64(len(cells)) * cellWidth
	if ground != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y, wide, cellHeight, ground)
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	style := ""
	if s.Attrs&uv.AttrBold != 0 {
		style += ` font-weight="bold"`
	}
	if s.Attrs&uv.AttrFaint != 0 && s.Attrs&uv.AttrReverse == 0 {
		style += ` opacity=".75"`
	}
	if s.Underline != 0 {
		style += ` text-decoration="underline"`
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s" textLength="%.1f" xml:space="preserve"%s>%s</text>`+"\n", x, y+13.5, fill, wide, style, html.EscapeString(text))
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// shade is a colour of the palette, light enough for the background.
func shade(c color.Color, otherwise string) string {
	if c == nil {
		return otherwise
	}
	r, g, b, _ := c.RGBA()
	switch {
	case r > g && g > b/2 && g > r/3:
		return "#ffb454" // yellow: a warning
	case r > g && r > b:
		return "#ff8fa8" // red: critical
	case g > r && b > r:
		return "#7cb8f5" // cyan: pictures
	case g > r:
		return "#6fd3a7" // green
	}
	return otherwise
}

// Pictures for docs are made of a run: XDPMON_SCREENSHOTS=DIR XDPMON_TOP=ADDRESS go test ./tests/top -run Pictures.
func TestPictures(t *testing.T) {
	dir, address := os.Getenv("XDPMON_SCREENSHOTS"), os.Getenv("XDPMON_TOP")
	if dir == "" {
		rows := [][]uv.Cell{{{Content: "<", Width: 1, Style: uv.Style{Attrs: uv.AttrReverse}}, {Content: "界", Width: 2}, {}}}
		if text := picture(rows); !strings.Contains(text, "&lt;") || !strings.Contains(text, "界") || strings.Contains(text, "><<") {
			t.Errorf("%s", text)
		}
		return
	}
	target, err := client.Remote(address, client.Access{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(tm *terminal, name string) {
		for ext, text := range map[string]string{".svg": picture(tm.grid()), ".txt": tm.text()} {
			if err := os.WriteFile(filepath.Join(dir, name+ext), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, size := range [][2]int{{80, 24}, {120, 30}, {200, 50}} {
		name := fmt.Sprintf("-%dx%d", size[0], size[1])
		tm := open(t, target, size[0], size[1], func(o *top.Options) { o.Now = time.Now })
		tm.until("instance", "last window")
		settle(tm)
		write(tm, "top"+name)
		tm.press("G", enter)
		tm.until("[", "packets")
		settle(tm)
		write(tm, "top-instance"+name)
		for n := range 3 {
			tm.press(right)
			settle(tm)
			write(tm, fmt.Sprintf("top-instance%d%s", n+2, name))
		}
		tm.press("d")
		settle(tm)
		write(tm, "top-details"+name)
		tm.press("q")
		tm.await()
	}
}

// settle waits until nothing has been drawn for a moment.
func settle(tm *terminal) {
	for {
		select {
		case <-tm.drawn:
		case <-time.After(700 * time.Millisecond):
			return
		}
	}
}
