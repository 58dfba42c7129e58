package config

import file "github.com/xdpmon/xdpmon/userspace/config"

// Schema is the JSON schema of the file.
func Schema() ([]byte, error) { return file.WriteSchema(whole(), "configuration of xdpmon agent") }
