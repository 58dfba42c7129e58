package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// member is what stands at a path of a JSON object; nil when there is nothing.
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

// wanted are paths, as a tree.
type wanted struct {
	at   int // place of the answer, -1 for a group
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

// pick reads the members at the paths of a tree in one pass, without decoding what stands between them: a window is kilobytes, of which a
// question wants some numbers. Text is a record of this program's own; what is not JSON is refused.
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

// object reads one whose opening brace comes next.
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

// one reads a name and its value.
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

// word reads a string without its quotes. Escapes stay as they are: names that are asked for have none.
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

// skip passes over a value.
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
