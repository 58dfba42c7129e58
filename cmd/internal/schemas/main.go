// Command schemas writes the JSON schemas of all configurations, into a folder.
package main

import (
	"log"
	"os"
	"path/filepath"

	agent "github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/ahab/slices"
	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/config/parts"
	coordinator "github.com/xdpmon/xdpmon/userspace/coordinator/config"
)

//go:generate go run . ../../../deploy

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: schemas FOLDER")
	}
	for name, schema := range map[string]func() ([]byte, error){
		"agent.schema.json": agent.ShippedSchema, "coordinator.schema.json": coordinator.ShippedSchema,
		parts.AlgorithmsFile: parts.AlgorithmsSchema, "slices.schema.json": slices.Schema,
	} {
		text, err := schema()
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}
