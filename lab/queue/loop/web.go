package main

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// Sizes of web flows: Roy et al., "Inside the Social Network's (Datacenter) Network", SIGCOMM 2015, as the dissertation cites it: median 1.44 kB, mean 38.8 kB.
// Here they are log-normal with these two, cut at mostWeb so that one flow is not a bulk flow.
const (
	webMedian = 1440.
	webMean   = 38800.
	mostWeb   = 1 << 20
)

func webSize(r *rand.Rand) int {
	sigma := math.Sqrt(2 * math.Log(webMean/webMedian))
	for {
		if size := webMedian * math.Exp(sigma*r.NormFloat64()); size >= 1 && size <= mostWeb {
			return int(size)
		}
	}
}

// webRate is how many of them a second are webLoad.
func webRate() float64 {
	r, sum := rand.New(rand.NewPCG(1, 1)), 0.
	const draws = 200_000
	for range draws {
		sum += float64(webSize(r))
	}
	return webLoad * rate / 8 / (sum / draws)
}

// web are the flows that arrive at random.
type web struct {
	mu      sync.Mutex
	flows   []flow               // those that are counted
	start   []time.Time          // of each
	by      map[uint16]int       // which of them has this port
	early   map[uint16]time.Time // ends of flows that are not in by (yet): the last byte may arrive before the sender's goroutine goes on
	started chan struct{}
	sending sync.WaitGroup
}

// startWeb begins flows until a time; those that begin after from are counted.
func (s *scene) startWeb(ctx context.Context, seed uint64, from, until time.Duration) (*web, error) {
	w := &web{by: map[uint16]int{}, early: map[uint16]time.Time{}, started: make(chan struct{})}
	listener, err := s.listen(ctx)
	if err != nil {
		return nil, err
	}
	go w.receive(listener)
	random, mean := rand.New(rand.NewPCG(seed, 7)), 1/webRate()
	began := time.Now()
	go func() {
		defer close(w.started)
		for at := time.Duration(0); ; {
			at += time.Duration(random.ExpFloat64() * mean * 1e9)
			size := webSize(random)
			if at > until || ctx.Err() != nil {
				return
			}
			time.Sleep(time.Until(began.Add(at)))
			w.sending.Go(func() { w.send(ctx, s, listener.Addr().String(), size, w.count(size, at >= from)) })
		}
	}()
	return w, nil
}

// count is the flow's number among those that are counted; -1: it is not.
func (w *web) count(size int, counted bool) int {
	if !counted {
		return -1
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flows, w.start = append(w.flows, flow{Size: size}), append(w.start, time.Now())
	return len(w.flows) - 1
}

// send waits for the other end to have everything, so that the kernel's account of the connection is complete.
func (w *web) send(ctx context.Context, from *scene, to string, size, number int) {
	conn, err := from.dial(ctx, to)
	if err != nil {
		return
	}
	defer conn.Close()
	if number >= 0 {
		w.begin(number, uint16(conn.LocalAddr().(*net.TCPAddr).Port))
	}
	_, _ = conn.Write(make([]byte, size))
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	_, _ = conn.Read(make([]byte, 1))
	if number < 0 {
		return
	}
	f := flowOf(conn)
	w.mu.Lock()
	defer w.mu.Unlock()
	f.Size, f.Time = size, w.flows[number].Time
	w.flows[number] = f
}

func (w *web) begin(number int, port uint16) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by[port] = number
	if at, ok := w.early[port]; ok {
		w.end(number, at)
	}
}

func (w *web) end(number int, at time.Time) {
	w.flows[number].Time = float64(at.Sub(w.start[number])) / 1e6
}

// receive notes when the last byte of each flow has arrived.
func (w *web) receive(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if _, err := io.Copy(io.Discard, conn); err != nil {
				return
			}
			at, port := time.Now(), uint16(conn.RemoteAddr().(*net.TCPAddr).Port)
			w.mu.Lock()
			defer w.mu.Unlock()
			if number, ok := w.by[port]; ok {
				w.end(number, at)
			} else {
				w.early[port] = at
			}
		}()
	}
}

// wait is for flows that are on their way: dialing, writing and the answer have deadlines.
func (w *web) wait() []flow {
	<-w.started
	w.sending.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.flows)
}
