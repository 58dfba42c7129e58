package config

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Schema is the JSON schema of the file, for editors and for whoever generates configurations.
func Schema() ([]byte, error) { return schema(whole(), "configuration of xdpmon agent") }

func schema(k kind, title string) ([]byte, error) {
	s := k.Schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return b.Bytes(), nil
}
