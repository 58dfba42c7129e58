package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// member is the value at a path of a JSON object; nil if there is none.
func member(text json.RawMessage, path string) json.RawMessage {
	for key := range strings.SplitSeq(path, ".") {
		var o map[string]json.RawMessage
		if json.Unmarshal(text, &o) != nil {
			return nil
		}
		if text = o[key]; text == nil {
			return nil
		}
	}
	return text
}

// wanted is a tree of paths.
type wanted struct {
	at   int // index of the result, -1 for a group
	next map[string]*wanted
}

func tree(paths []string) *wanted {
	root := &wanted{at: -1, next: map[string]*wanted{}}
	for i, p := range paths {
		w := root
		for key := range strings.SplitSeq(p, ".") {
			if w.next[key] == nil {
				w.next[key] = &wanted{at: -1, next: map[string]*wanted{}}
			}
			w = w.next[key]
		}
		w.at = i
	}
	return root
}

var errNotJSON = errors.New("no JSON")

// pick extracts the values at the paths of a tree in one pass, without decoding the rest: a window has kilobytes, of which a
// query needs a few numbers. text is a record of this program; invalid JSON is rejected.
func pick(text []byte, w *wanted, out []json.RawMessage) error {
	for i := range out {
		out[i] = nil
	}
	s := scanner{text: text}
	if err := s.object(w, out); err != nil {
		return fmt.Errorf("read a window at byte %d: %w", s.at, err)
	}
	return nil
}

type scanner struct {
	text []byte
	at   int
}

func (s *scanner) peek() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// object scans an object, from its opening brace.
func (s *scanner) object(w *wanted, out []json.RawMessage) error {
	if s.peek() != '{' {
		return errNotJSON
	}
	s.at++
	for {
		switch s.peek() {
		case '}':
			s.at++
			return nil
		case ',':
			s.at++
		case '"':
			if err := s.one(w, out); err != nil {
				return err
			}
		default:
			return errNotJSON
		}
	}
}

// one scans a name and its value.
func (s *scanner) one(w *wanted, out []json.RawMessage) error {
	name, err := s.word()
	if err != nil {
		return err
	}
	if s.peek() != ':' {
		return errNotJSON
	}
	s.at++
	next := w.next[string(name)]
	begin := s.at
	if next != nil && len(next.next) > 0 && s.peek() == '{' {
		err = s.object(next, out)
	} else {
		err = s.skip()
	}
	if err == nil && next != nil && next.at >= 0 {
		out[next.at] = bytes.TrimSpace(s.text[begin:s.at])
	}
	return err
}

// word scans a string without its quotes. Escapes are not decoded: requested names have none.
func (s *scanner) word() ([]byte, error) {
	s.at++
	for begin := s.at; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return s.text[begin : s.at-1], nil
		}
	}
	return nil, errNotJSON
}

// skip skips a value.
func (s *scanner) skip() error {
	depth := 0
	for {
		switch c := s.peek(); c {
		case 0:
			return errNotJSON
		case '"':
			if _, err := s.word(); err != nil {
				return err
			}
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			depth--
			s.at++
		case ',', ':':
			s.at++
			continue
		default:
			for s.at < len(s.text) && !strings.ContainsRune(",:]}{[\" \t\r\n", rune(s.text[s.at])) {
				s.at++
			}
		}
		if depth < 0 {
			return errNotJSON
		}
		if depth == 0 {
			return nil
		}
	}
}
