// Command tool is what lab/kernels/run cannot do in shell:
//
//	tool trace FILE            writes a small capture whose packets are the same every time
//	tool pack DIR FILE         makes an initramfs of a folder
//	tool report LOG...         makes docs/kernels.md of what the virtual machines printed; exit code 1 when a check failed
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "trace":
		return writeFile(args[1], trace)
	case len(args) == 3 && args[0] == "pack":
		return pack(args[1], args[2])
	case len(args) > 1 && args[0] == "report":
		return report(os.Stdout, args[1:])
	}
	return fmt.Errorf("wrong usage %q: trace FILE, pack DIR FILE or report LOG (one or more)", args)
}
