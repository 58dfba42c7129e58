// Package waits is userspace's half of waits: which connections wait, and whether for their receiver, the path or the server.
package waits

import (
	_ "embed"
	"strings"

	bpf "github.com/xdpmon/xdpmon/bpf/waits"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/waits/findings"
)

// Name of the algorithm.
const Name = "waits"

func init() { algo.Register(Descriptor()) }

// Descriptor of the algorithm.
func Descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:    Name,
		Pairs:   true,
		Summary: "which connections wait, and for whom: receiver, path or server",
		Paper: `Liu, Zhou, Rottenstreich, Braverman, Rexford: "Memory-Efficient Performance Monitoring on Programmable Switches with Lean Algorithms", APOCS 2020, sections 2, 3 and 8; ` +
			`Ghasemi, Benson, Rexford: "Dapper: Data Plane Performance Diagnosis of TCP", SOSR 2017`,
		Doc:    strings.TrimSpace(doc),
		Params: params,
		Lost: map[string]string{
			"missed":   "records that found their place taken by another connection's, or were overwritten before they were answered",
			"too_long": "waits of more than 275 s",
			"crowded":  "waits that found no place in the table",
			"reports":  "reports of connections that were dropped because the ring to userspace was full",
			"unnamed":  "waits of connections whose report was dropped",
		},
		Spec:     bpf.LoadWaits,
		Config:   algo.Typed(newConfig),
		Layout:   1,
		Findings: findings.Of,
	}
}

//go:embed doc.txt
var doc string

var params = []algo.Param{
	{Key: "small", Type: algo.Size, Default: "2920", Min: "1", Max: "65535", Help: "a receive window below this is closed, in bytes after scaling; 1: only windows of zero"},
	{Key: "late", Type: algo.Duration, Default: "250ms", Min: "2ms", Max: "60s", Help: "an ACK without data that takes this or longer is late; stacks delay ACKs by 40 to 200 ms on purpose"},
	{Key: "slow", Type: algo.Duration, Default: "100ms", Min: "1us", Max: "60s", Help: "legs of handshakes and answers that take this or longer are waits of their connection; shorter ones are in the percentiles only"},
	{Key: "p", Type: algo.String, Default: "1", Help: "share of the connections that are followed, 1/1024 to 1, each from its first to its last packet"},
	{Key: "memory", Type: algo.Size, Default: "80kB", Min: "5kB", Max: "2560kB", Help: "records and counters of one bank; powers of two times 80 kB are used whole"},
	{Key: "top", Type: algo.Int, Default: "100", Min: "1", Max: "10000", Help: "rows in each table"},
	{Key: "ring", Type: algo.Size, Default: "1MiB", Min: "4KiB", Max: "1GiB", Help: "ring of reports, a power of two; at least 4MiB in a replay"},
}
