package top

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/top/client"
)

// A client without access gets the reason, and the flag that provides what is missing.
func TestAccess(t *testing.T) {
	t.Parallel()
	r := begin(t)
	const token = "0123456789abcdef"
	guard := api.Guard{Token: func() string { return token }}
	open := httptest.NewServer(r.Front(guard, http.NotFoundHandler()))
	defer open.Close()
	closed := httptest.NewTLSServer(r.Front(guard, http.NotFoundHandler()))
	defer closed.Close()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		address string
		access  client.Access
		want    string // "": it answers
	}{
		"token":          {open.URL, client.Access{TokenFile: file(token + "\n")}, ""},
		"none":           {open.URL, client.Access{}, "the token of web.auth is needed: --token-file FILE"},
		"another":        {open.URL, client.Access{TokenFile: file("fedcba9876543210")}, "it refuses the token of --token-file"},
		"empty":          {open.URL, client.Access{TokenFile: file("")}, "is empty"},
		"no file":        {open.URL, client.Access{TokenFile: "/nonexistent"}, "read token: open /nonexistent"},
		"TLS where not":  {strings.Replace(open.URL, "http:", "https:", 1), client.Access{}, "give http://"},
		"none where TLS": {strings.Replace(closed.URL, "https:", "http:", 1), client.Access{}, "give https:// with --ca"},
		"authority":      {closed.URL, client.Access{}, "--ca FILE"},
	} {
		target, err := client.Remote(c.address, c.access)
		if err == nil {
			asked := client.New(target)
			_, err = asked.Instances(t.Context())
			asked.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
