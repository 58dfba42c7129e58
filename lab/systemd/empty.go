package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// emptyRoot is what rpm makes of a root in which there is nothing: every file with its owner and mode as the package has it, and nothing after the erasure. There is no
// shell in it, so that the scripts do not run; they have run in the container.
func emptyRoot(ctx context.Context) (rows []row, err error) {
	root, err := os.MkdirTemp("", "xdpmon-root-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	call := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "rpm", append([]string{"--force-debian", "--root", root}, args...)...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("rpm %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return string(out), nil
	}
	files := 0
	for _, program := range both {
		for _, version := range []string{*older, *newer} {
			name, err := filepath.Abs(filepath.Join(*packages, fmt.Sprintf(rpm.pattern, program, version)))
			if err != nil {
				return nil, err
			}
			if _, err := call("--nodeps", "--noscripts", "-U", name); err != nil {
				return nil, err
			}
			// What differs from the package in size, digest, owner, mode is listed, and is an exit code.
			if _, err := call("--nodeps", "--noscripts", "-V", program); err != nil {
				return nil, err
			}
		}
		list, err := call("-ql", program)
		if err != nil {
			return nil, err
		}
		files += strings.Count(list, "\n")
	}
	for _, program := range both {
		if _, err := call("--nodeps", "--noscripts", "-e", program); err != nil {
			return nil, err
		}
	}
	var left []string
	err = filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.Contains(filepath.Base(path), "xdpmon") && path != root {
			left = append(left, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("rpm in an empty root: left after the erasure: %v", left)
	}
	r := row{"rpm, empty root", "install, upgrade, verify (`rpm -V`), erase, without scripts", fmt.Sprintf("%d files with the sizes, digests, owners and modes of the packages; nothing of the names is left", files)}
	log.Printf("%s: %s: %s", r.how, r.what, r.seen)
	return []row{r}, err
}
