// Package all registers every twin: the folders of p4 that have a twin.go.
package all

//go:generate sh -c "(printf '// Code generated from the folders of p4; DO NOT EDIT.\\n\\npackage all\\n\\nimport (\\n'; cd ..; ls */twin.go | sed 's|\\(.*\\)/twin.go|\\t_ \"github.com/xdpmon/xdpmon/p4/\\1\"|'; printf ')\\n') >twins_gen.go"
