package names

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/xdpmon/xdpmon/userspace/report/known"
)

// mostBytes of a database: it is read into memory, since a mapped file that is truncated while it is replaced would end the process (SIGBUS).
const mostBytes = 512 << 20

// ErrDatabase is wrapped in errors of files that are not a database.
var ErrDatabase = errors.New("no database in MaxMind's format")

// database is a file of the user's, read again when it changes.
type database struct {
	path   string
	warn   func(format string, args ...any)
	reader atomic.Pointer[maxminddb.Reader]
	info   os.FileInfo // of the version in use
	failed string      // error of the last attempt to read a newer one
}

func openDatabase(path string, warn func(string, ...any)) (*database, error) {
	d := &database{path: path, warn: warn}
	return d, d.read()
}

const remedy = "give a .mmdb file of autonomous systems or countries, such as GeoLite2-ASN.mmdb, and download it again if it is damaged"

func (d *database) read() error {
	f, err := os.Open(d.path)
	if err != nil {
		return fmt.Errorf("open database of names: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open database of names: %w", err)
	}
	d.info = info
	if !info.Mode().IsRegular() || info.Size() > mostBytes {
		return fmt.Errorf("read %s: %w: a file of at most %d MiB is expected; %s", d.path, ErrDatabase, mostBytes>>20, remedy)
	}
	text := make([]byte, info.Size())
	if n, err := f.ReadAt(text, 0); n < len(text) {
		return fmt.Errorf("read %s: %w", d.path, err)
	}
	r, err := maxminddb.OpenBytes(text)
	if err != nil {
		return fmt.Errorf("read %s: %w: %w; %s", d.path, ErrDatabase, err, remedy)
	}
	if err := judge(r); err != nil {
		return fmt.Errorf("read %s: %w: %w; %s", d.path, ErrDatabase, err, remedy)
	}
	d.reader.Store(r)
	return nil
}

// Number of networks that are checked before a file is refused: those with data, and those without.
const (
	enough    = 1000
	patiently = 100_000
)

// judge refuses a file with neither autonomous systems nor countries: names of cities and anonymizers are not used.
func judge(r *maxminddb.Reader) error {
	n, empty := 0, 0
	for result := range r.Networks(maxminddb.IncludeNetworksWithoutData()) {
		if err := result.Err(); err != nil {
			return err
		}
		if !result.Found() {
			if empty++; empty >= patiently {
				return nil
			}
			continue
		}
		var one known.Name
		if fill(result, &one); one.Known() {
			return nil
		}
		if n++; n >= enough {
			break
		}
	}
	return fmt.Errorf("its type is %.60q: no autonomous system and no country in its first %d networks", r.Metadata.DatabaseType, n)
}

// reload reads a file that has changed. If it is unreadable the previous content stays in use.
func (d *database) reload() {
	info, err := os.Stat(d.path)
	if err == nil && os.SameFile(info, d.info) && info.ModTime().Equal(d.info.ModTime()) && info.Size() == d.info.Size() {
		return
	}
	if err == nil {
		err = d.read()
	}
	switch {
	case err == nil:
		d.failed = ""
	case err.Error() != d.failed:
		d.failed = err.Error()
		d.warn("database of names changed and is unreadable, keeping the previous one: %v", err)
	}
}

// into adds what applies to all of the network of so many bits.
func (d *database) into(a netip.Addr, bits int, one *known.Name) {
	result := d.reader.Load().Lookup(a)
	if result.Err() == nil && result.Found() && result.Prefix().Bits() <= bits {
		fill(result, one)
	}
}

const longestField = 100 // characters of a value

// fill reads the fields of MaxMind's and DB-IP's files, and those of IPinfo's. Missing fields, and those of another type, are left unchanged.
func fill(r maxminddb.Result, one *known.Name) {
	if one.AS == 0 {
		var number uint32
		if r.DecodePath(&number, "autonomous_system_number") == nil && number > 0 {
			one.AS = number
		} else if n, err := strconv.ParseUint(strings.TrimPrefix(text(r, "asn"), "AS"), 10, 32); err == nil {
			one.AS = uint32(n)
		}
	}
	for _, path := range [][]any{{"autonomous_system_organization"}, {"as_name"}} {
		if one.ASName == "" {
			one.ASName = text(r, path...)
		}
	}
	for _, path := range [][]any{{"country", "iso_code"}, {"registered_country", "iso_code"}, {"country_code"}, {"country"}} {
		if one.Country == "" {
			one.Country = country(text(r, path...))
		}
	}
}

func text(r maxminddb.Result, path ...any) string {
	var s string
	if r.DecodePath(&s, path...) != nil {
		return ""
	}
	return known.Sanitized(s, longestField)
}

// country is a code of two letters; "" for whole names, which some files have in the same field.
func country(code string) string {
	if len(code) != 2 {
		return ""
	}
	return code
}
