// Package client is an agent's side of the bus: windows are queued, sent in batches, and stored until the coordinator has used
// them.
package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/feed"
)

// Options of an agent's link to its coordinator.
type Options struct {
	Name     string
	Servers  []string    // nats:// or tls:// URLs
	TLS      *tls.Config // nil: on this host only
	Buffer   int         // most bytes queued for a coordinator
	Software string
	Log      *slog.Logger
	// Plan is called with the plan whenever it changes.
	Plan func(*bus.Plan)
	// Refused returns the measurements of the plan that cannot run here, with the reasons.
	Refused func() map[string]string
	// Found returns the active findings, in the form of bus.Findings; nil: findings are not sent.
	Found func() (items [][]byte, more uint64, subjects []string)
	// Message is called with a message of an algorithm's coordinator.
	Message func(bus.Message)
	// Renew is called when a message is lost, or may be: instances have to ask for the whole state.
	Renew func()
	// Clock is the clock of windows, ns; Wall is wall clock time.
	Clock, Wall func() int64
	// Hello is the interval of hellos; 0: 2 s.
	Hello time.Duration
	// Linger is how long an item waits for more; 0: 50 ms.
	Linger time.Duration
}

const (
	hello      = 2 * time.Second
	linger     = 50 * time.Millisecond // windows that end together are sent in one batch
	stall      = 5 * time.Second       // batches that are not received by then are sent again
	firstPause = 250 * time.Millisecond
	mostPause  = 8 * time.Second
	parting    = 3 * time.Second // how long Close waits for queued batches to arrive
)

// Link is an agent's side of the bus. No caller ever blocks on the network.
type Link struct {
	opts        Options
	incarnation uint64
	conn        *nats.Conn
	sub         *feed.Subscription
	clocks      clocks
	wake        chan struct{}
	greet       chan struct{}
	unknown     atomic.Bool // a coordinator that has just subscribed does not have earlier findings
	items       chan bus.Item
	ended       chan struct{} // closed when collect has ended
	gathering   worker
	sending     worker

	mu         sync.Mutex
	queue      queue
	run        uint64 // of the coordinator
	plan       *bus.Plan
	progress   time.Time // when the coordinator last received something, or batches were last repeated
	answeredAt time.Time
	missed     content           // lost before it was in a batch
	again      uint64            // batches that were sent again
	received   uint64            // messages of the coordinator to algorithms
	renewed    uint64            // lost beginnings that were sent again
	numbers    map[source]uint64 // of the last message of each
	complaint  string
	trouble    string // reason for the missing connection
	found      found
}

// source is an instance of an algorithm that sends messages.
type source struct{ instance, algorithm string }

// Open connects in the background to the first coordinator that answers. It sends the hub's windows of the instances that shared
// selects.
func Open(o Options, hub *feed.Hub, shared func(instance string) bool) (*Link, error) {
	if err := bus.CheckName(o.Name); err != nil {
		return nil, err
	}
	if o.Hello == 0 {
		o.Hello = hello
	}
	if o.Linger == 0 {
		o.Linger = linger
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, fmt.Errorf("draw a number: %w", err)
	}
	l := &Link{opts: o, incarnation: binary.LittleEndian.Uint64(b[:]) | 1, wake: make(chan struct{}, 1), greet: make(chan struct{}, 1), items: make(chan bus.Item, 4096),
		ended: make(chan struct{}), numbers: map[source]uint64{},
		queue: queue{limit: o.Buffer}, progress: time.Now()}
	var err error
	if l.conn, err = nats.Connect(strings.Join(o.Servers, ","), l.options()...); err != nil {
		return nil, fmt.Errorf("connect to the coordinator: %w", err)
	}
	sub, err := l.conn.Subscribe(bus.DownSubject(o.Name), func(m *nats.Msg) { l.answered(m.Data) })
	if err == nil {
		err = sub.SetPendingLimits(1024, 16<<20)
	}
	if err != nil {
		l.conn.Close()
		return nil, fmt.Errorf("listen to the coordinator: %w", err)
	}
	l.sub = hub.Subscribe(feed.Options{Name: "bus", Depth: 4096})
	go l.collect(shared)
	l.gathering.start(l.gather)
	l.sending.start(l.send)
	return l, nil
}

// worker is a goroutine that runs until it is ended.
type worker struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (w *worker) start(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.done.Go(func() { f(ctx) })
}

// end waits until it has returned.
func (w *worker) end() {
	w.cancel()
	w.done.Wait()
}

func (l *Link) options() []nats.Option {
	o := []nats.Option{
		nats.Name(l.opts.Name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.NoEcho(),
		nats.CustomReconnectDelay(pause), nats.Timeout(10 * time.Second), nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2),
		nats.FlusherTimeout(10 * time.Second), nats.IgnoreDiscoveredServers(),
		nats.IgnoreAuthErrorAbort(), // an agent that is refused for a while, or gets another certificate, tries again
		nats.ConnectHandler(func(*nats.Conn) { l.reached(); signal(l.greet) }),
		nats.ReconnectHandler(func(*nats.Conn) { l.reached(); signal(l.greet) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { l.unreached(err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				l.opts.Log.Warn("connection to the coordinator lost", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			l.opts.Log.Warn("NATS error", "error", err)
		}),
	}
	if l.opts.TLS != nil {
		o = append(o, nats.Secure(l.opts.TLS))
	} else {
		o = append(o, nats.UserInfo(l.opts.Name, ""))
	}
	return o
}

// unreached logs why there is no connection, when the reason changes; local ports, which differ with every attempt, are ignored.
func (l *Link) unreached(err error) {
	if err == nil || errors.Is(err, nats.ErrNoServers) {
		return
	}
	reason := err.Error()
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		reason = op.Op + ": " + op.Err.Error()
	}
	l.mu.Lock()
	news := l.trouble != reason
	l.trouble = reason
	l.mu.Unlock()
	if news {
		l.opts.Log.Warn("no coordinator reachable", "servers", strings.Join(l.opts.Servers, ","), "error", err)
	}
}

func (l *Link) reached() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = ""
}

// pause before the next attempt, at random, so that all agents of a restarted coordinator do not connect at the same moment.
func pause(attempts int) time.Duration {
	p := min(firstPause<<min(attempts, 10), mostPause)
	return p/2 + mathrand.N(p)
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// collect takes windows from the hub.
func (l *Link) collect(shared func(string) bool) {
	defer close(l.ended)
	for {
		e, missed, err := l.sub.Next(context.Background())
		l.lose(content{windows: missed})
		if err != nil {
			return
		}
		if e.Line == nil || e.Line.Snapshot == nil || !shared(e.Line.Key()) {
			continue
		}
		l.put(bus.Item{Measurement: e.Line.Instance, Instance: e.Line.Key(), Algorithm: e.Line.Algorithm, Snapshot: e.Line.Snapshot})
	}
}

// Publish sends a message of an instance to its algorithm's coordinator. lost is the number of messages before it that were dropped; at is when
// it was sent, on the clock of windows.
func (l *Link) Publish(instance, algorithm string, at int64, lost uint64, data []byte) {
	l.mu.Lock()
	who := source{instance, algorithm}
	l.numbers[who] += lost + 1
	n := l.numbers[who]
	l.mu.Unlock()
	l.put(bus.Item{Measurement: rule(instance), Instance: instance, Algorithm: algorithm, Message: data, Number: n, Time: at})
}

// Begin reports that an instance has no state of its coordinator's.
func (l *Link) Begin(instance, algorithm string) {
	l.put(bus.Item{Measurement: rule(instance), Instance: instance, Algorithm: algorithm, Begins: true})
}

// rule is the rule of an instance: the part before its interface.
func rule(instance string) string {
	name, _, _ := strings.Cut(instance, "/")
	return name
}

func (l *Link) put(i bus.Item) {
	select {
	case l.items <- i:
	default:
		l.lose(contentOf(i))
	}
}

func (l *Link) lose(c content) {
	l.mu.Lock()
	l.missed.add(c)
	l.mu.Unlock()
}

// lost is the total of lost content.
func (l *Link) lost() content {
	c := l.missed
	c.add(l.queue.lost)
	return c
}

// itemBytes is the space for items in a message: the rest of a batch has bounded size.
func (l *Link) itemBytes() int {
	most := bus.DefaultMessage
	if n := l.conn.MaxPayload(); n > 0 {
		most = int(n)
	}
	return most - 1024
}

// gather makes batches of items that arrive at about the same time.
func (l *Link) gather(ctx context.Context) {
	var items []bus.Item
	size := 0
	seal := func() {
		if len(items) > 0 {
			l.seal(items)
		}
		items, size = nil, 0
	}
	var due <-chan time.Time
	add := func(i bus.Item) {
		n := len(i.Snapshot) + len(i.Message) + len(i.Measurement) + len(i.Instance) + len(i.Algorithm) + 96
		if n > l.itemBytes() {
			l.opts.Log.Warn("window or message exceeds the coordinator's size limit, dropped", "instance", i.Instance,
				"algorithm", i.Algorithm, "bytes", n, "limit", l.itemBytes())
			l.lose(contentOf(i))
			return
		}
		if size+n > l.itemBytes() || len(items) == bus.MaxItems {
			seal()
		}
		if len(items) == 0 {
			due = time.After(l.opts.Linger)
		}
		items, size = append(items, i), size+n
	}
	for {
		select {
		case <-ctx.Done():
			for len(l.items) > 0 {
				add(<-l.items)
			}
			seal()
			return
		case i := <-l.items:
			add(i)
		case <-due:
			seal()
		}
	}
}

func (l *Link) seal(items []bus.Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.queue.last + 1
	data, err := bus.Encode(bus.Batch{Version: bus.Version, Incarnation: l.incarnation, Number: n, Oldest: l.queue.oldest(), Clock: l.clocks.now(l.opts.Clock()), Items: items})
	if err != nil {
		l.opts.Log.Error("write batch failed", "error", err)
		l.missed.add(contentOf(items...))
		return
	}
	l.queue.put(sealed{n, contentOf(items...), data})
	signal(l.wake)
}

// send sends queued batches and hellos, and repeats batches that do not arrive.
func (l *Link) send(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			l.part()
			return
		case <-l.wake:
			if l.unknown.Swap(false) {
				l.publishFindings(true)
			}
		case <-l.greet:
			l.hello()
			l.publishFindings(true)
		case <-next.C:
			l.hello()
			l.publishFindings(false)
			next.Reset(l.opts.Hello*4/5 + mathrand.N(l.opts.Hello*2/5))
		}
		l.stalled()
		l.sendAll()
	}
}

func (l *Link) sendAll() {
	for l.conn.IsConnected() {
		l.mu.Lock()
		s, ok := l.queue.next()
		if ok {
			if l.queue.sent <= l.queue.received {
				l.progress = time.Now()
			}
			l.queue.sent = s.number
		}
		l.mu.Unlock()
		if !ok {
			return
		}
		if err := l.conn.Publish(bus.DataSubject(l.opts.Name), s.data); err != nil {
			l.mu.Lock()
			l.queue.sent = min(l.queue.sent, s.number-1)
			l.mu.Unlock()
			return // retried after the next hello
		}
	}
}

// stalled returns to the oldest batch that was not received if no batch arrives.
func (l *Link) stalled() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.sent > l.queue.received && time.Since(l.progress) > stall && l.conn.IsConnected() {
		l.again += l.queue.sent - l.queue.received
		l.queue.sent, l.progress = l.queue.received, time.Now()
	}
}

func (l *Link) hello() {
	if !l.conn.IsConnected() {
		l.unreached(l.conn.LastError())
		return
	}
	refused := l.opts.Refused()
	l.mu.Lock()
	unconfirmed := l.lost().begins != l.renewed
	l.renewed = l.lost().begins
	now := l.opts.Clock()
	h := bus.Hello{Version: bus.Version, Incarnation: l.incarnation, Time: now, Number: l.queue.last, Oldest: l.queue.oldest(), Lost: l.lost().windows, Software: l.opts.Software,
		Wall: l.opts.Wall() - now, Clock: l.clocks.now(now), Refused: refused}
	if l.plan != nil {
		h.Revision = l.plan.Revision
	}
	l.mu.Unlock()
	if unconfirmed { // the start of an instance must be received
		l.opts.Renew()
	}
	data, err := bus.Encode(h)
	if err == nil {
		err = l.conn.Publish(bus.HelloSubject(l.opts.Name), data)
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionReconnecting) && !errors.Is(err, nats.ErrReconnectBufExceeded) {
		l.opts.Log.Warn("hello to the coordinator failed", "error", err)
	}
}

// answered handles an answer of the coordinator.
func (l *Link) answered(data []byte) {
	received := l.opts.Clock()
	a, err := bus.DecodeAnswer(data)
	if err != nil {
		l.opts.Log.Warn("malformed reply from the coordinator", "error", err)
		return
	}
	if a.Incarnation != l.incarnation {
		return // to an earlier incarnation of this name
	}
	l.mu.Lock()
	l.answeredAt = time.Now()
	back := a.Run != l.run
	if back {
		l.run = a.Run
		l.clocks.forget()
		if l.queue.sent > a.Received {
			l.again += l.queue.sent - a.Received
		}
	}
	if a.Asked != 0 {
		l.clocks.add(a.Asked, a.Time, received)
	}
	if a.Received != l.queue.received || back {
		l.progress = time.Now()
	}
	l.queue.answered(a.Received, a.Used, back)
	news := a.Plan != nil && (l.plan == nil || l.plan.Revision != a.Plan.Revision)
	if news {
		l.plan = a.Plan
	}
	lost := back || a.Sent != l.received+uint64(len(a.Messages))
	l.received = a.Sent
	complaint := a.Complaint != "" && a.Complaint != l.complaint
	l.complaint = a.Complaint
	l.mu.Unlock()
	if complaint {
		l.opts.Log.Warn("the coordinator refused a message", "reason", a.Complaint)
	}
	if news {
		l.opts.Plan(a.Plan)
	}
	for _, m := range a.Messages {
		l.opts.Message(m)
	}
	if lost {
		l.opts.Renew()
	}
	if back {
		l.unknown.Store(true)
	}
	signal(l.wake)
}

// Clock is the measured offset of this host's clock to the coordinator's.
func (l *Link) Clock() bus.Clock { return l.clocks.now(l.opts.Clock()) }

// Health is the state of a link.
type Health struct {
	Connected bool    `json:"connected"`
	Server    string  `json:"server,omitempty"`
	Answered  float64 `json:"last_answer_age_seconds"` // -1: never
	Waiting   int     `json:"waiting_batches"`         // not received yet
	Bytes     int     `json:"buffer_bytes"`
	Sent      uint64  `json:"sent_batches"`
	Again     uint64  `json:"sent_again_batches"`
	Lost      uint64  `json:"lost_windows"`
	Messages  uint64  `json:"lost_messages"` // of algorithms to their coordinators
	Revision  uint64  `json:"plan_revision"`
	Offset    float64 `json:"clock_offset_seconds"` // of this host's wall clock, ahead of the coordinator's; 0: not known
	Error     float64 `json:"clock_error_seconds"`
	Complaint string  `json:"complaint,omitempty"`
	Trouble   string  `json:"connection_error,omitempty"`
}

// Health returns the state of the link.
func (l *Link) Health() Health {
	now := l.opts.Clock()
	c := l.clocks.now(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	h := Health{Connected: l.conn.IsConnected(), Server: l.conn.ConnectedUrlRedacted(), Answered: -1, Waiting: int(l.queue.last - min(l.queue.last, l.queue.received)),
		Bytes: l.queue.bytes, Sent: l.queue.sent, Again: l.again, Lost: l.lost().windows, Messages: l.lost().messages, Complaint: l.complaint, Trouble: l.trouble}
	if !l.answeredAt.IsZero() {
		h.Answered = time.Since(l.answeredAt).Seconds()
	}
	if l.plan != nil {
		h.Revision = l.plan.Revision
	}
	if c.Known {
		h.Offset, h.Error = float64(l.opts.Wall()-now-c.Offset)/1e9, float64(c.Error)/1e9
	}
	return h
}

// Close sends what the hub has published until now, if a coordinator is connected, and ends. One step ends after the other: the last windows are in a batch before it is
// asked whether all batches have arrived.
func (l *Link) Close() {
	l.sub.Finish()
	<-l.ended
	l.gathering.end()
	l.sending.end()
	l.conn.Close()
}

// part waits until all batches have arrived, with a time limit.
func (l *Link) part() {
	for end := time.Now().Add(parting); time.Now().Before(end) && l.conn.IsConnected(); time.Sleep(10 * time.Millisecond) {
		l.sendAll()
		l.mu.Lock()
		all := l.queue.received >= l.queue.last && len(l.items) == 0
		l.mu.Unlock()
		if all {
			return
		}
	}
}
