package eval

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Provenance states when, from what sources, with which command and where something was run.
func Provenance(ctx context.Context, command string) string {
	return sourcesNow(ctx).provenance(command)
}

func (s *sources) provenance(command string) string {
	return fmt.Sprintf("%s, %s, `%s`; %s", time.Now().UTC().Format("2006-01-02 15:04 UTC"), s, command, machine())
}

// sources are what a run is made of. They are looked at once, when it begins: it writes pages into the tree itself.
type sources struct {
	commit  string   // "": unknown, outside of a tree
	changed []string // files that differ from the commit, or that it does not have
}

// pages are what studies write, and no study is made of.
const pages = "docs/eval"

// sourcesNow looks at the working tree. The tree of another owner, as with sudo, counts like one's own.
func sourcesNow(ctx context.Context) *sources {
	git := func(args ...string) ([]byte, error) {
		return exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...).Output()
	}
	id, err := git("rev-parse", "--short", "HEAD")
	if err != nil {
		return &sources{}
	}
	s := &sources{commit: strings.TrimSpace(string(id))}
	status, err := git("status", "--porcelain", "--", ":/", ":(top,exclude)"+pages)
	if err != nil {
		return &sources{}
	}
	for line := range strings.Lines(string(status)) {
		s.changed = append(s.changed, strings.TrimSpace(line[min(2, len(line)):]))
	}
	return s
}

// clean reports whether a commit has all of it.
func (s *sources) clean() bool { return s.commit != "" && len(s.changed) == 0 }

// String is the part of a footer: only what a commit has is called one.
func (s *sources) String() string {
	switch {
	case s.commit == "":
		return "draft of sources without a commit"
	case len(s.changed) > 0:
		return fmt.Sprintf("draft: %d files differ from %s", len(s.changed), s.commit)
	}
	return "commit " + s.commit
}

// machine names processor, cores and kernel.
func machine() string {
	var u unix.Utsname
	kernel := "unknown kernel"
	if unix.Uname(&u) == nil {
		kernel = "Linux " + unix.ByteSliceToString(u.Release[:])
	}
	return fmt.Sprintf("%s, %d cores, %s, %s", processor(), runtime.NumCPU(), kernel, runtime.Version())
}

func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
