package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// What stands in the queue that culprits are asked for: one TCP flow that has always something to send, beside a flow of datagrams of less than conquest.alpha, 1/16.
const (
	standingRate = 4e6 // bits a second: what an emulated machine sends with ease
	standingFor  = 8 * time.Second
	smallPart    = .03
	smallSize    = 500
	leastNamed   = .95 // of the bursts
)

// culprits are named in a queue that stands: of bursts longer than 20 ms the TCP flow, the other one never, and shares are between their ends. A burst of a few
// aggregates may have no name: at most one in twenty.
func (q queue) culprits() (detail string, err error) {
	before := programs()
	topology, err := netns.New(netns.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, topology.Close()) }()
	q.rate = standingRate
	if err := q.install(topology); err != nil {
		return "", err
	}
	run, err := start(topology, "--algo", "conquest", "--set", "conquest.bursts=1000", "--window", "2m")
	if err != nil {
		return "", err
	}
	small, err := stand(topology)
	if err := errors.Join(err, run.end(unix.SIGINT)); err != nil {
		return "", err
	}
	if detail, err = namedIn(run.windows, small); err != nil {
		return "", err
	}
	return detail, nothingLeft(topology, before)
}

// stand fills the queue, and returns how many bytes of datagrams were handed to it.
func stand(topology *netns.Topology) (small float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), standingFor)
	defer cancel()
	sink, err := topology.B.ListenPacket(ctx, "udp4", netip.AddrPortFrom(topology.B.IPv4, 7).String())
	if err != nil {
		return 0, err
	}
	defer sink.Close()
	listener, err := topology.B.Listen(ctx, "tcp", netip.AddrPortFrom(topology.B.IPv4, 0).String())
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	conn, err := topology.A.Dial(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetLinger(0)
	end, _ := ctx.Deadline()
	_ = conn.SetDeadline(end)
	go func() {
		for b := make([]byte, 1<<16); ; {
			if _, err := conn.Write(b); err != nil {
				return // the time is over
			}
		}
	}()
	datagrams, err := topology.A.Dial(ctx, "udp4", sink.LocalAddr().String())
	if err != nil {
		return 0, err
	}
	defer datagrams.Close()
	const each = smallSize * 8 * 1000 / (smallPart * standingRate) // ms
	every := time.Duration(math.Round(each)) * time.Millisecond
	for ; ctx.Err() == nil; time.Sleep(every) {
		if _, err := datagrams.Write(make([]byte, smallSize-42)); err == nil { // else the queue is full
			small += smallSize
		}
	}
	return small, nil
}

// namedIn judges the log. small: bytes that were not of the TCP flow, at most.
func namedIn(windows []map[string]any, small float64) (detail string, err error) {
	bursts, named, unknown, other, wrong := 0, 0, 0, 0, 0
	low, seconds, known := 1.0, 0.0, 0.0
	for _, w := range windows {
		report, _ := w["report"].(map[string]any)
		log, _ := report["log"].([]any)
		for _, row := range log {
			b, _ := row.(map[string]any)
			length, _ := b["length_ns"].(float64)
			if length < 20e6 {
				continue
			}
			bursts++
			seconds += length / 1e9
			culprit, _ := b["culprit"].(string)
			switch {
			case strings.HasSuffix(culprit, " tcp"):
				named++
				known += length / 1e9
			case strings.HasSuffix(culprit, " udp"):
				other++
				continue
			default:
				unknown++
				continue
			}
			least, _ := b["share_at_least"].(float64)
			most, _ := b["share_at_most"].(float64)
			if low = min(low, least); least > most || most < 1-2*smallPart { // datagrams are sent at their own rate
				wrong++
			}
		}
	}
	detail = fmt.Sprintf("%d bursts over 20 ms, %.1f s together; the TCP flow named in %d, %.1f s, nobody in %d, the datagrams (%.0f kB) in %d; its share at least %.2f, and outside of its ends in %d", bursts, seconds, named, known, unknown, small/1e3, other, low, wrong)
	switch {
	case bursts == 0 || seconds < standingFor.Seconds()/4:
		return "", errors.New("no queue stands: " + detail)
	case other > 0:
		return "", errors.New("a flow below alpha is named: " + detail)
	case float64(named) < leastNamed*float64(bursts):
		return "", errors.New("too few are named: " + detail)
	case wrong > 0:
		return "", errors.New("a share is outside of its ends: " + detail)
	}
	return detail, nil
}
