package loader

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
)

// ErrVerifier is wrapped when the kernel's verifier refused a program.
var ErrVerifier = errors.New("the kernel's verifier refused the program")

// Explain makes the error of loading an object readable without losing any of it: the verifier's log is written to a file
// that the message names; a missing privilege, kernel feature or memory is named with its remedy.
// It wraps ErrVerifier, ErrMissing or ErrUnsupported, and the cause. nil stays nil.
func Explain(object string, err error) error {
	if err == nil {
		return nil
	}
	var verifier *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return privilege.Explain(err) // the library wraps every error of loading a program in a VerifierError
	case errors.As(err, &verifier) && len(verifier.Log) > 0 && refusedForPrivilege(verifier):
		return explained{fmt.Sprintf("%v: without CAP_PERFMON the kernel's verifier refuses what packet parsing needs (%s); %s",
			privilege.ErrMissing, summarise(verifier), privilege.Remedy(privilege.AttachNeeds)), privilege.ErrMissing, err}
	case errors.As(err, &verifier) && len(verifier.Log) > 0:
		return explained{fmt.Sprintf("%v: %s; %s", ErrVerifier, summarise(verifier), saveLog(object, verifier)), ErrVerifier, err}
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return privilege.Explain(err)
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("%w: %w; xdpmon is made for Linux 6.1 or later, this is %s", kernel.ErrUnsupported, err, kernel.Release())
	case errors.Is(err, unix.ENOMEM), errors.Is(err, unix.E2BIG):
		return fmt.Errorf("%w; choose fewer entries (--set), or raise the memory limit of this service or container", err)
	}
	return err
}

// explained is an error with a readable text that still wraps its cause.
type explained struct {
	text        string
	kind, cause error
}

func (e explained) Error() string   { return e.text }
func (e explained) Unwrap() []error { return []error{e.kind, e.cause} }

// refusedForPrivilege recognises the rules that the verifier applies to processes without CAP_PERFMON only.
func refusedForPrivilege(v *ebpf.VerifierError) bool {
	return privilege.Current().Lacks(privilege.CapPerfmon) && errors.Is(v.Cause, unix.EACCES)
}

// summarise returns the line of the log that states the error, with the source line before it.
func summarise(v *ebpf.VerifierError) string {
	lines := withoutStatistics(v.Log)
	if len(lines) == 0 {
		return "without a reason"
	}
	reason := strings.TrimSpace(lines[len(lines)-1])
	if src := lastSourceLine(lines); src != "" {
		return fmt.Sprintf("%s (at %q)", reason, src)
	}
	return reason
}

// withoutStatistics cuts the closing lines about instructions processed and stack depth.
func withoutStatistics(log []string) []string {
	for len(log) > 0 && isStatistics(log[len(log)-1]) {
		log = log[:len(log)-1]
	}
	return log
}

func isStatistics(line string) bool {
	for _, prefix := range []string{"processed ", "verification time", "stack depth", "insns processed"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return strings.TrimSpace(line) == ""
}

// lastSourceLine finds the C line that the verifier was at: the log quotes it after a semicolon, newer kernels with
// "@ file:line".
func lastSourceLine(log []string) string {
	for i := len(log) - 1; i >= 0; i-- {
		if rest, ok := strings.CutPrefix(log[i], "; "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// saveLog writes the whole log to a file and returns its path as text, or the reason why it failed.
func saveLog(object string, v *ebpf.VerifierError) string {
	f, err := os.CreateTemp("", "xdpmon-verifier-"+safeName(object)+"-*.log")
	if err != nil {
		return fmt.Sprintf("its log could not be saved: %v", err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%+v\n", v); err != nil {
		return fmt.Sprintf("its log could not be saved: %v", err)
	}
	return fmt.Sprintf("full log of %d lines in %s", len(v.Log), f.Name())
}

// safeName removes characters that are not safe in a file name.
func safeName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, s)
}
