package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
)

// environment is a verb's interface to the operating system, so that tests can run verbs in-process.
type environment struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	// isTerminal reports whether a stream is a terminal.
	isTerminal func(stream any) bool
	size       func() (width, height int) // of the terminal at stdout
	now        func() time.Time
	monotonic  func() int64 // ns since boot: the clock of live windows
	after      func(time.Duration) <-chan time.Time
	// signals delivers SIGINT, SIGTERM and SIGHUP until stop is called.
	signals func() (ch <-chan os.Signal, stop func())
	exit    func(code int) // at once, for a signal that is repeated
	kernel  string
	engine  engine
}

func osEnvironment() environment {
	// A reader that closes its end (| head) makes the write fail, and does not kill the process: attachments are removed
	// in order.
	signal.Ignore(syscall.SIGPIPE)
	return environment{
		args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv,
		isTerminal: isTerminal, size: terminalSize, now: time.Now, monotonic: hostclock.Now, after: time.After,
		signals: cli.OSSignals, exit: os.Exit, kernel: kernel.Release(), engine: realEngine(),
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func terminalSize() (width, height int) {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width == 0 || height == 0 {
		return 80, 24
	}
	return width, height
}
