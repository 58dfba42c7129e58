// Command boards writes what shows and watches xdpmon's metrics: Grafana dashboards, recording and alert rules, and the rules' unit tests.
// Names, units and meanings of metrics are those of docs/output.md, which is made of reports; kinds of findings are those of the code.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

//go:generate go run . -root ../..

func main() {
	log.SetFlags(0)
	root := flag.String("root", ".", "folder of the project")
	flag.Parse()
	if err := write(*root); err != nil {
		log.Fatal(err)
	}
}

func write(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "docs", "output.md"))
	if err != nil {
		return fmt.Errorf("read names: %w", err)
	}
	names, err := parseNames(string(text))
	if err != nil {
		return err
	}
	for _, b := range boards(names) {
		d, err := b.build()
		if err != nil {
			return fmt.Errorf("build dashboard %s: %w", b.uid, err)
		}
		text, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return fmt.Errorf("encode dashboard %s: %w", b.uid, err)
		}
		if err := save(filepath.Join(root, "deploy", "grafana", b.uid+".json"), append(text, '\n')); err != nil {
			return err
		}
	}
	groups, tests := rules(names)
	for name, what := range map[string]any{"rules.yaml": groups, "tests.yaml": tests} {
		var b bytes.Buffer
		b.WriteString("# Written by lab/boards: go generate ./boards, in lab.\n")
		e := yaml.NewEncoder(&b)
		e.SetIndent(2)
		if err := e.Encode(what); err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
		if err := save(filepath.Join(root, "deploy", "prometheus", name), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func save(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
