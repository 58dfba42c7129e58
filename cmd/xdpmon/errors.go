package main

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/nearest"
)

// Exit codes of the README, "Use".
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
func didYouMean(typed string, names []string) string { return nearest.Hint(typed, names) }
