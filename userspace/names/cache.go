package names

import (
	"container/list"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Bounds of the names learned from DNS.
const (
	DefaultEntries = 16384 // addresses: 2 MB with usual names, 8 with the longest

	shortest    = int64(10 * time.Minute) // a name outlives its answer's TTL, as connections do
	longest     = int64(24 * time.Hour)
	longestName = 253 // characters of a host name
	mostRecords = 64  // of one answer that are read
)

// cache maps addresses to the latest name that an answer has resolved to each. The entry that was updated longest ago is evicted
// first.
type cache struct {
	mu     sync.Mutex
	most   int
	now    int64 // of the latest answer
	read   time.Time
	names  map[netip.Addr]*list.Element
	order  *list.List // of entry, the newest first
	counts Stats
}

type entry struct {
	addr  netip.Addr
	name  string
	until int64
}

func newCache(entries int) *cache {
	if entries <= 0 {
		entries = DefaultEntries
	}
	return &cache{most: entries, names: map[netip.Addr]*list.Element{}, order: list.New()}
}

// name returns the latest name of an address, unless it is too old.
func (c *cache) name(a netip.Addr) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.names[a]
	if !ok {
		return ""
	}
	e := at.Value.(*entry)
	if e.until < c.now+int64(time.Since(c.read)) {
		c.remove(at)
		return ""
	}
	return e.name
}

func (c *cache) remove(at *list.Element) {
	delete(c.names, at.Value.(*entry).addr)
	c.order.Remove(at)
}

func (c *cache) put(a netip.Addr, name string, ttl uint32, now int64) {
	until := now + min(max(int64(ttl)*1e9, shortest), longest)
	c.counts.Learned++
	if at, ok := c.names[a]; ok {
		*at.Value.(*entry) = entry{a, name, until}
		c.order.MoveToFront(at)
		return
	}
	if len(c.names) >= c.most {
		c.counts.Evicted++
		c.remove(c.order.Back())
	}
	c.names[a] = c.order.PushFront(&entry{a, name, until})
}

func (c *cache) stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.counts
	s.Entries = len(c.names)
	return s
}

// learn reads an answer. It uses only records that the question's name leads to, through aliases, so that an answer cannot add addresses for
// a name that was not in the question.
func (c *cache) learn(msg []byte, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Answers++
	c.now, c.read = max(c.now, now), time.Now()
	var p dnsmessage.Parser
	head, err := p.Start(msg)
	if err == nil && (!head.Response || head.RCode != dnsmessage.RCodeSuccess) {
		return
	}
	question, errQuestion := p.Question()
	if err != nil || errQuestion != nil || p.SkipAllQuestions() != nil {
		c.counts.Malformed++
		return
	}
	if question.Class == dnsmessage.ClassINET && !c.records(&p, question, now) {
		c.counts.Malformed++
	}
}

// records reports whether all of an answer could be read.
func (c *cache) records(p *dnsmessage.Parser, q dnsmessage.Question, now int64) bool {
	owner := lower(q.Name)
	asked := host(owner)
	for range mostRecords {
		h, err := p.AnswerHeader()
		if err != nil {
			return err == dnsmessage.ErrSectionDone
		}
		if lower(h.Name) != owner || h.Class != dnsmessage.ClassINET {
			if p.SkipAnswer() != nil {
				return false
			}
			continue
		}
		switch h.Type {
		case dnsmessage.TypeCNAME:
			r, err := p.CNAMEResource()
			if err != nil {
				return false
			}
			owner = lower(r.CNAME)
		case dnsmessage.TypeA:
			r, err := p.AResource()
			if err != nil {
				return false
			}
			c.named(netip.AddrFrom4(r.A), asked, h.TTL, now)
		case dnsmessage.TypeAAAA:
			r, err := p.AAAAResource()
			if err != nil {
				return false
			}
			c.named(netip.AddrFrom16(r.AAAA).Unmap(), asked, h.TTL, now)
		case dnsmessage.TypePTR:
			r, err := p.PTRResource()
			if err != nil {
				return false
			}
			if a, ok := reverse(lower(q.Name)); ok {
				c.named(a, host(lower(r.PTR)), h.TTL, now)
			}
		default:
			if p.SkipAnswer() != nil {
				return false
			}
		}
	}
	return true
}

func (c *cache) named(a netip.Addr, name string, ttl uint32, now int64) {
	if name == "" || !a.IsValid() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() {
		return // sinkholes and block lists
	}
	c.put(a, name, ttl, now)
}

// lower is the name in lower case, for comparisons: DNS ignores case (RFC 4343).
func lower(n dnsmessage.Name) string {
	b := n.Data[:n.Length]
	out := make([]byte, len(b))
	for i, ch := range b {
		if ch >= 'A' && ch <= 'Z' {
			ch += 'a' - 'A'
		}
		out[i] = ch
	}
	return string(out)
}

// host is a name as text: without the final dot, and with \DDD for anything but letters, digits, hyphens and underscores (RFC 1035, section 5.1), so
// that it is plain text in a terminal, in a page, in a metric and in a log. "" for the root, and if the result is too long.
func host(name string) string {
	name = strings.TrimSuffix(name, ".")
	var b strings.Builder
	for i := range len(name) {
		switch ch := name[i]; {
		case ch >= 'a' && ch <= 'z', ch >= '0' && ch <= '9', ch == '-', ch == '_', ch == '.':
			b.WriteByte(ch)
		default:
			b.Write([]byte{'\\', '0' + ch/100, '0' + ch/10%10, '0' + ch%10})
		}
		if b.Len() > longestName {
			return ""
		}
	}
	return b.String()
}

// reverse is the address of a name below in-addr.arpa or ip6.arpa.
func reverse(name string) (netip.Addr, bool) {
	if text, ok := strings.CutSuffix(name, ".in-addr.arpa."); ok {
		parts := strings.Split(text, ".")
		if len(parts) != 4 {
			return netip.Addr{}, false
		}
		a, err := netip.ParseAddr(parts[3] + "." + parts[2] + "." + parts[1] + "." + parts[0])
		return a, err == nil && a.Is4()
	}
	text, ok := strings.CutSuffix(name, ".ip6.arpa.")
	if !ok || len(text) != 63 {
		return netip.Addr{}, false
	}
	var b strings.Builder
	for i := 62; i >= 0; i -= 2 {
		b.WriteByte(text[i])
		if (64-i)/2%4 == 0 && i > 0 {
			b.WriteByte(':')
		}
	}
	a, err := netip.ParseAddr(b.String())
	return a, err == nil
}
