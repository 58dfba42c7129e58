// Package constant names the constants of the data plane (`const volatile` in bpf/): a misspelt name does not compile. The names are generated
// from the objects, by the generator of userspace/all.
package constant

// Name of a constant. A string is none.
type Name struct{ text string }

// String is the name as the program has it.
func (n Name) String() string { return n.text }
