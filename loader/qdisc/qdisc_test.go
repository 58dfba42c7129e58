package qdisc

import (
	"errors"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader/kernel"
)

// A tree leaves as many bytes as the kind with the largest private data; where those are none or unknown, the kind is refused by name.
func TestForm(t *testing.T) {
	for _, c := range []struct {
		kinds []string
		form  chain.ChainCarryForm
		named string
	}{
		{[]string{"noqueue"}, chain.ChainCarryFormCARRY_WORDS, ""},
		{[]string{"htb", "pfifo"}, chain.ChainCarryFormCARRY_WORDS, ""},
		{[]string{"fq_codel", "mq"}, chain.ChainCarryFormCARRY_WORDS, ""},
		{[]string{"netem"}, chain.ChainCarryFormCARRY_WORDS, ""},
		{[]string{"fq", "mq"}, chain.ChainCarryFormCARRY_TICK, ""},
		{[]string{"cake"}, chain.ChainCarryFormCARRY_TICK, ""},
		{[]string{"htb", "pie"}, chain.ChainCarryFormCARRY_TICK, ""},
		{[]string{"choke"}, 0, "choke"},
		{[]string{"htb", "something_new"}, 0, "something_new"},
	} {
		form, err := form(c.kinds)
		switch {
		case c.named == "" && (err != nil || form != c.form):
			t.Errorf("%v: form %d, %v", c.kinds, form, err)
		case c.named != "" && (!errors.Is(err, ErrNothingFree) || !errors.Is(err, kernel.ErrUnsupported) || !strings.Contains(err.Error(), c.named)):
			t.Errorf("%v: %v", c.kinds, err)
		}
	}
}

// Times of departure are obeyed if fq is at the end of every path; a kind that passes packets on does not matter.
func TestUntimed(t *testing.T) {
	disc := func(kind string, handle, parent uint32) netlink.Qdisc {
		return &netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{Handle: handle, Parent: parent}, QdiscType: kind}
	}
	const root = netlink.HANDLE_ROOT
	for _, c := range []struct {
		list []netlink.Qdisc
		want string
	}{
		{[]netlink.Qdisc{disc("noqueue", 0, root)}, "noqueue"},
		{[]netlink.Qdisc{disc("fq", 0x8001<<16, root), disc("clsact", 0xffff<<16, netlink.HANDLE_CLSACT)}, ""},
		{[]netlink.Qdisc{disc("fq_codel", 0, root)}, "fq_codel"},
		{[]netlink.Qdisc{disc("mq", 0, root), disc("fq", 0, 1), disc("fq", 0, 2)}, ""},
		{[]netlink.Qdisc{disc("mq", 0, root), disc("fq", 0, 1), disc("pfifo_fast", 0, 2)}, "pfifo_fast"},
		{[]netlink.Qdisc{disc("mq", 1<<16, root), disc("fq", 0x8002<<16, 1<<16|1)}, ""},
		{[]netlink.Qdisc{disc("htb", 1<<16, root), disc("fq", 2<<16, 1<<16|10), disc("pfifo", 3<<16, 1<<16|20)}, "pfifo"},
		{[]netlink.Qdisc{disc("htb", 1<<16, root)}, "htb"},
		{[]netlink.Qdisc{disc("pfifo_fast", 0, root)}, "pfifo_fast"},
	} {
		if got := strings.Join(untimed(c.list), ","); got != c.want {
			t.Errorf("%v: %q, want %q", c.list, got, c.want)
		}
	}
}
