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

// provenance states when, from what, how and where a section was run.
func (o *Options) provenance(ctx context.Context) string { return Provenance(ctx, o.Command) }

// Provenance states when, from what commit, with which command and where something was run.
func Provenance(ctx context.Context, command string) string {
	return fmt.Sprintf("%s, commit %s, `%s`; %s", time.Now().UTC().Format("2006-01-02 15:04 UTC"), commit(ctx), command, machine())
}

// commit of the working tree; "unknown" outside of one.
func commit(ctx context.Context) string {
	id, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(id))
	if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(changed) > 0 {
		name += " with changes"
	}
	return name
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
