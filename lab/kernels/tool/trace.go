package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"time"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// trace writes two models, one after the other, so that every algorithm finds something to use: handshakes of up to a
// second, then data and acknowledgements. Few enough that an emulated machine replays them in seconds.
func trace(w io.Writer) error {
	handshakes, err := traffic.NewLogUniform(traffic.LogUniformOptions{
		Requests: 8_000, Rate: 6_000, Answered: 0.6, Max: time.Second, Seed: 1,
	})
	if err != nil {
		return err
	}
	data, err := traffic.NewISP(traffic.ISPOptions{Packets: 8_000, Duration: 2 * time.Second, Seed: 1})
	if err != nil {
		return err
	}
	out, err := builder.NewPcapWriter(w, packet.LinkEthernet)
	if err != nil {
		return err
	}
	const apart = 10 * time.Second // longer than the first part
	return errors.Join(add(out, handshakes, 0), add(out, data, apart), out.Close())
}

// add writes a model's frames, all later by the same time.
func add(out *builder.PcapWriter, m traffic.Model, later time.Duration) error {
	source := traffic.Frames(m)
	for {
		var f packet.Frame
		if err := source.Next(&f); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		f.Time += int64(later)
		if err := out.Write(&f); err != nil {
			return err
		}
	}
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(file)
	return errors.Join(write(buffered), buffered.Flush(), file.Close())
}
