package config

import (
	file "github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/config/parts"
)

// Schema is the JSON schema of the file, self-contained.
func Schema() ([]byte, error) { return schema(parts.Bundled()) }

// ShippedSchema is the JSON schema that refers to the separate file of algorithms.
func ShippedSchema() ([]byte, error) { return schema(nil) }

func schema(defs map[string]any) ([]byte, error) {
	return file.WriteSchema(whole(), "configuration of xdpmon agent", defs)
}
