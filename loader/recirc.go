package loader

import (
	"fmt"
	"math"

	"github.com/cilium/ebpf"

	xmaps "github.com/xdpmon/xdpmon/maps"
)

// recircPass is RECIRC_PASS of bpf/include/recirc.h: one pass in the budget's unit.
const recircPass = 1 << 16

// recircBurst is how many passes a CPU may save up.
const recircBurst = 64

// recircBudget is struct recirc_budget_t.
type recircBudget struct {
	Left, Earn, Burst, Granted, Refused uint64
}

// Recirculations are the second passes of one algorithm since it was loaded.
type Recirculations struct {
	Granted, Refused uint64
}

// Recirculations adds up the CPUs. An algorithm that does not recirculate has none.
func (i *Instance) Recirculations(name string) (Recirculations, error) {
	for n, m := range i.loaded {
		if m.object.Name != name {
			continue
		}
		budgets, err := i.budgets(n)
		if err != nil {
			return Recirculations{}, err
		}
		var sum Recirculations
		for _, b := range budgets {
			sum.Granted += b.Granted
			sum.Refused += b.Refused
		}
		return sum, nil
	}
	return Recirculations{}, fmt.Errorf("read recirculations of %s: not loaded", name)
}

// budgetKey is where the instance has the budget of a slot.
func (i *Instance) budgetKey(slot int) uint32 { return uint32(i.number*xmaps.ChainSlots + slot) }

func (i *Instance) budgets(slot int) ([]recircBudget, error) {
	var budgets []recircBudget
	if err := i.shared["recirc_budget"].Lookup(i.budgetKey(slot), &budgets); err != nil {
		return nil, fmt.Errorf("read recirculation budget: %w", err)
	}
	return budgets, nil
}

// setBudgets gives the members that will run in slots 0, 1, ... their budgets; a member that changes its slot takes
// its counts along. It is called before the chain changes, so a member that stays may lose a pass, never a count.
func (i *Instance) setBudgets(members []*member) error {
	before := map[*member][]recircBudget{}
	for n, m := range i.loaded {
		budgets, err := i.budgets(n)
		if err != nil {
			return err
		}
		before[m] = budgets
	}
	for n, m := range members {
		budgets, err := i.startingBudgets(n, before[m])
		if err != nil {
			return err
		}
		for c := range budgets {
			budgets[c].Earn = uint64(math.Ceil(m.object.RecircShare * recircPass))
			budgets[c].Burst = recircBurst * recircPass
		}
		if err := i.shared["recirc_budget"].Update(i.budgetKey(n), budgets, ebpf.UpdateAny); err != nil {
			return fmt.Errorf("write recirculation budget: %w", err)
		}
	}
	return nil
}

// startingBudgets are a member's budgets in its old slot; when the chain is first loaded, those in an adopted map.
func (i *Instance) startingBudgets(slot int, before []recircBudget) ([]recircBudget, error) {
	if before != nil {
		return before, nil
	}
	if len(i.loaded) == 0 {
		return i.budgets(slot)
	}
	return make([]recircBudget, xmaps.PossibleCPUs()), nil
}
