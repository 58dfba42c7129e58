package capture

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Reader reads one capture.
type Reader struct {
	name    string
	in      *input
	meter   *meter
	total   int64
	closers []io.Closer
	format  format
	packets uint64 // records read, delivered or skipped
	skipped map[string]uint64
	err     error
}

// format reads the records of one file format.
type format interface {
	// next reads a record. The link type still has to be normalised: record.link is the file's number.
	next(in *input, rec *record) error
}

// record is a packet as the file holds it.
type record struct {
	time  int64 // ns
	data  []byte
	wire  int // bytes on the wire
	link  uint32
	iface uint32
	out   bool // marked in the capture as sent by this host
	// refuse, when set, names why the packet cannot be used although the file is intact.
	refuse string
}

// Open opens a capture; "-" is stdin. It reads as far as the file's header, so a file of another kind is refused
// here (ErrFormat).
func Open(path string, stdin io.Reader) (*Reader, error) {
	if path == "-" {
		return openStdin(stdin)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open capture: %w", err)
	}
	r, err := NewReader(path, file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	r.closers = append(r.closers, file)
	r.total = regularSize(file)
	return r, nil
}

func openStdin(stdin io.Reader) (*Reader, error) {
	if stdin == nil {
		return nil, errors.New("open capture: no standard input to read from")
	}
	r, err := NewReader("standard input", stdin)
	if err != nil {
		return nil, err
	}
	if file, ok := stdin.(*os.File); ok {
		r.total = regularSize(file)
	}
	return r, nil
}

// regularSize is the size of a file that has one: 0 for pipes and devices.
func regularSize(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// NewReader reads a capture from a stream; name appears in error messages.
func NewReader(name string, src io.Reader) (*Reader, error) {
	r := &Reader{name: name, meter: &meter{src: src}, skipped: map[string]uint64{}}
	r.in = newInput(r.meter)
	if err := r.unzip(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if err := r.detect(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return r, nil
}

// unzip adds a gzip reader if the stream is compressed.
func (r *Reader) unzip() error {
	head, _ := r.in.peek(2)
	if len(head) < 2 || head[0] != 0x1f || head[1] != 0x8b {
		return nil
	}
	zip, err := gzip.NewReader(r.in)
	if err != nil {
		return fmt.Errorf("unpack gzip: %w", noEOF(err))
	}
	r.closers = append(r.closers, zip)
	r.in = newInput(zip)
	return nil
}

// Read lets a gzip reader sit on top of an input.
func (in *input) Read(p []byte) (int, error) {
	if in.r == in.w {
		if _, err := in.peek(1); err != nil {
			return 0, err
		}
	}
	n := copy(p, in.buf[in.r:in.w])
	in.advance(n)
	return n, nil
}

// detect chooses the format by the first four bytes.
func (r *Reader) detect() error {
	head, err := r.in.peek(4)
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("file is empty: %w", ErrFormat)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("file has only %d bytes: %w", len(head), ErrFormat)
	case err != nil:
		return err
	}
	if binary.LittleEndian.Uint32(head) == blockSection {
		r.format = &pcapng{}
		return nil
	}
	r.format, err = newPcap(r.in)
	return err
}

// Next implements Source.
func (r *Reader) Next(f *packet.Frame) error {
	var rec record
	for r.err == nil {
		start := r.in.offset()
		rec = record{}
		if err := r.format.next(r.in, &rec); err != nil {
			r.err = r.place(err, start)
			break
		}
		r.packets++
		if rec.refuse == "" && normalise(&rec, f) {
			return nil
		}
		r.skip(&rec)
	}
	return r.err
}

// maxReasons bounds the number of distinct reasons, because they contain numbers from the file.
const maxReasons = 32

func (r *Reader) skip(rec *record) {
	reason := rec.refuse
	if reason == "" {
		reason = linkName(rec.link)
	}
	if _, known := r.skipped[reason]; !known && len(r.skipped) >= maxReasons {
		reason = "other reasons"
	}
	r.skipped[reason]++
}

// place adds the position in the file to an error, except io.EOF.
func (r *Reader) place(err error, offset int64) error {
	if err == io.EOF {
		return err
	}
	var d *damage
	if errors.As(err, &d) || errors.Is(err, io.ErrUnexpectedEOF) || isZipError(err) {
		err = fmt.Errorf("%w: %w", err, ErrTruncated)
	}
	return fmt.Errorf("read %s: packet %d at byte %d%s: %w", r.name, r.packets+1, offset, r.unpacked(), err)
}

func (r *Reader) unpacked() string {
	if _, ok := r.in.src.(*gzip.Reader); ok {
		return " of the unpacked data"
	}
	return ""
}

func isZipError(err error) bool {
	return errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, new(flateError))
}

// Packets returns the number of records read so far, delivered or skipped.
func (r *Reader) Packets() uint64 { return r.packets }

// Progress implements Source. For a gzipped file both are bytes of the packed file.
func (r *Reader) Progress() (read, total int64) { return r.meter.read.Load(), r.total }

// Skipped implements Source.
func (r *Reader) Skipped() map[string]uint64 { return maps.Clone(r.skipped) }

// Close implements Source. Standard input stays open.
func (r *Reader) Close() error {
	var errs []error
	for _, c := range r.closers {
		errs = append(errs, c.Close())
	}
	r.closers = nil
	return errors.Join(errs...)
}
