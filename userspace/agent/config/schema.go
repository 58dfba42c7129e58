package config

import (
	file "github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/config/parts"
)

// Schema is the JSON schema of the file, whole by itself.
func Schema() ([]byte, error) { return schema(parts.Bundled()) }

// ShippedSchema refers to the file of algorithms beside it.
func ShippedSchema() ([]byte, error) { return schema(nil) }

func schema(defs map[string]any) ([]byte, error) {
	return file.WriteSchema(whole(), "configuration of xdpmon agent", defs)
}
