package main

import (
	"errors"
	"syscall"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/nearest"
)

// errFound: a check has findings, which have been printed; nothing failed.
var errFound = errors.New("something was found")

// exitCode is the exit code of an error.
func exitCode(err error) int {
	switch {
	case err == nil:
		return cli.ExitDone
	case errors.Is(err, errFound):
		return cli.ExitFound
	case errors.Is(err, privilege.ErrMissing), errors.Is(err, kernel.ErrUnsupported):
		return cli.ExitMissing
	case errors.Is(err, cli.ErrUsage), errors.Is(err, attach.ErrUsage), errors.Is(err, algo.ErrUnknown):
		return cli.ExitUsage
	}
	return cli.ExitFailed
}

// remedy is the remedy for causes that any step may have, and whose own message names none.
func remedy(err error) string {
	outOfFiles := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
	if outOfFiles && !errors.Is(err, privilege.ErrDescriptors) {
		return "; " + privilege.DescriptorRemedy(0)
	}
	return ""
}

// didYouMean names the nearest of some names, as the end of a sentence; "" when none is near.
func didYouMean(typed string, names []string) string { return nearest.Hint(typed, names) }
