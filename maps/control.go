package maps

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
)

// ChainSlots is the number of algorithms of a chain (bpf/include/chain.h).
const ChainSlots = 16

// Control owns the control word and the slots of one instance's chain.
//
// Every packet reads the word once and uses that value throughout, so a change is atomic for every packet. After a
// change, Control waits until no program runs that has read the old word.
type Control struct {
	mu       sync.Mutex
	word     uint64
	control  *ebpf.Map // chain_control
	barrier  *Barrier
	number   uint32      // of the instance's word
	chains   []*ebpf.Map // program arrays that share the layout: chain_*, recirc_*
	programs [2]int      // programs in each half
	halves   *Halves     // of program arrays that several instances share; nil: not shared
}

// NewControl makes the control of a chain from its maps.
func NewControl(control *ebpf.Map, chains ...*ebpf.Map) (*Control, error) {
	return newControl(&Control{control: control, chains: chains})
}

// NewSharedControl is NewControl for one of several instances with a control word each and common program arrays.
func NewSharedControl(number int, halves *Halves, control *ebpf.Map, chains ...*ebpf.Map) (*Control, error) {
	return newControl(&Control{control: control, chains: chains, number: uint32(number), halves: halves})
}

func newControl(c *Control) (_ *Control, err error) {
	control := c.control
	if c.barrier, err = NewBarrier(); err != nil {
		return nil, err
	}
	if err := control.Lookup(c.number, &c.word); err != nil {
		c.Close()
		return nil, fmt.Errorf("read control word: %w", err)
	}
	c.programs[c.word>>1&1] = int(c.word >> 8 & 0xff)   // the programs of an adopted chain
	c.word = c.word&^bankBits(0) | c.word&1*bankBits(0) // an earlier version's word has the first bit only
	return c, nil
}

// Close releases the barrier; the chain's maps belong to the instance.
func (c *Control) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.halves != nil {
		err = c.endShared()
	}
	return errors.Join(err, c.barrier.Close())
}

// Groups is the largest number of groups of algorithms with windows of one length (bpf/include/window.h). Group 0 has the shortest.
const Groups = 16

// bankBits are the bits of the word with the bank of a group. Group 0 has two: a packet begins with the first, and returns to the second
// after algorithms of another group.
func bankBits(group int) uint64 {
	bits := uint64(1) << (48 + group)
	if group == 0 {
		bits |= 1
	}
	return bits
}

// Bank that packets write to now: that of group 0.
func (c *Control) Bank() int { return c.BankOf(0) }

// BankOf is the bank that packets of a group write to now.
func (c *Control) BankOf(group int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bank(group)
}

func (c *Control) bank(group int) int { return int(c.word >> (48 + group) & 1) }

// Flip makes new packets use the other bank of group 0 and returns the closed one once no packet uses it any more.
func (c *Control) Flip() (closed int, err error) {
	banks, err := c.FlipGroups(0)
	if err != nil {
		return 0, err
	}
	return banks[0], nil
}

// FlipGroups is Flip for several groups at once: a packet sees either all of their old banks or all of their new ones.
func (c *Control) FlipGroups(groups ...int) (closed []int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	word := c.word
	for _, g := range groups {
		closed = append(closed, c.bank(g))
		word ^= bankBits(g)
	}
	if err := c.publish(word); err != nil {
		return nil, fmt.Errorf("flip bank: %w", err)
	}
	return closed, nil
}

// Slot is one algorithm's program in each of the chain's program arrays, in the order given to NewControl; nil
// where it has none.
type Slot []*ebpf.Program

// SetChain replaces the whole chain: packets see the old one or the new one, never a mixture.
func (c *Control) SetChain(slots []Slot, needs Need) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(slots) > ChainSlots {
		return fmt.Errorf("set chain: %d algorithms, %d fit", len(slots), ChainSlots)
	}
	if c.halves != nil {
		return c.setShared(slots, needs)
	}
	half := int(c.word>>1&1) ^ 1
	if err := c.fill(half, slots); err != nil {
		return fmt.Errorf("set chain: %w", err)
	}
	if err := c.publish(c.wordOf(half, slots, needs)); err != nil {
		return fmt.Errorf("set chain: %w", err)
	}
	return c.empty(half ^ 1)
}

func (c *Control) wordOf(half int, slots []Slot, needs Need) uint64 {
	return c.word&(1|0xffff<<48) | uint64(half)<<1 | uint64(len(slots))<<8 | uint64(needs)<<32
}

func (c *Control) fill(half int, slots []Slot) error {
	for i, slot := range slots {
		for j, p := range slot {
			if p == nil {
				continue
			}
			if err := c.chains[j].Update(uint32(half*ChainSlots+i), p, ebpf.UpdateAny); err != nil {
				return fmt.Errorf("put %s in slot %d: %w", p, i, err)
			}
		}
	}
	c.programs[half] = len(slots)
	return nil
}

// empty drops the programs of the half that is no longer in use.
func (c *Control) empty(half int) error {
	c.drop(half, c.programs[half])
	c.programs[half] = 0
	return nil
}

// drop empties the first slots of a half.
func (c *Control) drop(half, slots int) {
	for i := range slots {
		for _, chain := range c.chains {
			_ = chain.Delete(uint32(half*ChainSlots + i)) // a slot without a program has nothing to drop
		}
	}
}

// publish writes the word and waits for the programs that still run with the old one.
func (c *Control) publish(word uint64) error {
	if err := c.write(word); err != nil {
		return err
	}
	return c.barrier.Wait()
}

func (c *Control) write(word uint64) error {
	if err := c.control.Update(c.number, word, ebpf.UpdateAny); err != nil {
		return err
	}
	c.word = word
	return nil
}
