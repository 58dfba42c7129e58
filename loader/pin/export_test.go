package pin

// Internals for external tests: they start sessions, which import this package.
const (
	AsideSuffix = asideSuffix
	CurrentPins = currentPins
	NextPins    = nextPins
	PinFolder   = pinFolder
)

var (
	DescribeObjects = describeObjects
	IsPrivateMount  = isPrivateMount
	MountBPFFS      = mountBPFFS
	NameOfPin       = nameOfPin
	PinName         = pinName
	RecoverPins     = recoverPins
	SwapByStepping  = swapByStepping
)

func (m pinMeta) Differences(want pinMeta) []string { return m.differences(want) }

// Failing lets steps of pinning fail.
func Failing(o Options, fail func(step string) error) Options {
	o.fail = fail
	return o
}
