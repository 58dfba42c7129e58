// Command systemd installs the packages on a fresh Debian 12 with systemd as its init (a container tree of mmdebstrap, by systemd-nspawn), by dpkg and by rpm: starts, first answers, upgrades
// under load, rotated logs, removals and purges, and what is left.
//
//	lab/run systemd -packages out -old 0.1.0~dev -new 0.1.1~dev -out docs/packages.md
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

var (
	packages = flag.String("packages", "out", "folder with the packages of both versions")
	older    = flag.String("old", "0.1.0~dev", "version that is installed first")
	newer    = flag.String("new", "0.1.1~dev", "version of the upgrade")
	archive  = flag.String("tree", defaultTree(), "tree of a Debian 12; made where there is none (mmdebstrap)")
	rate     = flag.Int("rate", 20_000, "packets a second while there is load")
	out      = flag.String("out", "", "page of docs to write")
	by       = flag.String("by", "dpkg,rpm,root", "packagers to go through: dpkg and rpm in a container, rpm in an empty root")
	keep     = flag.Bool("keep", false, "keep the tree after a failure")
)

func defaultTree() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "xdpmon", "debian12-tree.tar")
}

// row is a line of the page.
type row struct{ how, what, seen string }

func main() {
	log.SetFlags(0)
	log.SetPrefix("systemd: ")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	rows, err := all(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if *out != "" {
		if err := os.WriteFile(*out, []byte(page(rows)), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// all tests the packagers, each in a tree of its own; the first thing that is not as it should be ends it.
func all(ctx context.Context) (rows []row, err error) {
	if err := fresh(ctx, *archive); err != nil {
		return nil, err
	}
	for _, p := range []packager{dpkg, rpm} {
		if !strings.Contains(*by, p.name) {
			continue
		}
		more, err := inContainer(ctx, p)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}
	if !strings.Contains(*by, "root") {
		return rows, nil
	}
	more, err := emptyRoot(ctx)
	return append(rows, more...), err
}

func inContainer(ctx context.Context, p packager) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "xdpmon-systemd-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil || !*keep {
			_ = os.RemoveAll(dir)
		}
	}()
	began := time.Now()
	c, err := boot(ctx, *archive, dir)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	j := &journey{c: c, p: p}
	j.see("a fresh Debian 12 boots", fmt.Sprintf("systemd %s in %.1f s", j.answer("systemctl --version | sed -n 's/^systemd \\([0-9]*\\).*/\\1/p'"), time.Since(began).Seconds()))
	err = j.walk(ctx)
	return j.rows, err
}

func page(rows []row) string {
	commit, _ := exec.Command(".ci/revision").Output()
	kernel, _ := exec.Command("uname", "-r").Output()
	var b strings.Builder
	fmt.Fprintf(&b, `# Packages on a fresh Debian 12

What `+"`make systemd`"+` does with the packages of both programs, and how it last ended: a tree of mmdebstrap whose init is systemd (systemd-nspawn), without any file of this checkout but the packages. Nothing is done by hand but
the configuration. Load is %d datagrams a second over a veth into the tree, on which nothing else is; what is counted is compared with what was sent.

| by | step | seen |
|---|---|---|
`, *rate)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.how, r.what, strings.ReplaceAll(r.seen, "|", "\\|"))
	}
	fmt.Fprintf(&b, `
The packagers of other distributions have not been tried: rpm is Debian's, with --nodeps (it knows no shadow-utils there).

%s, commit %s, Linux %s.
`, time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), strings.TrimSpace(string(kernel)))
	return b.String()
}
