package privilege

// Internals for external tests: they attach, which imports this package.
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
