package cli

import (
	"errors"
	"fmt"
)

// Exit codes of the README, "Use".
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitUsage   = 2
	ExitMissing = 3 // a privilege or a feature of the kernel
	ExitFound   = 4 // xdpmon check has found something
)

// ErrUsage is wrapped by errors in the command line.
var ErrUsage = errors.New("wrong usage")

// UsageError is an error in the command line.
func UsageError(format string, args ...any) error {
	return AsUsage(fmt.Errorf(format, args...))
}

// AsUsage makes an error one of usage, whose message states what is allowed.
func AsUsage(err error) error { return &usage{err} }

// usage marks an error as one of usage without changing its text.
type usage struct{ cause error }

func (u *usage) Error() string        { return u.cause.Error() }
func (u *usage) Unwrap() error        { return u.cause }
func (u *usage) Is(target error) bool { return target == ErrUsage }
