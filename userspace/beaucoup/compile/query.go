package compile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// ErrQuery is wrapped by every error in a query.
var ErrQuery = errors.New("write queries as NAME: count distinct FIELDS by FIELDS > NUMBER in DURATION [if FILTER]")

// MaxQueries is QUERIES of the program.
const MaxQueries = 128

// Query counts distinct attributes by key (Chen, section 4.2.1).
type Query struct {
	Name      string
	Attribute Tuple
	Key       Tuple
	Threshold int
	Window    time.Duration
	Filter    Filter
}

// Text is the query as it is written.
func (q *Query) Text() string {
	text := fmt.Sprintf("%s: count distinct %s by %s > %d in %v", q.Name, q.Attribute.Text, q.Key.Text, q.Threshold, q.Window)
	if q.Filter.Text != "" {
		text += " if " + q.Filter.Text
	}
	return text
}

// Filter selects packets by some bits of the word with ports, protocol and flags.
type Filter struct {
	Text        string
	Mask, Value uint64
	Valid       packet.Valid
}

var form = regexp.MustCompile(`^\s*([\w.-]+)\s*:\s*count\s+distinct\s+(.+?)\s+by\s+(.+?)\s*>\s*(\d+)\s+in\s+(\S+?)(?:\s+if\s+(.+?))?\s*$`)

// ParseQuery reads one query.
func ParseQuery(text string) (Query, error) {
	m := form.FindStringSubmatch(text)
	if m == nil {
		return Query{}, fmt.Errorf("read query %q: %w", strings.TrimSpace(text), ErrQuery)
	}
	q := Query{Name: m[1]}
	err := q.read(m[2], m[3], m[4], m[5], m[6])
	if err != nil {
		return q, fmt.Errorf("read query %s: %w", q.Name, err)
	}
	return q, nil
}

func (q *Query) read(attribute, key, threshold, window, filter string) (err error) {
	if q.Attribute, err = ParseTuple(attribute); err != nil {
		return err
	}
	if q.Key, err = ParseTuple(key); err != nil {
		return err
	}
	if q.Key.Mask[WordPacket] != 0 {
		return errors.New("read key: timestamp differs in every packet, it cannot be a key")
	}
	if q.Threshold, err = strconv.Atoi(threshold); err != nil || q.Threshold < 1 || q.Threshold > 10_000_000 {
		return fmt.Errorf("read threshold %s: allowed are 1 to 10000000", threshold)
	}
	if q.Window, err = time.ParseDuration(window); err != nil || q.Window < time.Millisecond || q.Window > 30*time.Minute {
		return fmt.Errorf("read window %s: allowed are 1ms to 30m", window)
	}
	if q.Filter, err = ParseFilter(filter); err != nil {
		return err
	}
	if q.Attribute.ipv4 || q.Key.ipv4 {
		err = q.Filter.bits(0xf<<shiftFamily, 4<<shiftFamily)
	}
	if err == nil && (q.Attribute.ipv6 || q.Key.ipv6) {
		err = q.Filter.bits(0xf<<shiftFamily, 6<<shiftFamily)
	}
	return err
}

var flagBits = map[string]uint8{"tcp.fin": packet.FIN, "tcp.syn": packet.SYN, "tcp.rst": packet.RST, "tcp.psh": packet.PSH,
	"tcp.ack": packet.ACK, "tcp.urg": packet.URG}

var protocols = map[string]packet.Valid{"tcp": packet.TCP, "udp": packet.UDP, "icmp": packet.ICMP}

// ParseFilter reads "tcp.syn and not tcp.ack and dport=80"; "" selects everything.
func ParseFilter(text string) (Filter, error) {
	f := Filter{Text: strings.TrimSpace(text)}
	if f.Text == "" {
		return f, nil
	}
	for term := range strings.SplitSeq(f.Text, " and ") {
		if err := f.term(strings.TrimSpace(term)); err != nil {
			return f, fmt.Errorf("read filter %q: %w", term, err)
		}
	}
	return f, nil
}

func (f *Filter) term(term string) error {
	name, negated := strings.CutPrefix(term, "not ")
	name = strings.TrimSpace(name)
	if bit, ok := flagBits[name]; ok {
		f.Valid |= packet.TCP
		mask := uint64(bit) << shiftFlags
		if negated {
			return f.bits(mask, 0)
		}
		return f.bits(mask, mask)
	}
	if negated {
		return fmt.Errorf("%w: not applies to a TCP flag, as in not tcp.ack", ErrField)
	}
	if valid, ok := protocols[name]; ok {
		f.Valid |= valid
		return nil
	}
	if name == "ipv4" || name == "ipv6" {
		return f.bits(0xf<<shiftFamily, uint64(name[3]-'0')<<shiftFamily)
	}
	return f.equal(name)
}

// equal reads FIELD=NUMBER.
func (f *Filter) equal(term string) error {
	name, number, ok := strings.Cut(term, "=")
	for _, field := range fields {
		if field.name != strings.TrimSpace(name) || field.word != WordPorts || !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(number), 0, 64)
		if err != nil || n > field.mask>>field.shift {
			return fmt.Errorf("%s is a number from 0 to %d", field.name, field.mask>>field.shift)
		}
		f.Valid |= field.valid
		return f.bits(field.mask, n<<field.shift)
	}
	return fmt.Errorf("%w: filters are tcp, udp, icmp, ipv4, ipv6, [not] tcp.syn (ack, fin, rst, psh, urg), "+
		"and =NUMBER of sport, dport, proto, tcp.flags, vlan; joined by and", ErrField)
}

func (f *Filter) bits(mask, value uint64) error {
	if both := f.Mask & mask; f.Value&both != value&both {
		return errors.New("no packet can match: the terms contradict each other (prefixes to /32 mean IPv4, longer ones IPv6)")
	}
	f.Mask, f.Value = f.Mask|mask, f.Value|value
	return nil
}

// ParseQueries reads queries, one per line or separated by semicolons; # starts a comment line.
func ParseQueries(text string) ([]Query, error) {
	var all []Query
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		q, err := ParseQuery(line)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, check(all)
}

func check(all []Query) error {
	if len(all) == 0 || len(all) > MaxQueries {
		return fmt.Errorf("read queries: %d given, allowed are 1 to %d", len(all), MaxQueries)
	}
	seen := map[string]bool{}
	for _, q := range all {
		if seen[q.Name] {
			return fmt.Errorf("read queries: %s occurs twice", q.Name)
		}
		seen[q.Name] = true
	}
	return nil
}

// maxFile bounds a file of queries, because a device has no end: 500 bytes for each query are ample.
const maxFile = 64 << 10

// ReadFile reads a YAML file: a list "queries", each "name: count distinct ...".
func ReadFile(path string) ([]Query, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read queries: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read queries: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read queries: %s has more than %d KiB: is it a file of queries?", path, maxFile>>10)
	}
	return ParseYAML(data)
}

// ParseYAML is ReadFile for the content of a file.
func ParseYAML(data []byte) ([]Query, error) {
	var file struct {
		Queries []map[string]string `yaml:"queries"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("read queries: %w", err)
	}
	var all []Query
	for _, entry := range file.Queries {
		for name, text := range entry {
			q, err := ParseQuery(name + ": " + text)
			if err != nil {
				return nil, err
			}
			all = append(all, q)
		}
	}
	return all, check(all)
}
