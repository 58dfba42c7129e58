package site

import (
	"strconv"
	"strings"
	"text/scanner"
)

// lexeme of a C source, with its place.
type lexeme struct {
	text     string
	kind     rune
	from, to int
}

// C finds the sites of a BPF program or header. Preprocessor lines other than the bodies of macros that are code, declarations of
// maps and constants, and case labels stay as they are.
func C(file string, text []byte) []Site {
	var list []Site
	tokens := lexemesOf(text)
	depth, inside := 0, 0 // braces, parentheses
	for i, t := range tokens {
		switch t.text {
		case "{":
			depth++
		case "}":
			depth--
		case "(":
			inside++
		case ")":
			inside--
		}
		if depth == 0 || skipped(text, t) {
			continue
		}
		if s, ok := cOperator(tokens, i); ok {
			list = append(list, place(file, text, t, s.operator, s.to))
		}
		if to, ok := offByOne(tokens, i); ok {
			list = append(list, place(file, text, t, "constant", to))
		}
		if end, ok := statement(tokens, i); ok && inside == 0 {
			s := place(file, text, t, "statement", ";")
			s.To = end
			s.Old = string(text[s.From:s.To])
			list = append(list, s)
		}
	}
	return list
}

func place(file string, text []byte, t lexeme, operator, to string) Site {
	return Site{File: file, Line: line(text, t.from), Operator: operator, From: t.from, To: t.to, Old: t.text, New: to}
}

// lexemesOf scans C with Go's scanner, whose tokens of operators and comments are the same; two characters that make one
// operator are put together.
func lexemesOf(text []byte) []lexeme {
	var s scanner.Scanner
	s.Init(strings.NewReader(string(text)))
	s.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanFloats | scanner.ScanChars | scanner.ScanStrings | scanner.ScanComments | scanner.SkipComments
	s.Error = func(*scanner.Scanner, string) {}
	var list []lexeme
	for r := s.Scan(); r != scanner.EOF; r = s.Scan() {
		t := lexeme{text: s.TokenText(), kind: r, from: s.Position.Offset, to: s.Position.Offset + len(s.TokenText())}
		if n := len(list); n > 0 && list[n-1].to == t.from && joins(list[n-1].text, t.text) {
			list[n-1].text += t.text
			list[n-1].to = t.to
			continue
		}
		list = append(list, t)
	}
	return list
}

func joins(a, b string) bool {
	switch a + b {
	case "<=", ">=", "==", "!=", "&&", "||", "<<", ">>", "+=", "-=", "|=", "&=", "++", "--", "->", "<<=", ">>=", "*=", "/=", "^=":
		return true
	}
	return false
}

// skipped lines hold no code that runs, or code whose meaning is declared.
func skipped(text []byte, t lexeme) bool {
	start := strings.LastIndexByte(string(text[:t.from]), '\n') + 1
	head := strings.TrimSpace(string(text[start:t.from]))
	whole := head + string(text[t.from:min(len(text), t.from+80)])
	whole, _, _ = strings.Cut(whole, "\n")
	for _, word := range []string{"#", "_Static_assert", "__uint(", "__type(", "SEC(", "TAG(", "case ", "return XDP", "__always_inline", "__noinline"} {
		if strings.HasPrefix(whole, word) || strings.Contains(head, word) {
			return true
		}
	}
	return strings.Contains(whole, "_Static_assert") || strings.Contains(whole, "static ")
}

// cOperator leaves alone what only looks like an operator: pointers, addresses, signs.
func cOperator(tokens []lexeme, i int) (s struct{ operator, to string }, ok bool) {
	t := tokens[i]
	s, ok = swaps[t.text]
	if !ok || i == 0 || i+1 == len(tokens) {
		return s, false
	}
	if t.text == "*" || t.text == "-" || t.text == "+" {
		before := tokens[i-1]
		value := before.kind == scanner.Ident || before.kind == scanner.Int || before.text == ")" || before.text == "]"
		if !value || typeWord(before.text) || (t.text == "*" && (tokens[i+1].text == ")" || pointer(tokens, i))) {
			return s, false
		}
	}
	return s, true
}

func typeWord(word string) bool {
	return word == "return" || word == "void" || word == "const" || strings.HasPrefix(word, "__u") || strings.HasPrefix(word, "__s") || word == "char"
}

// pointer reports a declaration: struct x *y.
func pointer(tokens []lexeme, i int) bool {
	return i >= 2 && (tokens[i-2].text == "struct" || tokens[i-2].text == "enum")
}

// offByOne turns a small integer into its neighbour.
func offByOne(tokens []lexeme, i int) (string, bool) {
	t := tokens[i]
	if t.kind != scanner.Int || (i > 0 && tokens[i-1].text == "[") && tokens[i+1].text == "]" && i > 1 && typeWord(tokens[i-2].text) {
		return "", false
	}
	n, err := strconv.ParseInt(t.text, 0, 64)
	if err != nil {
		return "", false
	}
	return strconv.FormatInt(n+1, 10), true
}

// statement recognises an expression statement that can be dropped: it begins after one of { } ; and is a call, an assignment
// or a return without a value.
func statement(tokens []lexeme, i int) (end int, ok bool) {
	if i == 0 || !strings.Contains("{};", tokens[i-1].text) || tokens[i].kind != scanner.Ident {
		return 0, false
	}
	switch tokens[i].text {
	case "if", "for", "while", "switch", "do", "else", "struct", "enum", "static", "const", "goto", "case", "default", "break", "asm", "return", "__asm__":
		return 0, false
	}
	if i+1 < len(tokens) && (tokens[i+1].kind == scanner.Ident || tokens[i+1].text == ":" || tokens[i+1].text == "*") {
		return 0, false // a declaration or a label
	}
	depth := 0
	for _, t := range tokens[i:] {
		switch t.text {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		case "{", "}":
			return 0, false
		case ";":
			if depth == 0 {
				return t.to, true
			}
		}
	}
	return 0, false
}
