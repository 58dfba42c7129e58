package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// A program's screens become frames, and what it writes is text in the picture, whatever it is.
func TestRecord(t *testing.T) {
	frames, err := record([]string{"sh", "-c", `printf 'first <b>&\n'; sleep .3; printf '\033[2J\033[Hsecond WARNING \033[31mred\033[0m\n'; sleep .3; stty size`})
	if err != nil {
		t.Fatal(err)
	}
	text := draw("$ test", frames, 100, time.Second)
	for _, want := range []string{">first &lt;b&gt;&amp;<", ">second WARNING red<", ">30 100<", "@keyframes k1", `fill="` + warning} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if len(frames) < 2 || strings.Contains(strings.Join(frames[len(frames)-1].lines, ""), "first") {
		t.Errorf("%d frames, the last %q", len(frames), frames[len(frames)-1].lines)
	}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("no SVG: %v", err)
		}
	}
}
