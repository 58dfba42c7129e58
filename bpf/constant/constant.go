// Package constant names the constants of the data plane (`const volatile` in bpf/): a misspelt name does not compile. The generator of userspace/all
// makes the names from the objects.
package constant

// Name of a constant. A string is none.
type Name struct{ text string }

// String is the constant's name in the program.
func (n Name) String() string { return n.text }
