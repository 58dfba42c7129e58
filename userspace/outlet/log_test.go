package outlet

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
)

// Names are taken from packets: a log shows no control character of one, nor what turns the direction of text, and its JSON still has the name.
func TestNamesInLogs(t *testing.T) {
	const evil = "\x1b[2J\u202eevil\u009b2J\U000e0001\nlevel=ERROR msg=forged"
	f := finding.Finding{Kind: finding.Scan, Severity: finding.Warning, Interface: evil}
	f.Subject.Name = evil
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		s := &Set{opts: Options{Log: slog.New(NewLogger(&out, settings.Log{Level: "info", Format: format}, false))}}
		s.logFinding(f)
		text := out.String()
		if strings.ContainsAny(text, "\x1b\u202e\u009b\U000e0001") || !strings.Contains(text, "evil") || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: %q", format, text)
		}
		var line struct{ Subject, Interface, Text string }
		if format == "json" {
			if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Subject != evil || line.Interface != evil {
				t.Errorf("%v, %+v", err, line)
			}
		}
	}
}
