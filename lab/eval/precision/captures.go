package precision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/tests/precision"
)

// captures runs the contenders over real traffic: IPv4 5-tuples.
func captures(ctx context.Context, p *eval.Page) error {
	dir := os.Getenv("XDPMON_TRACES")
	if dir == "" {
		dir = filepath.Join("..", "shared", "traces")
	}
	p.Text("IPv4 packets by 5-tuple; initial values fit so short a window. Five seeds, which differ in hashes and coins alone.")
	for _, c := range []struct {
		file  string
		sizes []int
	}{{"composite_120s.pcap", []int{64, 128, 256, 512, 1024}}, {"laptop_wan_300s.pcap", []int{16, 32, 64, 128, 256}}} {
		stream, err := precision.Capture(filepath.Join(dir, c.file))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("open capture (set XDPMON_TRACES to the folder that has it): %w", err)
		}
		if err != nil {
			return err
		}
		s := setup{model: model{name: c.file}, sizes: c.sizes, seeds: eval.Pick(p, 5, 1), arrivals: true, stream: stream,
			list: []contender{demanded(), shipped(), own("9/8, initial 10", map[string]string{"initial": "10"}), usual(), hashpipe(2), hashpipe(4), cocosketch(), spaceSaving(), rap()}}
		results, err := s.measure(ctx, p)
		if err != nil {
			return err
		}
		p.Text("**%s**: %d packets of %d flows.", c.file, len(stream.Order), len(stream.Keys))
		if err := s.both(p, "capture-"+c.file[:len(c.file)-len(filepath.Ext(c.file))], results, meanRecall32, 32); err != nil {
			return err
		}
	}
	return nil
}
