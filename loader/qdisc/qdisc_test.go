package qdisc

import (
	"errors"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader/kernel"
)

// What a tree leaves is what its greediest kind leaves; where that is nothing, or nobody knows, it is refused by name.
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
