package loader_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/tests/isolated"
)

// The verifier's reason is in the error, and its whole log in a file.
func TestVerifierErrorIsExplained(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	t.Setenv("TMPDIR", t.TempDir())
	spec := kernel.Returning(ebpf.XDP, 0)
	spec.Instructions = spec.Instructions[1:] // returns a register that was never written
	_, err := ebpf.NewProgram(spec)
	err = loader.Explain("toy", err)
	if !errors.Is(err, loader.ErrVerifier) || !strings.Contains(err.Error(), "R0 !read_ok") {
		t.Fatalf("got %v", err)
	}
	_, rest, found := strings.Cut(err.Error(), "lines in ")
	if !found {
		t.Fatalf("no file named in %v", err)
	}
	var verifier *ebpf.VerifierError
	if !errors.As(err, &verifier) {
		t.Error("the verifier's error is not wrapped")
	}
	path := rest
	log, err := os.ReadFile(path)
	lab.NoError(t, err)
	if !strings.Contains(string(log), "R0 !read_ok") || !strings.Contains(string(log), "exit") {
		t.Errorf("%s holds\n%s", path, log)
	}
}

func TestExplain(t *testing.T) {
	if loader.Explain("toy", nil) != nil {
		t.Error("nil must stay nil")
	}
	for err, want := range map[error]error{unix.EPERM: privilege.ErrMissing, ebpf.ErrNotSupported: kernel.ErrUnsupported, unix.ENOMEM: unix.ENOMEM,
		unix.EMFILE: privilege.ErrDescriptors, &ebpf.VerifierError{Cause: unix.EMFILE, Log: []string{"processed 0 insns"}}: privilege.ErrDescriptors} {
		if got := loader.Explain("toy", fmt.Errorf("map create: %w", err)); !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
