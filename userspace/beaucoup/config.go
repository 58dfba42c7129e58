package beaucoup

import (
	"fmt"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Name of the algorithm.
const Name = "beaucoup"

var params = []algo.Param{
	{Key: "set", Type: algo.Enum, Default: "six", Choices: []string{"six", "many"},
		Help: "queries that are ready to use: the six of table 4.1, or 26 over eleven attributes"},
	{Key: "queries", Type: algo.String, Default: "", Help: "queries instead, separated by semicolons (xdpmon algos beaucoup)"},
	{Key: "file", Type: algo.String, Default: "", Help: "YAML file of queries instead; a live run follows its changes"},
	{Key: "budget", Type: algo.Float, Default: "1/3", Min: "1/100000", Max: "1", Unit: "coupons a packet",
		Help: "most coupons a packet of all queries together; each coupon costs three accesses"},
	{Key: "coupons", Type: algo.Enum, Default: "32", Choices: []string{"32", "64"}, Help: "coupons of a collector at most: one word, or two"},
	{Key: "total", Type: algo.Enum, Default: "auto", Choices: []string{"auto", "true", "false"},
		Help: "count on after an alert, with a tail of rarer coupons: 8 bytes a collector; auto: true, but with --hash crc, since the P4 twin has no tails"},
	{Key: "entries", Type: algo.Int, Default: "65536", Min: "16", Max: "65536", Unit: "collectors",
		Help: "collectors, a power of two; more do not fit a stage of a switch. Several tables and the second place share them, each a power of two"},
	{Key: "tables", Type: algo.Int, Default: "1", Min: "1", Max: "3",
		Help: "tables of collectors, each of which takes one coupon a packet: with three, fields of a key that draw for other queries take hardly any coupons from it"},
	{Key: "places", Type: algo.Int, Default: "1", Min: "1", Max: "2",
		Help: "places of a collector: with two, a key whose place another one has gets one in a further table"},
	{Key: "evict", Type: algo.Float, Default: "1/2", Min: "0", Max: "1", Help: "share of the table above which collectors without hope of an alert are evicted; 1: never"},
	{Key: "names", Type: algo.String, Default: "", Help: "DNS names, separated by commas, that keys are shown by; dns.qname of others is shown as a number"},
	{Key: "ties", Type: algo.Bool, Default: "true", Help: "correct for coupons that are lost because a packet draws several"},
	{Key: "keyed", Type: algo.Bool, Default: "false", Help: "hash attributes by SipHash-1-3 with a secret key: for attackers who watch which of their packets count; costs 20 to 30 ns an attribute"},
	{Key: "rotate", Type: algo.Bool, Default: "false", Help: "new hashes every window, so that an attacker cannot learn to avoid them; collectors restart with the window"},
	{Key: "export", Type: algo.Bool, Default: "false", Help: "report every collector's coupons, for xdpmon merge; needs a common --seed"},
	{Key: "compiled", Type: algo.String, Default: "many", Help: "for `xdpmon p4 rules` only: queries that the switch's program was compiled with: six, many, or a YAML file"},
	{Key: "ring", Type: algo.Size, Default: "1MiB", Min: "4KiB", Max: "1GiB", Help: "ring of alerts, a power of two; at least 16MiB in a replay"},
	{Key: "top", Type: algo.Int, Default: "1000", Min: "1", Max: "100000", Help: "alerts in the table, newest last"},
}

// config is the parsed and checked form of the parameters.
type config struct {
	values     algo.Values
	file       string
	options    compile.CompileOptions
	entries    uint32
	ring       int64
	top        int
	rotate     bool
	keyed      bool
	evictAbove float64
	export     bool
	second     bool // there is a second place
	total      bool // collectors have a tail
	replay     bool
	crc        bool // use the switch's hashes
}

// newConfig reads the parameters. Queries and names belong to the instance, because they depend on a file that only this host has, and on
// the seed; a snapshot contains its own.
func newConfig(v algo.Values, setup algo.Setup) (*config, error) {
	c := &config{values: v, file: v.Text("file"), entries: uint32(v.Int("entries")), ring: v.Bytes("ring"), top: int(v.Int("top")),
		rotate: v.Bool("rotate"), keyed: v.Bool("keyed"), evictAbove: v.Float("evict"), export: v.Bool("export"), replay: setup.Replay, crc: setup.Hash == algo.HashCRC,
		second:  v.Int("places") == 2,
		total:   v.Text("total") == "true" || v.Text("total") == "auto" && setup.Hash != algo.HashCRC,
		options: compile.CompileOptions{Budget: v.Float("budget"), Word: 32, Ties: v.Bool("ties"), Tables: int(v.Int("tables"))}}
	if v.Text("coupons") == "64" {
		c.options.Word = 64
	}
	if c.entries&(c.entries-1) != 0 {
		return nil, v.Error("entries", "allowed are powers of two from 16 to 65536")
	}
	if c.ring&(c.ring-1) != 0 {
		return nil, v.Error("ring", "allowed are powers of two from 4KiB to 1GiB")
	}
	if setup.Replay {
		c.ring = max(c.ring, compile.ReplayRing) // the ring is not drained between two windows of a replay
	}
	if setup.Hash == algo.HashCRC && c.total {
		return nil, v.NoForm("total", noTails)
	}
	if setup.Hash == algo.HashCRC && c.keyed {
		return nil, v.Error("keyed", "--hash crc, the switch's hashes, has no secret")
	}
	if setup.Hash == algo.HashCRC && c.rotate {
		return nil, v.Error("rotate", "--hash crc, the switch's hashes, has one set of them")
	}
	return c, nil
}

// noTails is what the P4 twin has of beaucoup.total: in `--hash crc` a coupon uses all bits of its hash that the twin carries.
const noTails = "auto or false"

// dated reports whether a vector's word holds its window's end in the bits above its 32 coupons.
func (c *config) dated() bool { return c.options.Word == 32 }

func readQueries(v algo.Values) ([]compile.Query, error) {
	text, file := v.Text("queries"), v.Text("file")
	switch {
	case text != "" && file != "":
		return nil, v.Error("file", "give beaucoup.queries or beaucoup.file, not both")
	case text != "":
		return compile.ParseQueries(text)
	case file != "":
		return compile.ReadFile(file)
	case v.Text("set") == "many":
		return compile.ParseQueries(compile.ManyQueries)
	}
	return compile.ParseQueries(compile.SixQueries)
}

// readCompiled reads the queries that a switch's program was compiled with.
func readCompiled(v algo.Values) ([]compile.Query, error) {
	name := v.Text("compiled")
	if name == "six" || name == "many" {
		return compile.ParseQueries(compile.Ready(name))
	}
	return compile.ReadFile(name)
}

// readNames reads the names to show, by their hash as in packets.
func readNames(v algo.Values, seed uint64) (map[uint64]string, error) {
	names := map[uint64]string{}
	for _, name := range strings.FieldsFunc(v.Text("names"), func(r rune) bool { return r == ',' || r == ' ' }) {
		wire := packet.WireName(name)
		if wire == "" {
			return nil, v.Error("names", fmt.Sprintf("%q is no DNS name: labels have 1 to 63 bytes, a name 255", name))
		}
		names[packet.HashName(seed, wire)] = name
	}
	return names, nil
}

func errorf(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }
