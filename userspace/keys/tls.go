package keys

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Files are the key files of one side of a connection. They are read again when they change, so renewals and revocations take effect
// without a restart.
type Files struct {
	CA          string // the authority's certificate
	Certificate string
	Key         string
	Revoked     string // CRL; "": none
}

// Holder uses the files. It is safe for concurrent use.
type Holder struct {
	files Files
	ca    *x509.Certificate
	pool  *x509.CertPool

	mu      sync.Mutex
	pair    tls.Certificate
	paired  stamps
	revoked map[string]bool
	listed  stamps
}

// Soon is the remaining validity of a certificate from which on its expiry is reported.
const Soon = 30 * 24 * time.Hour

// stamps detect changes of files.
type stamps [2]struct {
	at   time.Time
	size int64
}

func stampsOf(names ...string) (s stamps) {
	for i, n := range names {
		if info, err := os.Stat(n); err == nil {
			s[i].at, s[i].size = info.ModTime(), info.Size()
		}
	}
	return s
}

// Hold reads the files, and refuses keys that others may read.
func Hold(f Files) (*Holder, error) {
	h := &Holder{files: f}
	var err error
	if h.ca, err = readCertificate(f.CA); err != nil {
		return nil, err
	}
	if !h.ca.IsCA {
		return nil, fmt.Errorf("read %s: not an authority's certificate", f.CA)
	}
	h.pool = x509.NewCertPool()
	h.pool.AddCert(h.ca)
	if info, err := os.Stat(f.Key); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others (%v): chmod 600 %s", f.Key, info.Mode().Perm(), f.Key)
	}
	c, err := h.certificate()
	if err != nil {
		return nil, err
	}
	if err := h.issued(c); err != nil {
		return nil, fmt.Errorf("%s is not of the authority in %s: %w", f.Certificate, f.CA, err)
	}
	if err := h.list(); err != nil {
		return nil, err
	}
	return h, nil
}

// issued refuses a certificate that a peer with the same authority would reject at any time.
func (h *Holder) issued(c *tls.Certificate) error {
	between := x509.NewCertPool()
	for _, der := range c.Certificate[1:] {
		if one, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(one)
		}
	}
	_, err := c.Leaf.Verify(x509.VerifyOptions{Roots: h.pool, Intermediates: between, CurrentTime: c.Leaf.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired { // the authority was renewed since
		return nil
	}
	return err
}

// Trouble describes a certificate of this side that is not valid now, or expires soon; "" if neither.
func (h *Holder) Trouble(now time.Time) string {
	c, err := h.certificate()
	if err != nil {
		return ""
	}
	from, until := c.Leaf.NotBefore.UTC().Format(time.RFC3339), c.Leaf.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case now.Before(c.Leaf.NotBefore):
		return fmt.Sprintf("the certificate is valid from %s on, and it is %s here: peers refuse it, unless this host's clock is wrong", from, now.UTC().Format(time.RFC3339))
	case now.After(c.Leaf.NotAfter):
		return fmt.Sprintf("the certificate has expired on %s, and peers refuse it: `xdpmon-coordinator keys renew %s`", until, c.Leaf.Subject.CommonName)
	case c.Leaf.NotAfter.Sub(now) < Soon:
		return fmt.Sprintf("the certificate expires on %s: `xdpmon-coordinator keys renew %s`", until, c.Leaf.Subject.CommonName)
	}
	return ""
}

// certificate is the current key pair; the previous one while the files are being replaced.
func (h *Holder) certificate() (*tls.Certificate, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := stampsOf(h.files.Certificate, h.files.Key)
	if now != h.paired {
		pair, err := tls.LoadX509KeyPair(h.files.Certificate, h.files.Key)
		switch {
		case err == nil:
			h.pair, h.paired = pair, now
		case h.pair.Leaf == nil:
			return nil, fmt.Errorf("read certificate: %w", err)
		}
	}
	return &h.pair, nil
}

// list reads the CRL. If it is unreadable the previous one stays in force.
func (h *Holder) list() error {
	if h.files.Revoked == "" {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := stampsOf(h.files.Revoked)
	if now == h.listed && h.revoked != nil {
		return nil
	}
	serials, err := revoked(h.files.Revoked, h.ca)
	if err != nil {
		return err
	}
	h.revoked, h.listed = serials, now
	return nil
}

// Refresh reads the CRL if it has changed.
func (h *Holder) Refresh() error { return h.list() }

// Revoked reports whether a serial number (hexadecimal) is revoked.
func (h *Holder) Revoked(serial string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.revoked[serial]
}

// Until is when the own certificate expires, and its name.
func (h *Holder) Until() (time.Time, string) {
	c, err := h.certificate()
	if err != nil {
		return time.Time{}, ""
	}
	return c.Leaf.NotAfter, c.Leaf.Subject.CommonName
}

// Errors of the peer's certificate.
var (
	ErrRole    = errors.New("its certificate is for another role")
	ErrRevoked = errors.New("its certificate was revoked")
)

// Peer returns the name in the peer's certificate, and refuses other roles and revoked certificates.
func (h *Holder) Peer(s *tls.ConnectionState, role string) (name, serial string, err error) {
	if len(s.PeerCertificates) == 0 {
		return "", "", errors.New("no certificate")
	}
	c := s.PeerCertificates[0]
	name, serial = c.Subject.CommonName, c.SerialNumber.Text(16)
	switch {
	case !slices.Contains(c.Subject.OrganizationalUnit, role):
		return name, serial, fmt.Errorf("%q: %w", name, ErrRole)
	case h.Revoked(serial):
		return name, serial, fmt.Errorf("%q: %w", name, ErrRevoked)
	}
	return name, serial, nil
}

// Client is the TLS configuration of an agent that connects to a coordinator.
func (h *Holder) Client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: h.pool,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return h.certificate() },
		VerifyConnection:     h.verify(Coordinator)}
}

// Server is the TLS configuration of a coordinator. Peer checks name and role of an agent after the handshake.
func (h *Holder) Server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, ClientCAs: h.pool, ClientAuth: tls.RequireAndVerifyClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return h.certificate() }}
}

// Web is the TLS configuration of a listener of pages and metrics: every certificate of the authority that is not revoked is accepted,
// whatever its role.
func (h *Holder) Web() *tls.Config {
	c := h.Server()
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if err := h.list(); err != nil {
			return err
		}
		if p := s.PeerCertificates; len(p) == 0 || h.Revoked(p[0].SerialNumber.Text(16)) {
			return ErrRevoked
		}
		return nil
	}
	return c
}

// Peers is the TLS configuration between coordinators, each of which is client and server.
func (h *Holder) Peers() *tls.Config {
	c := h.Server()
	c.RootCAs = h.pool
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return h.certificate() }
	c.VerifyConnection = h.verify(Coordinator)
	return c
}

func (h *Holder) verify(role string) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if err := h.list(); err != nil {
			return err
		}
		_, _, err := h.Peer(&s, role)
		return err
	}
}
