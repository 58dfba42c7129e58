package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// ErrNoPackets is returned by Replay when the captures contain no packet that can be replayed.
var ErrNoPackets = errors.New("no packets")

// Progress of a replay.
type Progress struct {
	Packets    uint64
	Bytes      int64 // of the captures, read so far
	TotalBytes int64 // 0 when unknown: standard input
	Elapsed    time.Duration
	Rate       float64 // packets per second
}

// progressEvery is the number of packets between two checks of the clock and the context.
const progressEvery = 1 << 14

// Replay runs captures through the programs. On an error or the end of ctx it emits the measurement so far as the last window,
// and then returns the error.
func Replay(ctx context.Context, cfg Config, files []string, stdin io.Reader, progress func(Progress)) error {
	sources, err := capture.OpenAll(files, stdin)
	if err != nil {
		return err
	}
	source := capture.Concat(sources...)
	if cfg.Merge {
		source = capture.Merge(capture.Sides(sources...)...)
	}
	defer source.Close()
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = filepath.Base(f)
	}
	return ReplaySource(ctx, cfg, joined(names), source, progress)
}

// ReplaySource is Replay for frames from other sources: traffic models, tests.
func ReplaySource(ctx context.Context, cfg Config, name string, source capture.Source, progress func(Progress)) error {
	if cfg.Seed == 0 {
		cfg.Seed = 1
	}
	fresh := func([]loader.Object, *loader.Options) error { return nil }
	run, err := newRunner(cfg, report.Identity{Instance: name}, loader.Options{Replay: true, Fixed: true, Proven: cfg.Proven, Interrupted: ctx.Err}, fresh)
	if err != nil {
		return err
	}
	defer run.close()
	feed, err := replay.New(run.inst, cfg.Seed)
	if err != nil {
		return err
	}
	defer feed.Close()
	if err := feed.Slow(); err != nil && cfg.Notice != nil {
		cfg.Notice("this replay takes two or three times as long, with the same answer; CAP_SYS_ADMIN would help: %v", err)
	}
	r := &replayer{runner: run, feed: feed, source: source, progress: progress, started: time.Now(), decode: run.oracles(),
		pacer: newPacer(run.members)}
	return r.run(ctx)
}

// replayer passes frames from a source to the programs and the oracles, and closes windows by the capture's time.
type replayer struct {
	*runner
	feed     *replay.Replayer
	source   capture.Source
	progress func(Progress)
	started  time.Time
	decode   bool
	decoder  packet.Decoder
	pacer    *pacer
	packets  uint64
	last     int64 // time of the latest packet
}

func (r *replayer) run(ctx context.Context) error {
	err := r.frames(ctx)
	if r.packets == 0 {
		if err != nil {
			return err
		}
		return fmt.Errorf("replay %s: %w: nothing in it is an Ethernet or IP packet", r.who.Instance, ErrNoPackets)
	}
	if flushErr := r.feed.Flush(); flushErr != nil {
		return errors.Join(err, flushErr)
	}
	for kind, n := range r.source.Skipped() {
		r.lost["link_"+kind] += n
	}
	r.report()
	err = errors.Join(err, r.closeWindows(at(r.last+1), true, r.groups))
	if r.cut > r.seen/10 && r.cfg.Notice != nil {
		r.cfg.Notice("%d of %d packets end within their headers: a longer snap length is needed (tcpdump -s 128)", r.cut, r.seen)
	}
	return err
}

func (r *replayer) frames(ctx context.Context) error {
	var f packet.Frame
	for {
		err := r.source.Next(&f)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.frame(&f); err != nil {
			return err
		}
		if r.packets%progressEvery == 0 {
			if ctx.Err() != nil {
				return nil // interrupted: the measurement so far is reported
			}
			r.report()
		}
	}
}

func (r *replayer) frame(f *packet.Frame) error {
	if r.packets == 0 {
		r.begins(f.Time)
	}
	if err := r.advance(f.Time); err != nil {
		return err
	}
	if err := r.pacer.at(f.Time, r.feed.Flush); err != nil {
		return err
	}
	r.packets++
	r.last = max(r.last, f.Time)
	if r.decode {
		r.show(f)
	}
	if r.cfg.Frames != nil {
		r.cfg.Frames(f)
	}
	return r.feed.Feed(f)
}

// advance closes the windows that end before now. Windows without a packet are not reported one by one: a gap in
// a capture can be years long.
func (r *replayer) advance(now int64) error {
	base := r.base()
	if base.length == 0 || now < base.window.Start+base.length {
		return nil
	}
	if err := r.feed.Flush(); err != nil {
		return err
	}
	end := base.window.Start + base.length
	if err := r.closeWindows(at(end), false, r.ending(end, endOf)); err != nil {
		return err
	}
	start := now - (now-end)%base.length // of the window with the next packet
	for _, g := range r.groups {
		if g.length == 0 {
			continue
		}
		if g != base && endOf(g) <= start { // in the gap
			if err := r.closeWindows(at(endOf(g)), false, []*group{g}); err != nil {
				return err
			}
		}
		skipped := (start - g.window.Start) / g.length
		g.window.Start += skipped * g.length
		g.window.Number += int(skipped)
	}
	return nil
}

// endOf is when the present window of a group ends in a replay.
func endOf(g *group) int64 { return g.window.Start + g.length }

// at is a clock of captures.
func at(time int64) func() int64 { return func() int64 { return time } }

// show passes a packet to the oracles, also if it was parsed only in part.
func (r *replayer) show(f *packet.Frame) {
	var p packet.Packet
	r.decoder.Decode(f, r.decodeOpts, &p)
	if !p.Has(packet.IP) {
		return
	}
	for _, m := range r.members {
		if m.oracle != nil {
			m.oracle.Packet(&p)
		}
	}
}

func (r *replayer) report() {
	if r.progress == nil {
		return
	}
	read, total := r.source.Progress()
	elapsed := time.Since(r.started)
	r.progress(Progress{Packets: r.packets, Bytes: read, TotalBytes: total, Elapsed: elapsed,
		Rate: float64(r.packets) / max(elapsed.Seconds(), 1e-9)})
}
