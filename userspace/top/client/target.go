package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
)

// Target is the address of an API.
type Target struct {
	Name  string // for display
	Base  string // http://host
	Token func() string
	TLS   *tls.Config
	Dial  func(context.Context) (net.Conn, error) // nil: by the host in Base
}

// Access is the authentication that a listener may require: docs/api.md, "Who may ask".
type Access struct {
	TokenFile     string
	CA, Cert, Key string // files
}

// Socket is a target on this host.
func Socket(path string) Target {
	return Target{Name: path, Base: "http://agent", Dial: func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", path) }}
}

// Remote is a target given by its address: host:port, :port, a URL, or the path of a socket.
func Remote(address string, a Access) (t Target, err error) {
	if strings.HasPrefix(address, "/") || strings.HasPrefix(address, "./") || strings.HasPrefix(address, "unix:") {
		return Socket(strings.TrimPrefix(strings.TrimPrefix(address, "unix:"), "//")), nil
	}
	if !strings.Contains(address, "://") {
		scheme := "http://"
		if a.CA != "" || a.Cert != "" {
			scheme = "https://"
		}
		address = scheme + address
	}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return t, fmt.Errorf("%q is not an address: give host:9400, https://host:9400 or /path/of/a.sock", address)
	}
	if strings.HasPrefix(u.Host, ":") {
		u.Host = "127.0.0.1" + u.Host
	}
	t = Target{Name: u.Scheme + "://" + u.Host, Base: u.Scheme + "://" + u.Host}
	if t.Token, err = a.token(); err != nil {
		return t, err
	}
	t.TLS, err = a.config()
	return t, err
}

// token reads the file for every request, so that a replaced token applies immediately.
func (a Access) token() (func() string, error) {
	if a.TokenFile == "" {
		return nil, nil
	}
	read := func() (string, error) {
		text, err := os.ReadFile(a.TokenFile)
		return strings.TrimSpace(string(text)), err
	}
	switch text, err := read(); {
	case err != nil:
		return nil, fmt.Errorf("read token: %w", err)
	case text == "":
		return nil, fmt.Errorf("read token: %s is empty", a.TokenFile)
	}
	return func() string { text, _ := read(); return text }, nil
}

func (a Access) config() (*tls.Config, error) {
	if a.CA == "" && a.Cert == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CA != "" {
		text, err := os.ReadFile(a.CA)
		if err != nil {
			return nil, fmt.Errorf("read authority: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("read authority: no certificate in %s", a.CA)
		}
	}
	if a.Cert != "" {
		pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Within serves a handler inside the process, and returns its target. close ends it.
func Within(name string, handler http.Handler) (t Target, close func() error) {
	l := &pipes{accept: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: handler}
	ended := make(chan struct{})
	go func() {
		defer func() { ended <- struct{}{} }()
		_ = server.Serve(l) // returns after close
	}()
	return Target{Name: name, Base: "http://localhost", Dial: l.dial}, func() error {
		err := server.Close()
		<-ended
		return err
	}
}

// pipes is a listener whose connections stay within the process.
type pipes struct {
	accept chan net.Conn
	done   chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.accept <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "within", Net: "unix"} }
