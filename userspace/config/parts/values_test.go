package parts

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/keys"
)

// decode reads a value of a kind, and returns the errors.
func decode(t *testing.T, k config.Kind, text string) (any, string) {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	p := &config.Parser{File: "f"}
	v, ok := config.Decode(p, k, n.Content[0])
	problems := ""
	for _, one := range p.Problems {
		problems += one.Text + "\n"
	}
	if ok != (problems == "") {
		t.Errorf("%s: %v, but %q", text, ok, problems)
	}
	return v, problems
}

// What a value of a file may be, and what the error is where it may not.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		kind config.Kind
		good []string
		bad  map[string]string
	}{
		{Window, []string{"100ms", "24h", "10s"}, map[string]string{"99ms": "allowed are 100ms to 24h", "24h1ns": "allowed are", "10": "give a duration"}},
		{RuleName, []string{"a", "A.b_c-9", strings.Repeat("n", 32)}, map[string]string{strings.Repeat("n", 33): "1 to 32 letters", "'-a'": "1 to 32", "a/b": "1 to 32", "''": "empty"}},
		{Patterns, []string{"[a, 'eth*', '[a-z]?']"}, map[string]string{"[]": "empty", "a": "is a list", "['a/b']": "without / and blanks", "['a b']": "without / and", "['[a']": "give a name"}},
		{HostName, []string{"host-1.example"}, map[string]string{"a..b": "1 to 64"}},
		{Servers("servers"), []string{"['tls://h:4222', 'nats://127.0.0.1:4222', 'tls://[::1]']"}, map[string]string{"[]": "empty", "['http://h']": "tls:// or nats://", "['tls://']": "tls://HOST:PORT", "['tls://h/path']": "tls://HOST:PORT",
			"['tls://u@h']": "tls://HOST:PORT", "['tls://h:x']": "tls://HOST:PORT", "['h']": "tls://HOST:PORT"}},
		{Address("listen"), []string{"h:4222", "'[::1]:1'", "'0.0.0.0:0'"}, map[string]string{"h": "HOST:PORT", "':1'": "HOST:PORT", "h:99999": "is not a TCP port", "h:none-such": "is not a TCP port"}},
		{KeyFiles(), []string{"{ca: /a, certificate: /b, key: /c}", "{ca: /a, certificate: /b, key: /c, revoked: /d}"}, map[string]string{"{certificate: /b, key: /c}": "keys lacks ca", "{ca: /a, key: /c}": "lacks certificate", "{ca: /a, certificate: /b}": "lacks key",
			"{ca: a, certificate: /b, key: /c}": "absolute path"}},
	} {
		for _, text := range c.good {
			if _, problems := decode(t, c.kind, text); problems != "" {
				t.Errorf("%s: %s", text, problems)
			}
		}
		for text, want := range c.bad {
			if _, problems := decode(t, c.kind, text); !strings.Contains(problems, want) {
				t.Errorf("%s: %q, want %q", text, problems, want)
			}
		}
	}
	v, _ := decode(t, KeyFiles(), "{ca: /a, certificate: /b, key: /c, revoked: /d}")
	if v != (keys.Files{CA: "/a", Certificate: "/b", Key: "/c", Revoked: "/d"}) {
		t.Errorf("%+v", v)
	}
}

// Without keys a server is on this host and not encrypted; with keys all are encrypted.
func TestCheckServers(t *testing.T) {
	for _, c := range []struct {
		server string
		keys   bool
		want   string
	}{
		{"tls://h:4222", true, ""}, {"tls://h:4222", false, "needs keys"}, {"tls://127.0.0.1", false, "needs keys"}, {"nats://127.0.0.1:4222", false, ""}, {"nats://[::1]:4222", false, ""}, {"nats://localhost", false, ""},
		{"nats://127.0.0.1:4222", true, "use tls://127.0.0.1:4222"}, {"nats://10.1.1.1", false, "use tls://10.1.1.1"}, {"nats://h", false, "use tls://h"}, {"%", false, ""},
	} {
		p := &config.Parser{File: "f"}
		var files *keys.Files
		if c.keys {
			files = &keys.Files{}
		}
		CheckServers(p, &yaml.Node{}, []string{c.server}, files)
		if c.want == "" != (len(p.Problems) == 0) || c.want != "" && !strings.Contains(p.Problems[0].Text, c.want) {
			t.Errorf("%s with keys %v: %+v, want %q", c.server, c.keys, p.Problems, c.want)
		}
	}
}

func init() {
	algo.Register(&algo.Descriptor{Name: "test-parts", Summary: "what it is", Params: []algo.Param{{Key: "n", Type: algo.Int, Default: "3", Help: "how many"}, {Key: "kind", Type: algo.Enum, Choices: []string{"a", "b"}, Default: "a", Help: "which"}}})
}

// The schema has each algorithm with what it is, and its parameters with what they are and may be.
func TestAlgorithmsSchema(t *testing.T) {
	text, err := AlgorithmsSchema()
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		ID         string `json:"$id"`
		Properties map[string]struct {
			Description string
			Properties  map[string]map[string]any
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	one := s.Properties["test-parts"]
	if n, kind := one.Properties["n"], one.Properties["kind"]; s.ID != AlgorithmsFile || one.Description != "what it is" || n["description"] != "how many" || n["default"] != "3" || n["type"] == nil || kind["type"] != nil || len(kind["enum"].([]any)) != 2 {
		t.Errorf("%s", text)
	}
	if got := (Algorithms{}).Schema(); got["$ref"] != AlgorithmsFile || Bundled()["algorithms"] == nil {
		t.Errorf("%v", got)
	}
}
