package pisa

import (
	"fmt"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
)

// What one stage of a Tofino has, 1 and 2 alike (measured with its compiler, p4c 1.2.5.16): two arrays of 65,536 x 32 bits take 17 SRAM blocks and 17 map RAMs each and fill a stage's map RAM; one
// array of 143,360 x 32 fits, one of 147,456 x 32 does not.
const (
	stageALUs     = 4
	stageSRAM     = 80
	pairEntries2  = 40_960 // 64-bit elements that two exclusive tables may reach on a Tofino 2
	tableActions  = 4      // RegisterActions of one register
	tofino1Stages = 12
)

// Target is a switch and what the arrays take of it.
type Target struct {
	Name       string     `json:"name"`
	Stages     int        `json:"stages"`      // it has
	StagesUsed int        `json:"stages_used"` // up to the last one with an array
	Fits       bool       `json:"fits"`
	Reason     string     `json:"reason,omitempty"` // why not
	Notes      []string   `json:"notes,omitempty"`  // what the numbers alone do not decide
	Use        []StageUse `json:"use"`

	misfit string // the array that does not fit
}

// StageUse is what is taken of one stage. SRAM blocks are 1024 x 128 bits; every one that belongs to a
// register takes a map RAM, too.
type StageUse struct {
	Stage  int      `json:"stage"`
	Arrays []string `json:"arrays"`
	ALUs   int      `json:"stateful_alus"`
	SRAM   int      `json:"sram_blocks"`
	MapRAM int      `json:"map_ram"`
}

func fit(arrays []Array) []Target {
	out := []Target{{Name: "Tofino 1", Stages: tofino1Stages}, {Name: "Tofino 2", Stages: declared.MaxStages}}
	for i := range out {
		out[i].place(arrays)
	}
	return out
}

// placed reports whether a switch needs the array: not if it is dead under the program's constants.
func (a Array) placed() bool { return a.Stage != nil && a.Touches > 0 }

// blocks is the SRAM of one array, with its spare block.
func blocks(a Array) int { return int((a.Bits+declared.BlockBits-1)/declared.BlockBits) + 1 }

// place assigns stages to free stages of the switch, in their order and with their distances.
func (t *Target) place(arrays []Array) {
	t.Fits, t.Use = true, []StageUse{}
	for _, a := range arrays {
		if a.placed() {
			t.checkArray(a)
		}
	}
	use := make([]StageUse, t.Stages)
	t.placeStages(use, stagesOf(arrays))
	for i, u := range use {
		if u.ALUs > 0 {
			u.Stage = i
			t.Use = append(t.Use, u)
			t.StagesUsed = i + 1
		}
	}
}

// stagesOf are the arrays by stage.
func stagesOf(arrays []Array) (out [][]Array) {
	for _, a := range arrays {
		if !a.placed() {
			continue
		}
		if last := len(out) - 1; last >= 0 && *out[last][0].Stage == *a.Stage {
			out[last] = append(out[last], a)
			continue
		}
		out = append(out, []Array{a})
	}
	return out
}

func (t *Target) placeStages(use []StageUse, groups [][]Array) {
	moved := 0
	for _, group := range groups {
		at := *group[0].Stage + moved
		for at < len(use) && !use[at].takes(group) {
			at++
		}
		if at >= len(use) {
			t.refuse(group[0].Name, t.whyNot(group, moved))
			return
		}
		moved = at - *group[0].Stage
		for _, a := range group {
			use[at].Arrays = append(use[at].Arrays, a.Name)
			use[at].ALUs++
			use[at].SRAM += blocks(a)
			use[at].MapRAM += blocks(a)
		}
	}
}

func (u StageUse) takes(group []Array) bool {
	need := 0
	for _, a := range group {
		need += blocks(a)
	}
	return u.ALUs+len(group) <= stageALUs && u.SRAM+need <= stageSRAM && u.MapRAM+need <= declared.StageMapRAM
}

// whyNot names the limit that a group of arrays exceeds.
func (t *Target) whyNot(group []Array, moved int) string {
	need := 0
	for _, a := range group {
		need += blocks(a)
	}
	stage := *group[0].Stage
	switch {
	case len(group) > stageALUs:
		return fmt.Sprintf("stage %d holds %d arrays and has %d stateful ALUs", stage, len(group), stageALUs)
	case need > declared.StageMapRAM:
		return fmt.Sprintf("the arrays of stage %d take %d SRAM blocks and as many map RAMs, of which a stage has %d",
			stage, need, declared.StageMapRAM)
	case stage >= t.Stages:
		return fmt.Sprintf("it is in stage %d, the last one is %d", stage, t.Stages-1)
	}
	return fmt.Sprintf("no stage after stage %d has enough free memory", stage+moved-1)
}

func (t *Target) refuse(array, reason string) {
	if t.Fits {
		t.Fits, t.misfit, t.Reason = false, array, array+": "+reason
	}
}

// checkArray looks at one array alone.
func (t *Target) checkArray(a Array) {
	switch a.WidthBits {
	case 8, 16, 32, 64:
	default:
		t.refuse(a.Name, fmt.Sprintf("an element has %d bits; registers have 8, 16, 32 or a pair of 32", a.WidthBits))
	}
	if data := blocks(a) - 1; data > declared.ArrayBlocks {
		t.refuse(a.Name, fmt.Sprintf("%d x %d bits take %d SRAM blocks, a register has at most %d: %d entries a bank",
			a.Entries*uint64(a.Banks), a.WidthBits, data, declared.ArrayBlocks,
			declared.ArrayBlocks*declared.BlockBits/uint64(max(a.WidthBits, 1))/uint64(a.Banks)))
	}
	if a.Sites > tableActions {
		t.note("%s is reached from %d places; a register has at most %d actions", a.Name, a.Sites, tableActions)
	}
	if t.Stages == declared.MaxStages && a.WidthBits == 64 && a.Sites > 1 && a.Entries*uint64(a.Banks) > pairEntries2 {
		t.note("%s: pairs that two exclusive tables reach were accepted up to %d entries", a.Name, pairEntries2)
	}
}

func (t *Target) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}
