package operator

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/traffic"
)

// capture writes 3,000 requests with their answers; the bytes are the same every time.
func capture(t *testing.T) []byte {
	t.Helper()
	model, err := traffic.NewLogUniform(traffic.LogUniformOptions{Requests: 3000, Rate: 3000, Answered: 0.8, Max: time.Second, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := traffic.WritePcap(&b, model); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// windows decodes JSON lines and returns those after the first, which must describe the run.
func windows(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("line %d is no JSON object: %v: %q", len(all)+1, err, line)
		}
		all = append(all, one)
	}
	if all[0]["run"] == nil {
		t.Fatalf("the first line does not describe the run: %v", all[0])
	}
	return all[1:]
}

// number finds a figure below a window, by its path.
func number(t *testing.T, window map[string]any, path ...string) float64 {
	t.Helper()
	var value any = window
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	n, ok := value.(float64)
	if !ok {
		t.Fatalf("%s is %v in %v", strings.Join(path, "."), value, window)
	}
	return n
}

func TestFilesThatCannotBeRead(t *testing.T) {
	needRoot(t)
	whole := capture(t)
	garbage := make([]byte, 4096)
	if _, err := rand.Read(garbage[8:]); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "nothing.pcap"), `nothing\.pcap: no such file`},
		{"empty", write(t, "empty.pcap", nil), `empty\.pcap: file is empty`},
		{"directory", dir, `is a directory`},
		{"garbage", write(t, "garbage.pcap", garbage), `garbage\.pcap: .*not a pcap or pcapng capture`},
		{"half a header", write(t, "half.pcap", whole[:20]), `half\.pcap: .*20 of the 24 bytes`},
		{"no packets", write(t, "header.pcap", whole[:24]), `header\.pcap: no packets`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := xdpmon(t, "replay", c.path, "--algo", "fridge")
			o.want(t, failed, c.want)
			if o.out != "" {
				t.Errorf("it printed %q", o.out)
			}
		})
	}
}

// TestCutCapture: the packets before the cut are measured and shown, and the exit code reports the cut.
func TestCutCapture(t *testing.T) {
	needRoot(t)
	whole := capture(t)
	path := write(t, "cut.pcap", whole[:len(whole)/2+5])
	o := xdpmon(t, "replay", path, "--algo", "fridge")
	o.want(t, failed, `cut\.pcap: packet \d+ at byte \d+: .*cut off or damaged`)
	got := windows(t, o.out)
	if len(got) != 1 || number(t, got[0], "report", "matched") == 0 {
		t.Errorf("what was before the cut is lost: %s", o.out)
	}
}

// TestUnreadableFile: a process may load programs and still not read the file.
func TestUnreadableFile(t *testing.T) {
	needRoot(t)
	path := write(t, "secret.pcap", capture(t))
	o := runAs(t, nobody, "replay", path, "--algo", "fridge")
	o.want(t, missing, "privilege missing")
	o = withoutDAC(t, "replay", path, "--algo", "fridge")
	o.want(t, failed, `secret\.pcap: permission denied`)
}

func TestSameSeedSameBytes(t *testing.T) {
	needRoot(t)
	path := write(t, "some.pcap", capture(t))
	args := []string{"replay", path, "--algo", "fridge,rtt-array", "--truth", "--seed", "42", "--window", "200ms", "--set", "fridge.fridges=256@1/2"}
	first, second := xdpmon(t, args...), xdpmon(t, args...)
	first.want(t, done, "")
	if first.out != second.out {
		t.Errorf("two replays with one seed differ:\n%s\n%s", first.out, second.out)
	}
	got := windows(t, first.out)
	seen := 0.0
	for _, window := range got {
		if window["algorithm"] == "fridge" {
			seen += number(t, window, "packets", "seen")
		}
	}
	if len(got) < 8 || seen != 5400 {
		t.Errorf("%d windows with %.0f packets, want 8 or more with 5400", len(got), seen)
	}
	args[6] = "43"
	if other := xdpmon(t, args...); withoutRun(other.out) == withoutRun(first.out) {
		t.Error("another seed gives the same answer: is it used?")
	}
}

// withoutRun leaves out the line that names the seed.
func withoutRun(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}
