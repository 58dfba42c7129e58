package algo

// Type of a parameter's value.
type Type uint8

const (
	Int      Type = iota
	Float         // also fractions: 1/64
	String        // free text, parsed by the algorithm
	Enum          // one of Choices
	Duration      // 10s, 64ns
	Size          // bytes: 64KiB, 1MiB
	Bool
)

// Param is one NAME.KEY of --set: flags, help, docs and range checks are generated from it.
type Param struct {
	Key      string
	Type     Type
	Default  string
	Choices  []string // Enum
	Min, Max string   // "": no bound; syntax of the value
	Unit     string
	Help     string // one line
}
