package privilege

// What the tests of this package look at from outside: they attach, which imports it.
type CapSet = capSet

var (
	MapAccessNeedsBPF = mapAccessNeedsBPF
	ReadCaps          = readCaps
	Remaining         = remaining
	SetOf             = setOf
	SetThreadCaps     = setThreadCaps
	WithoutEffective  = withoutEffective
	WriteCaps         = writeCaps
)

func (s capSet) Names() []string { return s.names() }
