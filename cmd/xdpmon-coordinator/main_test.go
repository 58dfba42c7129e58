package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// TestMain also checks that nothing is left open or running.
func TestMain(m *testing.M) { testutil.Main(m) }

// runs executes a command line.
func runs(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(environment{args: args, stdout: &out, stderr: &err, getenv: func(string) string { return "" }, now: time.Now, signals: cli.OSSignals})
	return code, out.String(), err.String()
}

// Errors in the command line or in the file are named and end with exit code 2; unreadable files end with 1.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	right := write("right", "measurements: [{name: a, algorithms: {precision: {}}}]\nsocket: "+dir+"/s\ndata: "+dir+"/d\n")
	wrong := write("wrong", "measurments: []\n")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--check --config " + right, cli.ExitDone, "is right"},
		{"--check --config " + wrong, cli.ExitUsage, "did you mean measurements?"},
		{"--config " + wrong, cli.ExitUsage, "did you mean measurements?"},
		{"--check --config " + dir + "/none", cli.ExitFailed, "no such file"},
		{"--chek", cli.ExitUsage, "--check"},
		{"kees", cli.ExitUsage, "did you mean keys?"},
		{"keys", cli.ExitUsage, "keys does one of"},
		{"keys list --dir " + dir, cli.ExitFailed, "does not exist"},
		{"--help", cli.ExitDone, "one of them had seen everything"},
		{"version", cli.ExitDone, "xdpmon-coordinator development"},
	} {
		if code, out, err := runs(strings.Fields(c.args)...); code != c.code || !strings.Contains(out+err, c.want) {
			t.Errorf("%s: exit code %d, want %d, and %q in\n%s%s", c.args, code, c.code, c.want, out, err)
		}
	}
	_, out, _ := runs("version", "--json")
	var v map[string]string
	if err := json.Unmarshal([]byte(out), &v); err != nil || v["version"] == "" || v["go"] == "" || v["arch"] == "" {
		t.Errorf("%q: %v", out, err)
	}
}

// Keys that the verbs make pass the check of a configuration that names them, and a revoked one is listed as such.
func TestKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	for _, args := range []string{"init", "coordinator central --host 127.0.0.1", "agent host1 host2", "renew host1", "revoke host2"} {
		if code, _, err := runs(append([]string{"keys", "--dir", dir}, strings.Fields(args)...)...); code != cli.ExitDone {
			t.Fatalf("%s: exit code %d: %s", args, code, err)
		}
	}
	_, out, _ := runs("keys", "list", "--dir", dir)
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "host2") != strings.Contains(line, "revoked") {
			t.Errorf("listed: %s", line)
		}
	}
	if n := strings.Count(out, "\n"); n != 4 {
		t.Errorf("%d certificates: %s", n, out)
	}
	path := filepath.Join(t.TempDir(), "coordinator.yaml")
	text := "measurements: [{name: a, algorithms: {lean: {}}}]\nbus: {listen: '0.0.0.0:4222', keys: {ca: " + dir + "/ca.crt, certificate: " + dir + "/central.crt, key: " + dir + "/central.key, revoked: " + dir + "/revoked.crl}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, err := runs("--check", "--config", path); code != cli.ExitDone {
		t.Errorf("exit code %d: %s%s", code, out, err)
	}
}
