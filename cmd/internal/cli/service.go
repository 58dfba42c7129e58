package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/xdpmon/xdpmon/userspace/config"
)

// Signals delivers signals until stop is called.
type Signals = func() (ch <-chan os.Signal, stop func())

// ConfigError is an error of usage: the message has the position and the allowed values.
func ConfigError(err error) error {
	if problems := (*config.Error)(nil); errors.As(err, &problems) {
		return AsUsage(err)
	}
	return err
}

// CheckConfig prints the effect of a configuration, and warns of unsafe file permissions.
func CheckConfig[T any](stderr io.Writer, name, path string, load func(string) (*T, error), preview func(*T) ([]string, error), print func(...string) error) error {
	cfg, err := load(path)
	if err != nil {
		return ConfigError(err)
	}
	lines, err := preview(cfg)
	if err != nil {
		return err
	}
	if text := config.Exposed(path); text != "" {
		fmt.Fprintf(stderr, "%s: %s\n", name, text)
	}
	return print(append([]string{path + " is right"}, lines...)...)
}

// Service is a long-running verb's interface to the service manager; ctx ends with it.
func Service(subscribe Signals) (ctx context.Context, reload <-chan os.Signal, watchdog time.Duration, stop func(), err error) {
	if watchdog, err = daemon.SdWatchdogEnabled(false); err != nil {
		return nil, nil, 0, nil, fmt.Errorf("read the service manager's watchdog settings: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	reload, end := hangups(subscribe, cancel)
	return ctx, reload, watchdog, func() { end(); cancel() }, nil
}

// hangups separates SIGHUP, which reloads the configuration, from signals that end the process.
func hangups(subscribe Signals, cancel func()) (reload <-chan os.Signal, stop func()) {
	signals, unsubscribe := subscribe()
	again, done := make(chan os.Signal, 1), make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if s != syscall.SIGHUP {
					cancel()
					return
				}
				select {
				case again <- s:
				default: // a reload is pending and will read the latest file
				}
			case <-done:
				return
			}
		}
	}()
	return again, func() { close(done); unsubscribe() }
}

// OSSignals delivers SIGINT, SIGTERM and SIGHUP.
func OSSignals() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return ch, func() { signal.Stop(ch) }
}
