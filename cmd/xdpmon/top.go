package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/topverb"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func newTop(env *environment) *cobra.Command {
	e := env.forTop()
	var s *selection
	e.Replay = func(files []string) (report.Run, func(context.Context, func(report.Line) error, func(string, ...any)) error, error) {
		return replayForTop(env, s, files)
	}
	cmd := topverb.New(e)
	s = addSelection(cmd, 10*time.Second)
	return cmd
}

func (env *environment) forTop() topverb.Env {
	return topverb.Env{Stdin: env.stdin, Stdout: env.stdout, Stderr: env.stderr, Getenv: env.getenv, IsTerminal: env.isTerminal, UTF8: env.utf8, Now: env.now, Signals: env.signals}
}

// replayForTop prepares a replay that the screen shows.
func replayForTop(env *environment, s *selection, files []string) (run report.Run, play func(context.Context, func(report.Line) error, func(string, ...any)) error, err error) {
	if len(s.algorithms) == 0 {
		s.algorithms = []string{"fridge", "lean", "reorder", "precision", "hhh"}
	}
	selected, err := s.resolve(true)
	if err == nil {
		err = stdinOnce(files)
	}
	if err != nil {
		return run, nil, err
	}
	if err := env.engine.privilege(); err != nil {
		return run, nil, fmt.Errorf("top --replay: %w", err)
	}
	run = s.describe(env, "replay", selected)
	run.Files, run.Clock, run.Seed = files, report.Clock{Name: "capture"}, max(1, s.seed)
	return run, func(ctx context.Context, emit func(report.Line) error, notice func(string, ...any)) error {
		cfg := s.config(selected)
		cfg.Emit, cfg.Notice = emit, notice
		return env.engine.replay(ctx, cfg, files, env.stdin, nil)
	}, nil
}
