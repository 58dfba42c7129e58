package main

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"syscall"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Exit codes of DESIGN.md, "Command line".
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitMissing = 3 // a privilege or a feature of the kernel
)

// errUsage is wrapped by errors that come from what was typed.
var errUsage = errors.New("wrong usage")

func usageError(format string, args ...any) error {
	return &usage{fmt.Errorf(format, args...)}
}

// usage marks an error as one of usage without adding words to it.
type usage struct{ cause error }

func (u *usage) Error() string        { return u.cause.Error() }
func (u *usage) Unwrap() error        { return u.cause }
func (u *usage) Is(target error) bool { return target == errUsage }

// exitCode says what an error means to a script.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, privilege.ErrMissing), errors.Is(err, kernel.ErrUnsupported):
		return exitMissing
	case errors.Is(err, errUsage), errors.Is(err, attach.ErrUsage), errors.Is(err, algo.ErrUnknown):
		return exitUsage
	}
	return exitFailed
}

// remedy is for a cause that may come from anywhere: its own message names none.
func remedy(err error) string {
	outOfFiles := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
	if outOfFiles && !errors.Is(err, privilege.ErrDescriptors) {
		return "; " + privilege.DescriptorRemedy
	}
	return ""
}

// didYouMean names the nearest of some names, as the end of a sentence; "" when none is near.
func didYouMean(typed string, names []string) string {
	best, distance := "", 3
	sorted := append([]string{}, names...)
	sort.Strings(sorted)
	for _, name := range sorted {
		d := editDistance(strings.ToLower(typed), strings.ToLower(name))
		if len(typed) > 1 && strings.HasPrefix(name, typed) {
			d = min(d, 1)
		}
		if d < distance && d < len(name) {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// editDistance counts the characters to insert, delete or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
