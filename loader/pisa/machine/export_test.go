package machine

// Random programs for the tests of whole proofs.
var (
	RandomSeed    = randomSeed
	RandomArrays  = randomArrays
	RandomPairs   = randomPairs
	RandomProgram = randomProgram
	RandomSpec    = randomSpec
	ArrayName     = arrayName
)
