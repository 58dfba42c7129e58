package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

// lines are JSON objects, one a line.
type lines struct{ r *bufio.Reader }

func newLines(r io.Reader) lines { return lines{bufio.NewReaderSize(r, 1<<20)} }

func (l lines) next() ([]byte, error) { return l.r.ReadBytes('\n') }

// last reads to the end and decodes the last line.
func (l lines) last(into any) error {
	var line []byte
	for {
		b, err := l.next()
		if len(b) > 0 {
			line = b
		}
		if errors.Is(err, io.EOF) {
			return json.Unmarshal(line, into)
		}
		if err != nil {
			return err
		}
	}
}
