// Command oci writes an image of a program for several architectures as a folder in the OCI image layout: one layer with the binary and its configuration,
// without an engine. The same files give the same image.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.out, "out", "", "folder of the layout, which must not be there")
	flag.StringVar(&o.name, "name", "xdpmon", "program: xdpmon or xdpmon-coordinator")
	flag.StringVar(&o.version, "version", "", "of the program")
	flag.StringVar(&o.revision, "revision", "", "commit")
	binaries := flag.String("binaries", "out/build", "folder with ARCH/PROGRAM")
	created := flag.Int64("created", 0, "seconds since 1970 that all times are")
	flag.Parse()
	o.created = time.Unix(*created, 0).UTC()
	for _, arch := range flag.Args() {
		o.binaries = append(o.binaries, binary{arch, filepath.Join(*binaries, arch, o.name)})
	}
	if err := write(o); err != nil {
		fmt.Fprintln(os.Stderr, "oci:", err)
		os.Exit(1)
	}
}
