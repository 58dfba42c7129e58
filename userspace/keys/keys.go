// Package keys manages the certificates of agents and coordinators: a private authority, which signs certificates for names and publishes a
// CRL. A certificate contains name (common name) and role (organisational unit); its key usages match the role, so that an agent can never
// serve as a coordinator.
package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// Roles of certificates.
const (
	Agent       = "agent"
	Coordinator = "coordinator"
)

// Names of files in a folder of keys.
const (
	authority    = "ca"
	certificates = ".crt"
	private      = ".key"
	revocations  = "revoked.crl"
)

// DefaultDays a certificate is good for; AuthorityDays the authority's.
const (
	DefaultDays   = 365
	AuthorityDays = 3650
)

// Errors of a Folder.
var (
	ErrThere   = errors.New("already exists")
	ErrMissing = errors.New("does not exist")
)

// Folder holds an authority and the certificates that it has signed. Its keys are 0600, the folder is 0700.
type Folder struct {
	Path string
	Now  func() time.Time
}

func (f Folder) file(name string) string { return filepath.Join(f.Path, name) }

// Init makes the authority.
func (f Folder) Init(days int) error {
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "xdpmon authority"}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	if err := f.sign(authority, template, nil, days, false); err != nil {
		return err
	}
	return f.revoke(nil)
}

// Make makes a key and a certificate. hosts are the names and addresses that a coordinator is reached at.
func (f Folder) Make(role, name string, hosts []string, days int) error {
	template, err := f.template(role, name, hosts)
	if err != nil {
		return err
	}
	return f.sign(name, template, template, days, false)
}

func (f Folder) template(role, name string, hosts []string) (*x509.Certificate, error) {
	if err := bus.CheckName(name); err != nil {
		return nil, fmt.Errorf("make keys: %w", err)
	}
	if name == authority {
		return nil, fmt.Errorf("make keys: name %q is the authority's", name)
	}
	t := &x509.Certificate{Subject: pkix.Name{CommonName: name, OrganizationalUnit: []string{role}}, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if role == Coordinator {
		if len(hosts) == 0 {
			return nil, errors.New("make keys: a coordinator needs the names or addresses that agents reach it at")
		}
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		for _, h := range hosts {
			if ip := net.ParseIP(h); ip != nil {
				t.IPAddresses = append(t.IPAddresses, ip)
			} else {
				t.DNSNames = append(t.DNSNames, h)
			}
		}
	}
	return t, nil
}

// Renew replaces key and certificate of a name by new ones with the same contents. The old certificate is valid until it expires or
// is revoked.
func (f Folder) Renew(name string, days int) error {
	old, err := f.read(name)
	if err != nil {
		return err
	}
	if old.IsCA {
		return fmt.Errorf("renew %s: an authority is not renewed: make another folder, and distribute its certificates", name)
	}
	template := &x509.Certificate{Subject: old.Subject, BasicConstraintsValid: true, KeyUsage: old.KeyUsage, ExtKeyUsage: old.ExtKeyUsage,
		DNSNames: old.DNSNames, IPAddresses: old.IPAddresses}
	return f.sign(name, template, template, days, true)
}

// Revoke adds the certificates of a name in the folder to the CRL.
func (f Folder) Revoke(name string) error {
	c, err := f.read(name)
	if err != nil {
		return err
	}
	if c.IsCA {
		return fmt.Errorf("revoke %s: revoking the authority invalidates all certificates: make another folder", name)
	}
	return f.revoke(c)
}

// Entry is a certificate of a folder.
type Entry struct {
	Name, Role string
	Hosts      []string
	Until      time.Time
	Revoked    bool
}

// List lists the certificates.
func (f Folder) List() ([]Entry, error) {
	files, err := filepath.Glob(f.file("*" + certificates))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("list keys in %s: %w", f.Path, ErrMissing)
	}
	ca, err := f.read(authority)
	if err != nil {
		return nil, err
	}
	list, err := revoked(f.file(revocations), ca)
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, file := range files {
		c, err := f.read(strings.TrimSuffix(filepath.Base(file), certificates))
		if err != nil {
			return nil, err
		}
		e := Entry{Name: c.Subject.CommonName, Role: role(c), Hosts: c.DNSNames, Until: c.NotAfter, Revoked: list[c.SerialNumber.Text(16)]}
		for _, ip := range c.IPAddresses {
			e.Hosts = append(e.Hosts, ip.String())
		}
		all = append(all, e)
	}
	return all, nil
}

func role(c *x509.Certificate) string {
	if c.IsCA {
		return "authority"
	}
	return strings.Join(c.Subject.OrganizationalUnit, ",")
}

// sign makes a key and writes it with its certificate; subject is nil for the authority, which signs itself.
func (f Folder) sign(name string, template, subject *x509.Certificate, days int, replace bool) error {
	fail := func(err error) error { return fmt.Errorf("make keys of %s: %w", name, err) }
	if _, err := os.Stat(f.file(name + certificates)); err == nil && !replace {
		return fail(fmt.Errorf("%s: %w", f.file(name+certificates), ErrThere))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return fail(err)
	}
	now := f.Now()
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	template.NotBefore, template.NotAfter = now.Add(-5*time.Minute), now.Add(time.Duration(days)*24*time.Hour) // clocks of hosts differ
	ca, caKey := template, key
	if subject != nil {
		if ca, caKey, err = f.authority(); err != nil {
			return fail(err)
		}
		if template.NotAfter.After(ca.NotAfter) {
			template.NotAfter = ca.NotAfter
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	if err != nil {
		return fail(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fail(err)
	}
	if err := write(f.file(name+private), "PRIVATE KEY", secret, 0o600); err != nil {
		return fail(err)
	}
	if err := write(f.file(name+certificates), "CERTIFICATE", der, 0o644); err != nil {
		return fail(err)
	}
	return nil
}

// write writes a file atomically.
func write(path, kind string, der []byte, mode fs.FileMode) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return err
	}
	if err := os.Chmod(tmp, mode); err != nil { // an existing one may have another mode
		return err
	}
	return os.Rename(tmp, path)
}

func (f Folder) authority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	ca, err := f.read(authority)
	if err != nil {
		return nil, nil, err
	}
	block, err := readPEM(f.file(authority+private), "PRIVATE KEY")
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(block)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", f.file(authority+private), err)
	}
	if k, ok := key.(*ecdsa.PrivateKey); ok {
		return ca, k, nil
	}
	return nil, nil, fmt.Errorf("read %s: not a key made by this program", f.file(authority+private))
}

func (f Folder) read(name string) (*x509.Certificate, error) {
	if name != filepath.Base(name) {
		return nil, fmt.Errorf("name %q: paths are not allowed", name)
	}
	return readCertificate(f.file(name + certificates))
}

func readCertificate(path string) (*x509.Certificate, error) {
	block, err := readPEM(path, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(block)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return c, nil
}

func readPEM(path, kind string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w: `xdpmon-coordinator keys` makes it", path, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("read %s: no %s in it", path, strings.ToLower(kind))
	}
	return block.Bytes, nil
}

// revoke rewrites the CRL, with one more certificate if one is given.
func (f Folder) revoke(c *x509.Certificate) error {
	fail := func(err error) error { return fmt.Errorf("revoke: %w", err) }
	ca, key, err := f.authority()
	if err != nil {
		return fail(err)
	}
	list := &x509.RevocationList{Number: big.NewInt(1)}
	if old, err := readList(f.file(revocations), ca); err == nil {
		list.Number, list.RevokedCertificateEntries = new(big.Int).Add(old.Number, big.NewInt(1)), old.RevokedCertificateEntries
	} else if !errors.Is(err, ErrMissing) {
		return fail(err)
	}
	if c != nil {
		if slices.ContainsFunc(list.RevokedCertificateEntries, func(e x509.RevocationListEntry) bool { return e.SerialNumber.Cmp(c.SerialNumber) == 0 }) {
			return nil
		}
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: c.SerialNumber, RevocationTime: f.Now()})
	}
	list.ThisUpdate, list.NextUpdate = f.Now(), ca.NotAfter
	der, err := x509.CreateRevocationList(rand.Reader, list, ca, key)
	if err != nil {
		return fail(err)
	}
	if err := write(f.file(revocations), "X509 CRL", der, 0o644); err != nil {
		return fail(err)
	}
	return nil
}

func readList(path string, ca *x509.Certificate) (*x509.RevocationList, error) {
	block, err := readPEM(path, "X509 CRL")
	if err != nil {
		return nil, err
	}
	list, err := x509.ParseRevocationList(block)
	if err == nil {
		err = list.CheckSignatureFrom(ca)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return list, nil
}

// revoked are the serial numbers of a list.
func revoked(path string, ca *x509.Certificate) (map[string]bool, error) {
	list, err := readList(path, ca)
	if err != nil {
		return nil, err
	}
	serials := map[string]bool{}
	for _, e := range list.RevokedCertificateEntries {
		serials[e.SerialNumber.Text(16)] = true
	}
	return serials, nil
}
