package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Player runs a capture through a twin and passes on its registers at the end of every window.
type Player struct {
	Twin   *twin.Twin
	Switch *run.Switch
	Width  int64 // of a window, in ns; 0: one window
	Seed   uint64
	// Window is called with a closed bank, and whether it is the last one. The registers are reset afterwards.
	Window func(d *Dump, last bool) error

	banked      []string
	bank        int
	start, last int64
	packets     int
	coin        uint32
	queue       func(f *packet.Frame) run.Queue
	digests     []Digest    // of this window
	copies      []twin.Copy // ... and copies to the CPU
}

// ErrNoFrames is returned if a capture has nothing for a switch's port.
var ErrNoFrames = errors.New("no Ethernet frame")

// Play runs to the end of the capture or of ctx.
func (p *Player) Play(ctx context.Context, source capture.Source) error {
	if err := p.prepare(); err != nil {
		return err
	}
	var f packet.Frame
	var result run.Result
	for ctx.Err() == nil {
		err := source.Next(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, p.end(p.last+1, true))
		}
		if f.Link != packet.LinkEthernet {
			continue
		}
		if err := p.frame(&f, &result); err != nil {
			return err
		}
	}
	if p.packets == 0 {
		return fmt.Errorf("run %s: %w in the capture", p.Twin.Name, ErrNoFrames)
	}
	return p.end(p.last+1, true)
}

func (p *Player) prepare() error {
	d, err := algo.Lookup(p.Twin.Algorithm)
	if err != nil {
		return err
	}
	spec, err := d.Spec()
	if err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	for _, name := range twin.Names(p.Switch) {
		if ms := maps.MapOf(spec, name); ms != nil && slices.Contains(ms.Tags, maps.TagBanked) {
			p.banked = append(p.banked, name)
		}
	}
	p.coin = uint32(p.Seed)*2654435761 | 1
	if p.Twin.Queue != nil {
		p.queue = p.Twin.Queue()
	}
	return p.Twin.SetBank(p.Switch, 0)
}

func (p *Player) frame(f *packet.Frame, result *run.Result) error {
	if p.packets == 0 {
		p.start = f.Time
	}
	now := max(f.Time, p.last) // a switch's clock does not go back
	if p.Width > 0 && now >= p.start+p.Width {
		if err := p.end(p.start+p.Width, false); err != nil {
			return err
		}
		p.start += (now - p.start) / p.Width * p.Width
	}
	p.packets++
	p.last = now
	p.coin += 0x9e3779b9
	if p.Twin.Coins != nil {
		p.Switch.Coins = p.Twin.Coins(flips(p.coin | 1))
	}
	in := run.Packet{Data: f.Data, Port: 1, Time: uint64(max(now, 1))}
	if p.queue != nil {
		in.Queue = p.queue(f)
		in.Time = uint64(max(f.Time-int64(in.Wait), 1))
	}
	if err := p.Switch.Process(in, result); err != nil {
		return fmt.Errorf("packet %d: %w", p.packets, err)
	}
	for i := range result.Digests {
		p.digests = append(p.digests, digestOf(&result.Digests[i]))
	}
	if result.ToCPU {
		p.copies = append(p.copies, twin.Copy{Time: now, Packet: bytes.Clone(result.Data)})
	}
	return nil
}

// flips are a packet's coins, equal to those of a replay with the same seed (bpf/include/coin.h).
func flips(x uint32) func() uint32 {
	return func() uint32 {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		return x * 0x9e3779b1
	}
}

func (p *Player) end(at int64, last bool) error {
	closed := p.bank
	p.bank ^= 1
	if err := p.Twin.SetBank(p.Switch, p.bank); err != nil {
		return err
	}
	d := Of(p.Twin, p.Switch, closed, p.start, at)
	d.Digests, p.digests = p.digests, nil
	d.Copies, p.copies = p.copies, nil
	err := p.Window(d, last)
	for _, name := range p.banked {
		n := twin.Entries(p.Switch, name) / 2
		twin.Reset(p.Switch, name, closed*n, (closed+1)*n)
	}
	for _, one := range d.freed {
		twin.SetElement(p.Switch, one.register, one.i, 0)
	}
	twin.Uncount(p.Switch)
	p.start = at
	return err
}
