package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
)

// Guard configures who may use a listener.
type Guard struct {
	Loopback  bool          // the listener is on this host only
	Token     func() string // required token; "" rejects all; nil: not required
	Certified bool          // TLS has already required a client certificate
}

// GuardOf is the default guard of a listener on an address.
func GuardOf(address string) Guard {
	host, _, _ := net.SplitHostPort(address) // valid: the listener uses it
	a, err := netip.ParseAddr(host)
	return Guard{Loopback: host == "localhost" || err == nil && a.IsLoopback()}
}

// TokenFile reads the token for every request, so that a replaced one applies immediately. A file that others can read is rejected at the start.
func TokenFile(path string) (func() string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("read token: %s can be read by others (%v): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	read := func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	if len(read()) < 16 {
		return nil, fmt.Errorf("read token: %s has fewer than 16 characters (openssl rand -hex 16 > %s)", path, path)
	}
	return read, nil
}

// Cookie is the cookie with the page's token.
const Cookie = "xdpmon-token"

// Wrap guards a handler that shows other people's addresses: the API and the page. Metrics and health are not guarded.
func (g Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.Loopback && !local(r.Host):
			write(w, problem(http.StatusForbidden, "this listener is for this host only, and %.100q is not a name of it", r.Host))
		case g.Certified, g.Loopback && g.Token == nil:
			next.ServeHTTP(w, r)
		case g.Token == nil:
			write(w, problem(http.StatusForbidden, "page and API are for this host only, unless web.auth is configured (docs/agent.md)"))
		case r.Method == http.MethodPost && r.URL.Path == "/login":
			g.login(w, r)
		case !g.known(r):
			w.Header().Set("WWW-Authenticate", `Bearer realm="xdpmon"`)
			write(w, problem(http.StatusUnauthorized, "give the token of web.auth: Authorization: Bearer TOKEN"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// local reports whether a name always means this host. It prevents DNS rebinding: a page from another site, whose name was then pointed to this
// host, sends its own name.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func (g Guard) known(r *http.Request) bool {
	if text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return same(text, g.Token())
	}
	c, err := r.Cookie(Cookie)
	return err == nil && same(c.Value, g.Token())
}

// same compares in constant time.
func same(given, token string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	return token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// login stores the token in a cookie that scripts cannot read and other sites cannot send.
func (g Guard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	token := strings.TrimSpace(r.PostFormValue("token"))
	if !same(token, g.Token()) {
		http.Redirect(w, r, "/?refused", http.StatusSeeOther)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: Cookie, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
