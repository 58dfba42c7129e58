// Command genalgos writes the import list of all algorithms from the folders: every bpf/NAME that has a userspace/NAME
// is one. It is run by go generate in cmd/xdpmon, and a test compares.
package main

import (
	"flag"
	"log"
	"os"

	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/genalgos/list"
)

func main() {
	log.SetFlags(0)
	root := flag.String("root", ".", "root of the repository")
	out := flag.String("out", "algorithms_gen.go", "file to write")
	pkg := flag.String("package", "main", "package of the file")
	flag.Parse()
	text, err := list.Generate(*root, *pkg)
	if err != nil {
		log.Fatalf("genalgos: %v", err)
	}
	if err := os.WriteFile(*out, text, 0o644); err != nil {
		log.Fatalf("genalgos: %v", err)
	}
}
