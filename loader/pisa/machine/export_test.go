package machine

// What the tests of whole proofs take of the random programs.
var (
	RandomSeed    = randomSeed
	RandomArrays  = randomArrays
	RandomPairs   = randomPairs
	RandomProgram = randomProgram
	RandomSpec    = randomSpec
	ArrayName     = arrayName
)
