package main

import (
	"bytes"
	"cmp"
	"context"
	encoding "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// queue is a queueing discipline that packets go through.
type queue struct {
	name  string
	make  func(index int) netlink.Qdisc // nil: noqueue
	below bool                          // it is put below an HTB class of shapedRate
	form  string                        // what xdpmon prints of it
	least time.Duration                 // the longest delay that must be seen at least
	rate  uint64                        // of the class, bits a second; 0: shapedRate
	paced int                           // bytes a second that TCP is paced to; 0: it is not
	most  time.Duration                 // the mean delay that may be seen at most; 0: any
}

const (
	shapedRate = 20e6 // bits a second
	netemDelay = 50 * time.Millisecond

	// A full packet is due pacedPacket after the one before: TCP hands over several, and fq keeps them until then. That is no wait for others.
	pacedTo     = 100e3
	pacedPacket = 15 * time.Millisecond

	words = "room for a time and a flow hash"
	ticks = "room for a time in ticks"
)

func plain(kind string) func(int) netlink.Qdisc {
	return func(index int) netlink.Qdisc { return &netlink.GenericQdisc{QdiscAttrs: root(index), QdiscType: kind} }
}

func root(index int) netlink.QdiscAttrs {
	return netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(2, 0), Parent: netlink.HANDLE_ROOT}
}

func queues() []queue {
	const shaped = 5 * time.Millisecond // far less than what the datagrams take to pass, for an emulated CPU that hands them over slowly
	return []queue{
		{name: "noqueue", form: words},
		{name: "pfifo", make: plain("pfifo"), form: words},
		{name: "tbf", make: func(index int) netlink.Qdisc {
			return &netlink.Tbf{QdiscAttrs: root(index), Rate: shapedRate / 8, Limit: 1 << 20, Buffer: netlink.Xmittime(shapedRate/8, 16<<10)}
		}, form: words, least: shaped},
		{name: "netem", make: func(index int) netlink.Qdisc {
			return netlink.NewNetem(root(index), netlink.NetemQdiscAttrs{Latency: uint32(netemDelay.Microseconds()), Limit: 1000})
		}, form: words, least: netemDelay},
		{name: "htb", make: plain("pfifo"), below: true, form: words, least: shaped},
		{name: "htb, sfq", make: plain("sfq"), below: true, form: words, least: shaped},
		{name: "htb, codel", make: plain("codel"), below: true, form: words, least: shaped},
		{name: "htb, fq_codel", make: plain("fq_codel"), below: true, form: words, least: shaped},
		{name: "htb, fq", make: plain("fq"), below: true, form: ticks, least: shaped},
		{name: "fq, paced", make: plain("fq"), form: ticks, paced: pacedTo, most: pacedPacket / 4},
		{name: "htb, cake", make: plain("cake"), below: true, form: ticks, least: shaped},
		{name: "htb, pie", make: plain("pie"), below: true, form: ticks, least: shaped},
	}
}

// install puts the queue on A's interface.
func (q queue) install(topology *netns.Topology) error {
	if q.make == nil {
		return nil
	}
	h, err := topology.A.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	one := q.make(topology.A.Index)
	if q.below {
		top := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: topology.A.Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT})
		top.Defcls = 10
		class := netlink.ClassAttrs{LinkIndex: topology.A.Index, Parent: netlink.MakeHandle(1, 0), Handle: netlink.MakeHandle(1, 10)}
		if err := errors.Join(h.QdiscAdd(top), h.ClassAdd(netlink.NewHtbClass(class, netlink.HtbClassAttrs{Rate: cmp.Or(q.rate, shapedRate)}))); err != nil {
			return fmt.Errorf("add an htb class: %w", err)
		}
		one.Attrs().Parent = netlink.MakeHandle(1, 10)
	}
	if err := h.QdiscAdd(one); err != nil {
		return fmt.Errorf("add %s: %w", one.Type(), err)
	}
	return nil
}

// through sends packets through the queue: what was handed to it has to be found again at the start of transmission, with its own words,
// and after delays that this queue makes.
func (q queue) through() (detail string, err error) {
	before := programs()
	topology, err := netns.New(netns.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, topology.Close()) }()
	if err := q.install(topology); err != nil {
		return "", err
	}
	run, err := start(topology, "--algo", "conquest", "--set", "conquest.source=qdisc", "--set", "conquest.longest=400ms", "--set", "conquest.tau=1ms", "--window", "2m")
	if err != nil {
		return "", err
	}
	if err := sameWays(run.via, slices.Sorted(slices.Values([]string{tc(), "tp_btf"}))); err != nil {
		return "", errors.Join(err, run.end(unix.SIGINT))
	}
	err = fill(topology, q.paced)
	if err := errors.Join(err, run.end(unix.SIGINT)); err != nil {
		return "", err
	}
	if printed := run.complaint.String(); !strings.Contains(printed, q.form) {
		return "", fmt.Errorf("it does not print %q: %s", q.form, shorten(printed))
	}
	if detail, err = q.account(run); err != nil {
		return "", err
	}
	// clsact comes off with the last filter; the queue stays
	return "via " + strings.Join(run.via, " and ") + ", " + q.form + ": " + detail, nothingLeft(topology, before)
}

const datagrams = 150 // of each of two flows

// fill sends two flows of datagrams at once, and a stream of which the kernel makes aggregates.
func fill(topology *netns.Topology, paced int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sink, err := topology.B.ListenPacket(ctx, "udp4", netip.AddrPortFrom(topology.B.IPv4, 7).String())
	if err != nil {
		return err
	}
	defer sink.Close()
	var flows [2]net.Conn
	for n := range flows {
		if flows[n], err = topology.A.Dial(ctx, "udp4", sink.LocalAddr().String()); err != nil {
			return err
		}
		defer flows[n].Close()
	}
	for range datagrams {
		for _, conn := range flows {
			if _, err := conn.Write(make([]byte, 1000)); err != nil {
				return fmt.Errorf("send a datagram: %w", err)
			}
		}
	}
	if paced > 0 {
		return stream(ctx, topology, int64(paced)*3, paced)
	}
	return stream(ctx, topology, 256<<10, 0)
}

// stream sends bytes by TCP and waits until they have all arrived.
func stream(ctx context.Context, topology *netns.Topology, n int64, paced int) error {
	listener, err := topology.B.Listen(ctx, "tcp", netip.AddrPortFrom(topology.B.IPv4, 0).String())
	if err != nil {
		return err
	}
	defer listener.Close()
	sent := make(chan error, 1)
	go func() {
		conn, err := topology.A.Dial(ctx, "tcp", listener.Addr().String())
		if err != nil {
			sent <- errors.Join(err, listener.Close())
			return
		}
		if paced > 0 {
			err = pace(conn, paced)
		}
		if err == nil {
			_, err = conn.Write(make([]byte, n))
		}
		sent <- errors.Join(err, conn.Close())
	}()
	conn, err := listener.Accept()
	if err != nil {
		return errors.Join(err, <-sent)
	}
	defer conn.Close()
	got, err := io.Copy(io.Discard, conn)
	time.Sleep(time.Second) // what is left of the datagrams, and the last acknowledgements
	if got != n {
		err = errors.Join(err, fmt.Errorf("%d of %d bytes arrived", got, n))
	}
	return errors.Join(err, <-sent)
}

// pace sets how many bytes a second a socket sends.
func pace(conn net.Conn, rate int) error {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate) })
	return errors.Join(failed, err)
}

// account puts the windows together.
func (q queue) account(run *attached) (string, error) {
	sum := map[string]float64{}
	peak, mean := 0.0, 0.0
	for _, w := range run.windows {
		packets, _ := w["packets"].(map[string]any)
		counts, _ := packets["queue"].(map[string]any)
		for name, n := range counts {
			n, _ := n.(float64)
			sum[name] += n
		}
		report, _ := w["report"].(map[string]any)
		n, _ := report["peak_delay_ns"].(float64)
		peak = max(peak, n)
		n, _ = report["mean_delay_ns"].(float64)
		mean = max(mean, n)
	}
	detail := fmt.Sprintf("handed over %.0f = sent %.0f + dropped %.0f + missed %.0f + queued %.0f; words of others %.0f, stale %.0f; mean delay %v, longest %v", sum["carried"], sum["sent"],
		sum["dropped"], sum["missed"], sum["queued"], sum["foreign"], sum["stale"], time.Duration(mean).Round(time.Microsecond), time.Duration(peak).Round(time.Microsecond))
	switch {
	case sum["carried"] < 2*datagrams+100 || sum["carried"] != sum["sent"]+sum["dropped"]+sum["missed"]+sum["queued"]:
		return "", errors.New("the account is not balanced: " + detail)
	case sum["foreign"]+sum["stale"]+sum["unparsed"] > 0:
		return "", errors.New("somebody else writes there: " + detail)
	case 100*(sum["missed"]+sum["queued"]) > sum["carried"]:
		return "", errors.New("more than 1 % is missed: " + detail)
	case peak < float64(q.least) || peak > float64(time.Minute):
		return "", fmt.Errorf("the longest delay is not %v or more: %s", q.least, detail)
	case q.most > 0 && mean > float64(q.most):
		return "", fmt.Errorf("what waited for its own time of departure counts as delay, above %v: %s", q.most, detail)
	case q.name == "netem" && mean < float64(q.least):
		return "", fmt.Errorf("a packet cannot have waited less than %v: %s", q.least, detail)
	}
	return detail, nil
}

// refused: choke leaves nothing free.
func refused() (detail string, err error) {
	topology, err := netns.New(netns.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, topology.Close()) }()
	if err := topology.A.Run(func() error { return addChoke(topology.A.Index) }); err != nil {
		return "", err
	}
	return expectMissing(topology, nil, "the queueing discipline choke uses all of it")
}

// addChoke: the library does not know the options of this kind (struct tc_red_qopt, and a table of idle times).
func addChoke(index int) error {
	const parameters, table = 1, 2 // TCA_CHOKE_PARMS, TCA_CHOKE_STAB
	request := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	request.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(index), Handle: netlink.MakeHandle(2, 0), Parent: netlink.HANDLE_ROOT})
	request.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("choke")))
	var red []byte
	for _, packets := range []uint32{100, 20, 60} { // limit, least and most
		red = encoding.NativeEndian.AppendUint32(red, packets)
	}
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	options.AddRtAttr(parameters, append(red, 5, 9, 10, 0)) // logarithms of weight, probability and cell; flags
	options.AddRtAttr(table, make([]byte, 256))
	request.AddData(options)
	if _, err := request.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("add choke: %w", err)
	}
	return nil
}

// unprivileged: CAP_PERFMON is what trace points need beyond what XDP and TC do.
func unprivileged() (detail string, err error) {
	topology, err := netns.New(netns.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, topology.Close()) }()
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: []uintptr{unix.CAP_BPF, unix.CAP_NET_ADMIN}}
	return expectMissing(topology, nobody, "CAP_PERFMON")
}

// expectMissing attaches, which has to be refused with exit code 3 for a reason.
func expectMissing(topology *netns.Topology, as *syscall.SysProcAttr, reason string) (string, error) {
	cmd := exec.Command(binary, "attach", topology.A.Interface, "--algo", "conquest", "--set", "conquest.source=qdisc", "--duration", "1s")
	cmd.SysProcAttr = as
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := topology.A.Start(cmd); err != nil {
		return "", err
	}
	_ = cmd.Wait()
	printed := strings.TrimSpace(complaint.String())
	if code := cmd.ProcessState.ExitCode(); code != 3 || !strings.Contains(printed, reason) {
		return "", fmt.Errorf("exit code %d, want 3 and %q: %s", code, reason, shorten(printed+verifierLog()))
	}
	return "refused: " + shorten(printed), nil
}
