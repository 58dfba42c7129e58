package main

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// Sizes of a cell and colours, those of the page in dark.
const (
	cellWidth, cellHeight = 8.4, 18
	margin                = 12
	back, front, soft     = "#12171d", "#e8edf2", "#aeb9c5"
	critical, warning     = "#ff8fa8", "#ffb454"
)

// draw makes an SVG whose frames follow each other as they did on the screen, again and again. A line that several frames have stands once. Whoever wants no
// motion (prefers-reduced-motion) sees the last frame.
func draw(title string, frames []frame, columns int, last time.Duration) string {
	height := 0
	for _, f := range frames {
		height = max(height, used(f.lines))
	}
	total := frames[len(frames)-1].at + last
	var b strings.Builder
	w, tall := float64(columns)*cellWidth+2*margin, float64((height+1)*cellHeight+2*margin)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14" fill="%s">`+"\n", w, tall, html.EscapeString("terminal session: "+title), front)
	style(&b, frames, total)
	lines := define(&b, frames)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/><text x="%d" y="%.1f" fill="%s">%s</text>`+"\n", back, margin, margin+13.5, soft, html.EscapeString(title))
	for n, f := range frames {
		fmt.Fprintf(&b, `<g class="f f%d">`, n)
		for y, text := range f.lines {
			if id, ok := lines[text]; ok {
				fmt.Fprintf(&b, `<use xlink:href="#l%d" y="%d"/>`, id, (y+1)*cellHeight)
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// used is how many lines of a screen have something.
func used(lines []string) int {
	for n := len(lines); n > 0; n-- {
		if lines[n-1] != "" {
			return n
		}
	}
	return 0
}

// style shows each frame for its time.
func style(b *strings.Builder, frames []frame, total time.Duration) {
	b.WriteString("<style>\n")
	if len(frames) > 1 {
		fmt.Fprintf(b, ".f { visibility: hidden; animation-duration: %.1fs; animation-iteration-count: infinite; animation-timing-function: step-end; }\n", total.Seconds())
		for n, f := range frames {
			from, to := share(f.at, total), 100.
			if n+1 < len(frames) {
				to = share(frames[n+1].at, total)
			}
			fmt.Fprintf(b, ".f%d { animation-name: k%d; }\n@keyframes k%d { 0%% { visibility: %s; } ", n, n, n, map[bool]string{true: "visible", false: "hidden"}[n == 0])
			if n > 0 {
				fmt.Fprintf(b, "%.2f%% { visibility: visible; } ", from)
			}
			if n+1 < len(frames) {
				fmt.Fprintf(b, "%.2f%% { visibility: hidden; } ", to)
			}
			b.WriteString("}\n")
		}
		fmt.Fprintf(b, "@media (prefers-reduced-motion: reduce) { .f { animation: none; } .f%d { visibility: visible; } }\n", len(frames)-1)
	}
	b.WriteString("</style>\n")
}

func share(at, total time.Duration) float64 { return 100 * at.Seconds() / total.Seconds() }

// define writes each different line once.
func define(b *strings.Builder, frames []frame) map[string]int {
	ids := map[string]int{}
	b.WriteString("<defs>\n")
	for _, f := range frames {
		for _, text := range f.lines {
			if _, known := ids[text]; known || text == "" {
				continue
			}
			ids[text] = len(ids)
			fill := ""
			switch {
			case strings.Contains(text, "CRITICAL"):
				fill = fmt.Sprintf(` fill="%s"`, critical)
			case strings.Contains(text, "WARNING"):
				fill = fmt.Sprintf(` fill="%s"`, warning)
			}
			indent := len(text) - len(strings.TrimLeft(text, " "))
			fmt.Fprintf(b, `<text id="l%d" x="%.1f" y="%.1f" xml:space="preserve"%s>%s</text>`+"\n", ids[text], margin+float64(indent)*cellWidth, margin+13.5, fill, html.EscapeString(text[indent:]))
		}
	}
	b.WriteString("</defs>\n")
	return ids
}
