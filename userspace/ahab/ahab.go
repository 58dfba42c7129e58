// Package ahab is userspace's half of AHAB: fair shares of a slice's capacity, enforced where packets enter.
//
// From a limit to a packet: control.Loop.Tick computes what each slice may take and for how long (share.Divide, Grant); controller.go writes it
// into the map ahab_slices, instance.go the lease into ahab_lease. From these the data plane computes each epoch's limit of a user
// (limit_after in bpf/ahab/ahab.bpf.c) and judges packets by it (judge). bpf/verdict, last in the chain, drops, marks or delays them.
package ahab

import (
	bpf "github.com/xdpmon/xdpmon/bpf/ahab"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Name of the algorithm.
const Name = "ahab"

func init() { algo.Register(descriptor()) }

// losses are what a window can lack, by the names of algo.Result.Lost.
var losses = map[string]string{
	"epochs_refused": "new limits that no second pass wrote: the limit stayed for an epoch more",
	"samples":        "packets above the limit that found no room on their way to the list of users",
}

func descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:     Name,
		Summary:  "fair bandwidth for any number of users: a limit a slice that follows demand within milliseconds",
		Lost:     losses,
		Paper:    `Chen: "Designing Compact Data Structures for Network Measurement and Control", dissertation, Princeton University, 2023, chapter 6`,
		Doc:      doc,
		Params:   params,
		Twin:     twinForms,
		Enforces: true,
		Spec:     bpf.LoadAhab,
		Config:   algo.Typed(newConfig),
		Layout:   2,
		Findings: findings,
	}
}

const doc = `Shares a slice's capacity fairly between its users (max-min): a user who wants less than the limit gets all, the others get the limit.
There is no queue and no counter per user: a user's rate is the smallest of three cells of a sketch whose cells forget with the time
constant ahab.tau, and of what is above the slice's limit a share passes. Once a millisecond the packets that would have passed under a lower,
the present and a higher limit give the next limit, so that it follows users who appear and leave within some milliseconds.

Nothing is dropped until a capacity is given, and ahab.dry-run counts what would be dropped without doing it. TCP loses single segments at
intervals, or has them marked where it understands ECN; other traffic is thinned out by a coin. What was done to each slice is counted:
passed, dropped, marked, in packets, segments of aggregates one by one, and in bytes. When the process stops or dies, everything passes:
limits hold for ahab.lease from the last renewal on.

A rate is what arrived in about the last ahab.tau. One full packet of 1500 bytes in 4 ms reads as 3 Mbit/s, so that limits far below that
treat all users who send at all alike: give a larger ahab.tau where fair shares are small. A user's rate reads too high by what others
put into the same cells, which the report estimates ("rate_error"); the limit rises by as much, since it is found by what passes.

Up to an ahab.capacity of 200 Mbit/s, ahab.tau=auto averages live traffic over 800 ms, and the limit moves every 400 ms: a TCP flow with a
short round trip and no queue waits for time-outs of 200 ms, and a faster limit would give its share to others meanwhile. New users have
their shares within two seconds then; the ceiling holds in every second.

ahab.act=pace delays what leaves instead of dropping it, as bandwidth managers of hosts do: each user's packets get times of departure at the
limit, all of a slice's at its ceiling, and the interface's queue, which has to be fq, keeps them. 98 % of the capacity is shared then.

ahab.update=aimd moves the limit by steps as HCSFQ does, for comparison: it follows ten times more slowly. ahab.form=table calculates as
the P4 twin does: by a table of quotients, powers of two, and whole packets by a Weyl sequence.`

var params = []algo.Param{
	{Key: "capacity", Type: algo.String, Default: "0", Help: "of everything as one slice, in bits a second (100Mbit, 2.5Gbit); 0: nobody is limited"},
	{Key: "user", Type: algo.Enum, Default: "5tuple", Choices: []string{"5tuple", "source", "destination"}, Help: "what a user is, where everything is one slice"},
	{Key: "config", Type: algo.String, Default: "", Help: "YAML file of slices, in the place of capacity and user; a live run follows its changes. Or its text, beginning with {"},
	{Key: "fail", Type: algo.Enum, Default: failOpen, Choices: []string{failOpen, failHold}, Help: "when this process stops: open, limits end with ahab.lease; hold, they stay for ahab.hold"},
	{Key: "hold", Type: algo.Duration, Default: "0s", Min: "0s", Max: "1h", Help: "how long limits stay with ahab.fail=hold; after a killed process only with --pin"},
	{Key: "dry-run", Type: algo.Bool, Default: "false", Help: "count what would be dropped or marked, and do neither"},
	{Key: "lease", Type: algo.Duration, Default: "180ms", Min: "20ms", Max: "1h", Help: "limits end so long after the process stopped renewing them"},
	{Key: "tau", Type: algo.String, Default: auto, Help: "time constant of rates, 500us to 10s; auto: 4ms, and 800ms where ahab.capacity is at most 200Mbit and live packets are dropped"},
	{Key: "epoch", Type: algo.String, Default: auto, Help: "time between two limits of a slice, 100us to 1s; auto: 1ms, and 400ms where auto has chosen 800ms for ahab.tau"},
	{Key: "burst", Type: algo.Duration, Default: "200ms", Min: "1ms", Max: "1s", Help: "unused time that a ceiling keeps: no second has more than the ceiling, so much of it, and one packet or aggregate"},
	{Key: "act", Type: algo.Enum, Default: actDrop, Choices: []string{actDrop, actPace}, Help: "what happens above limits and ceilings: drop, or mark; pace, packets that leave wait for their time in the interface's queue (fq; --direction egress)"},
	{Key: "horizon", Type: algo.Duration, Default: "200ms", Min: "1ms", Max: "2s", Help: "act=pace: a packet that would wait longer is dropped; from half of it on those that understand ECN are marked"},
	{Key: "columns", Type: algo.Int, Default: "2048", Min: "64", Max: "65536", Help: "cells of each of the sketch's three rows, a power of two"},
	{Key: "flows", Type: algo.Int, Default: "4096", Min: "64", Max: "65536", Help: "countdowns of TCP flows above the limit, a power of two; act=pace: users' times of departure"},
	{Key: "spacing", Type: algo.Size, Default: "0", Min: "0", Max: "1GB", Help: "bytes of a TCP flow between two losses to begin with; 0: what fits a round trip of 10 ms"},
	{Key: "grace", Type: algo.Int, Default: "4", Min: "2", Max: "1000", Help: "a TCP flow that stays so many times above the limit from one loss to the next loses what is beyond it"},
	{Key: "update", Type: algo.Enum, Default: "interpolate", Choices: []string{"interpolate", "aimd"}, Help: "how the limit moves; aimd: as HCSFQ does, for comparison"},
	{Key: "form", Type: algo.Enum, Default: "exact", Choices: []string{"exact", "table"}, Help: "arithmetic; table: the P4 twin's"},
	{Key: "top", Type: algo.Int, Default: "20", Min: "1", Max: "1000", Help: "users above the limit, and slices, that are listed"},
}
