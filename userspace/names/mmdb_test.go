package names

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// systems writes a file in which 192.0.2.0/24 belongs to AS64500 in Germany.
func systems(t *testing.T, path, organization string) string {
	t.Helper()
	record := map[string]any{"autonomous_system_number": uint32(64500), "autonomous_system_organization": organization, "country": map[string]any{"iso_code": "DE"}}
	if err := os.WriteFile(path+".new", mmdb(record), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// mmdb is a database in MaxMind's format with one network, 192.0.2.0/24: a tree of 24 nodes with two records of 24 bits, 16 zeros, data, metadata.
func mmdb(record map[string]any) []byte {
	const nodes, bits = 24, 24
	network := uint32(192<<24 | 2<<8)
	var b bytes.Buffer
	for n := range uint32(nodes) {
		sides := [2]uint32{nodes, nodes} // nothing there
		side := network >> (31 - n) & 1
		if sides[side] = n + 1; n == bits-1 {
			sides[side] = nodes + 16 // the data section's first byte
		}
		for _, s := range sides {
			b.Write([]byte{byte(s >> 16), byte(s >> 8), byte(s)})
		}
	}
	b.Write(make([]byte, 16))
	encode(&b, record)
	b.WriteString("\xab\xcd\xefMaxMind.com")
	encode(&b, map[string]any{"node_count": uint32(nodes), "record_size": uint16(24), "ip_version": uint16(4), "database_type": "Test", "binary_format_major_version": uint16(2),
		"binary_format_minor_version": uint16(0), "build_epoch": uint32(1)})
	return b.Bytes()
}

func encode(b *bytes.Buffer, v any) {
	head := func(kind, size int) {
		extra := []byte{}
		switch {
		case size >= 285:
			extra, size = binary.BigEndian.AppendUint16(nil, uint16(size-285)), 30
		case size >= 29:
			extra, size = []byte{byte(size - 29)}, 29
		}
		b.WriteByte(byte(kind<<5 | size))
		b.Write(extra)
	}
	switch v := v.(type) {
	case string:
		head(2, len(v))
		b.WriteString(v)
	case uint16:
		head(5, 2)
		b.Write(binary.BigEndian.AppendUint16(nil, v))
	case uint32:
		head(6, 4)
		b.Write(binary.BigEndian.AppendUint32(nil, v))
	case map[string]any:
		head(7, len(v))
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			encode(b, k)
			encode(b, v[k])
		}
	}
}

// A network has what a database knows of all of it, and an address outside of the database nothing.
func TestDatabaseOfNetworks(t *testing.T) {
	n, err := New(Options{Files: []string{systems(t, filepath.Join(t.TempDir(), "as.mmdb"), "Example")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	for text, want := range map[string]uint32{"192.0.2.0/24": 64500, "192.0.2.128/25": 64500, "192.0.2.7/32": 64500, "192.0.0.0/16": 0, "192.0.2.0/23": 0, "192.0.3.0/24": 0, "198.51.100.0/24": 0, "198.51.100.1/32": 0} {
		if got := n.prefix(netip.MustParsePrefix(text)); got.AS != want || (got.Country == "DE") != (want > 0) {
			t.Errorf("%s: %+v, want AS %d", text, got, want)
		}
	}
}
