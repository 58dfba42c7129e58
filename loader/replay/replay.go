// Package replay feeds captured packets to a loaded chain, in the kernel.
package replay

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/bpf/replay"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/kernel"
)

// ErrIncomplete is wrapped when the kernel did not run a replayed packet to its end.
var ErrIncomplete = errors.New("the kernel did not run the replay to its end")

// replaySnap is REPLAY_SNAP of bpf/include/replay.h: all headers that the parser reads are in these bytes.
const replaySnap = 2024

// replayMeta is struct replay_meta, the metadata before a replayed packet.
type replayMeta struct {
	Time     uint64
	Len      uint32
	Coin     uint32
	Enqueued uint64
	IfIndex  uint32
	Queue    uint16
	Shape    uint16
}

// Fields of a shape in addition to the captured bytes.
const (
	replayCaptured = 0x3fff
	replayIP       = 0x4000
	replayEgress   = 0x8000
)

// replayFrame is struct replay_frame.
type replayFrame struct {
	replayMeta
	Data [replaySnap]byte
}

// replayCursor is struct replay_cursor_t.
type replayCursor struct {
	Next, Limit               uint64
	Buffer, Offset            uint32
	Delay, Passed, Head, Tail uint64
}

// The driver's buffers: BUFFERS and BUFFER_BYTES of bpf/replay/replay.bpf.c.
const (
	replayBuffers = 16
	replayBuffer  = 1 << 20
)

const metaBytes = int(unsafe.Sizeof(replayMeta{}))

// Replayer feeds frames to an instance's entry program in the kernel (BPF_PROG_TEST_RUN), thousands in a
// system call. It stays on the thread and the core that created it, so that per-CPU state and results
// are reproducible. Use it from that goroutine only.
type Replayer struct {
	entry   *ebpf.Program
	driver  *ebpf.Collection // nil: packets are run one at a time
	single  replayFrame      // without a driver
	memory  []byte           // the driver's buffers
	buffer  int              // offset of the next frame
	offset  int
	cursor  *replayCursor
	delay   uint64
	pending int
	coin    uint32
	undo    func()
	release func() // nil: the driver is not held
	slow    error  // why not
	input   []byte
	vector  *ebpf.Map // phv_scratch
}

// New loads the entry program for replay and pins the calling goroutine to a core until Close.
func New(i *loader.Instance, seed uint64) (*Replayer, error) {
	entry, err := i.Entry(loader.EntryConfig{Kind: loader.XDP, Replay: true})
	if err != nil {
		return nil, err
	}
	r := &Replayer{entry: entry, coin: startingCoin(seed), input: make([]byte, metaBytes+14), delay: uint64(i.RecircDelay()),
		vector: i.Maps()["chain/phv_scratch"]}
	if err := r.loadDriver(i); err != nil {
		entry.Close()
		return nil, err
	}
	r.hold()
	if r.undo, err = pinThread(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Restart resets the replay to that of a new Replayer with that seed, for the next stream. Pending second passes are dropped.
func (r *Replayer) Restart(seed uint64) {
	r.coin = startingCoin(seed)
	if r.cursor != nil {
		*r.cursor = replayCursor{Delay: r.delay}
	}
}

func startingCoin(seed uint64) uint32 { return uint32(seed)*2654435761 | 1 }

// Batched reports whether the kernel runs many packets at a time (Linux 5.18 and later).
func (r *Replayer) Batched() bool { return r.driver != nil }

func (r *Replayer) loadDriver(i *loader.Instance) error {
	if kernel.HaveXDPFrags() != nil { // the same release added bpf_xdp_store_bytes
		if r.delay > 0 {
			return fmt.Errorf("load replay driver: second passes can only be delayed by Linux 5.18 and later: %w", ErrIncomplete)
		}
		return nil
	}
	spec, err := replay.LoadReplay()
	if err != nil {
		return fmt.Errorf("read replay object: %w", err)
	}
	driver, err := i.LoadBeside("replay", spec)
	if err != nil {
		return fmt.Errorf("load replay driver: %w", err)
	}
	r.driver = driver
	if err := driver.Maps["replay_entry"].Update(uint32(0), r.entry, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("connect the replay driver: %w", err)
	}
	return r.mapFrames()
}

func (r *Replayer) mapFrames() error {
	frames, cursor := r.driver.Maps["replay_frames"], r.driver.Maps["replay_cursor"]
	if frames.ValueSize() != replayBuffer || frames.MaxEntries() != replayBuffers {
		return fmt.Errorf("map replay frames: %d buffers of %d bytes, not %d of %d", frames.MaxEntries(), frames.ValueSize(),
			replayBuffers, replayBuffer)
	}
	var err error
	if r.memory, err = unix.Mmap(frames.FD(), 0, replayBuffers*replayBuffer, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map replay frames: %w", err)
	}
	page, err := unix.Mmap(cursor.FD(), 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map replay cursor: %w", err)
	}
	r.cursor = (*replayCursor)(unsafe.Pointer(unsafe.SliceData(page)))
	r.cursor.Delay = r.delay
	return nil
}

// Feed takes a frame; it reaches the programs with the next full batch, or with Flush.
func (r *Replayer) Feed(f *replay.Frame) error {
	r.put(f)
	if r.driver != nil && r.buffer < replayBuffers {
		return nil
	}
	return r.Flush()
}

// put appends a frame to its batch.
func (r *Replayer) put(f *replay.Frame) *replayFrame {
	n := min(len(f.Data), replaySnap)
	slot := &r.single
	if r.driver != nil {
		slot = (*replayFrame)(unsafe.Pointer(&r.memory[r.buffer*replayBuffer+r.offset]))
	}
	r.coin += 0x9e3779b9
	slot.replayMeta = replayMeta{
		Time: uint64(max(f.Time, 1)), Len: uint32(f.Len), Coin: r.coin | 1, Enqueued: uint64(f.Enqueued),
		IfIndex: f.Interface, Queue: f.Queue, Shape: uint16(n),
	}
	if f.Link == replay.LinkRaw {
		slot.Shape |= replayIP
	}
	if f.Direction == replay.Egress {
		slot.Shape |= replayEgress
	}
	copy(slot.Data[:], f.Data[:n])
	if n < 14 {
		clear(slot.Data[n:14])
	}
	r.pending++
	r.offset += (metaBytes + max(n, 14) + 7) &^ 7
	if r.offset > replayBuffer-int(unsafe.Sizeof(replayFrame{})) {
		r.buffer, r.offset = r.buffer+1, 0
	}
	return slot
}

// Flush runs the programs over the pending frames.
func (r *Replayer) Flush() error {
	n := r.pending
	r.pending, r.buffer, r.offset = 0, 0, 0
	if n == 0 {
		return nil
	}
	if r.driver == nil {
		return r.runOne(&r.single)
	}
	r.cursor.Next, r.cursor.Limit, r.cursor.Buffer, r.cursor.Offset = 0, uint64(n), 0, 0
	runs := uint32(n)
	if r.delay > 0 { // a second pass is a run, too; surplus runs do nothing
		runs = 2*runs + uint32(r.delay)
	}
	if err := r.runDriver(runs); err != nil {
		return fmt.Errorf("run replay: %w", err)
	}
	if r.cursor.Next != uint64(n) {
		return fmt.Errorf("run replay: %w: %d of %d packets", ErrIncomplete, r.cursor.Next, n)
	}
	return nil
}

// replayDriver is the driver's program in bpf/replay.
const replayDriver = "replay_xdp"

// fewRuns is the number of single runs that take as long as the kernel needs to exchange its XDP dispatcher, which it does
// before and after every call that repeats, unless the driver is held.
const fewRuns = 512

func (r *Replayer) runDriver(runs uint32) error {
	driver, opts := r.driver.Programs[replayDriver], ebpf.RunOptions{Data: r.input, Context: contextOf(r.input), Repeat: runs}
	if runs > fewRuns || r.release != nil {
		_, err := driver.Run(&opts)
		return err
	}
	opts.Repeat = 1
	for range runs {
		if _, err := driver.Run(&opts); err != nil {
			return err
		}
	}
	return nil
}

// runOne is the path for kernels without bpf_xdp_store_bytes: one system call a packet.
func (r *Replayer) runOne(f *replayFrame) error {
	data := max(int(f.Shape&replayCaptured), 14)
	input := unsafe.Slice((*byte)(unsafe.Pointer(f)), metaBytes+data)
	if _, err := r.entry.Run(&ebpf.RunOptions{Data: input, Context: contextOf(input)}); err != nil {
		return fmt.Errorf("run replay: %w", err)
	}
	return nil
}

// xdpContext is struct xdp_md as a test run takes it.
type xdpContext struct {
	Data, DataEnd, DataMeta, IngressIfindex, RxQueue, EgressIfindex uint32
}

// contextOf declares the first bytes of the input as metadata.
func contextOf(input []byte) xdpContext {
	return xdpContext{Data: uint32(metaBytes), DataEnd: uint32(len(input))}
}

// Close frees the driver and restores the thread's CPU affinity.
func (r *Replayer) Close() error {
	if r.release != nil {
		r.release()
	}
	if r.driver != nil {
		if r.memory != nil {
			unmap(unsafe.Pointer(unsafe.SliceData(r.memory)), len(r.memory))
		}
		if r.cursor != nil {
			unmap(unsafe.Pointer(r.cursor), unix.Getpagesize())
		}
		r.driver.Close()
	}
	if r.undo != nil {
		r.undo()
	}
	return r.entry.Close()
}

func unmap(p unsafe.Pointer, n int) {
	_ = unix.MunmapPtr(p, uintptr(n))
}

// pinThread keeps the goroutine on its thread and the thread on one core that it is allowed to use.
func pinThread() (undo func(), err error) {
	var before, one unix.CPUSet
	runtime.LockOSThread()
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("read cores: %w", err)
	}
	for cpu := range 8192 {
		if before.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("pin replay to one core: %w", err)
	}
	return func() {
		_ = unix.SchedSetaffinity(0, &before)
		runtime.UnlockOSThread()
	}, nil
}
